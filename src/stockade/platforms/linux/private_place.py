"""A session's own version of a directory such as ``/tmp``: the host's, and over it a layer for what commands write.

The kernel makes it of two layers (overlayfs). Reading goes through to the host's directory, with the rights of who
reads. Whoever writes gets a copy in the upper layer, so that no file of the host ever changes. The upper layer lies in
a private directory of the session, which no command sees, and goes with it.

Rules: made once for a session, since two mounts must not share an upper layer; the jails that follow get copies of
the mount. Attributes that steer the layers (``user.overlay.*``) have no meaning beyond "whiteout" and "opaque": nothing
in the upper layer can lead to another file of the lower one. Nothing is ever synchronised with the disk, for nothing
outlives the session. Where the directory's own file system cannot hold the layer (it is an overlay itself, as in
containers), a bounded part of memory does. Where something is mounted below, the kernel refuses: it does not show what
lies under a mount.
Source of truth: the kernel's filesystems/overlayfs, ``clone_private_mount`` in ``fs/namespace.c``.
"""

from __future__ import annotations

import os
import stat

from stockade.platforms.linux import kernel

_ATTRIBUTES = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
_MOST_LAYERS = 1000
_MEMORY = b"1g"
_MOUNTS = b"/proc/self/mountinfo"
_POINT = 4  # the fifth field of a line of mountinfo
_WRITTEN_AS_NUMBERS = b" \t\n\\#"


def make(target: bytes, source: bytes) -> tuple[int, bytes]:
    """Return the session's version of a directory, detached, and nothing; or -1 and the kernel's reason against it.

    ``source`` is the directory for its layers.
    """
    try:
        return _on_disk(target, source), b""
    except OSError:
        pass
    try:
        return in_memory(target), b""
    except OSError as error:
        point = _mount_below(target)
        if point:
            return -1, b"something is mounted at " + point.decode("ascii", "backslashreplace").encode()
        return -1, b"overlayfs cannot be mounted here, %b" % os.strerror(error.errno or 0).encode()


def _on_disk(target: bytes, source: bytes) -> int:
    for number in range(_MOST_LAYERS):
        upper, work = b"%b/upper%d" % (source, number), b"%b/work%d" % (source, number)
        try:
            os.mkdir(work, 0o700)
        except FileExistsError:
            continue  # of a jail that could not be built
        return _of_layers(target, upper, work)
    raise FileExistsError(source)


def in_memory(target: bytes) -> int:
    """Return a version of a directory whose upper layer is a part of memory, detached."""
    options = ((b"mode", b"0700"), (b"size", _MEMORY))
    memory = kernel.new_filesystem(b"tmpfs", options, _ATTRIBUTES)
    try:
        upper, work = b"/proc/self/fd/%d/upper" % memory, b"/proc/self/fd/%d/work" % memory
        os.mkdir(work, 0o700)
        return _of_layers(target, upper, work)
    finally:
        os.close(memory)


def _of_layers(target: bytes, upper: bytes, work: bytes) -> int:
    os.mkdir(upper, 0o700)
    os.chmod(upper, stat.S_IMODE(os.stat(target).st_mode))
    options = (
        (b"lowerdir", _escaped(target)),
        (b"upperdir", _escaped(upper)),
        (b"workdir", _escaped(work)),
        (b"userxattr", b""),
        (b"volatile", b""),
    )
    return kernel.new_filesystem(b"overlay", options, _ATTRIBUTES)


def _escaped(path: bytes) -> bytes:
    r"""Return a path as the option takes it, in which ``:`` separates layers."""
    return path.replace(b"\\", b"\\\\").replace(b":", b"\\:")


def _mount_below(target: bytes) -> bytes:
    """Return the first place below a directory at which something is mounted, as the kernel writes it; or nothing."""
    written = b"".join(b"\\%03o" % byte if byte in _WRITTEN_AS_NUMBERS else bytes((byte,)) for byte in target)
    with open(_MOUNTS, "rb") as file:
        points = (line.split()[_POINT] for line in file)
        return next((point for point in points if point.startswith(written + b"/")), b"")


def copy(target: bytes) -> int:
    """Return the session's version of a directory once more, detached and bare, for the next jail."""
    mount = kernel.open_tree(kernel.AT_FDCWD, target, kernel.OPEN_TREE_CLONE)
    try:
        # What is laid in one jail must not appear in the other.
        kernel.mount_setattr(mount, b"", kernel.AT_EMPTY_PATH, 0, kernel.MS_PRIVATE)
    except OSError:
        os.close(mount)
        raise
    return mount
