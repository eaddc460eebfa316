"""What the kernel says about a path at one moment: may it be written, is it a mount, where is it really.

Each function is one or two calls, without an exception where "no" is a usual answer.
Source of truth: access(2), statx(2) (Linux 5.8 for mounts), statvfs(3).
"""

from __future__ import annotations

import ctypes
import os
from errno import ENOENT

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_NO_AUTOMOUNT = 0x800
_AT_STATX_DONT_SYNC = 0x4000
_STATX_MNT_ID = 0x1000
_ATTRIBUTES, _MOUNT_ROOT = 9, 0x20  # STATX_ATTR_MOUNT_ROOT, in the second byte of stx_attributes
_MOUNT = slice(144, 152)
_INODE, _DEVICE = slice(32, 40), slice(136, 144)
_READ_ONLY = 1  # ST_RDONLY
_PROC = 0x9FA0  # PROC_SUPER_MAGIC
_OPENAT2 = 437
_NO_SYMLINKS = 0x04

_statx = _libc.statx
_statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
_bytes = bytearray(256)
_buffer = (ctypes.c_char * len(_bytes)).from_buffer(_bytes)
_buffer_at = ctypes.addressof(_buffer)

# openat2(2) by the C library's syscall(3), with its types said once: that takes half the time.
_enter = ctypes.CFUNCTYPE(
    ctypes.c_long,
    ctypes.c_long,
    ctypes.c_long,
    ctypes.c_char_p,
    ctypes.c_void_p,
    ctypes.c_long,
    use_errno=True,
)(ctypes.cast(_libc.syscall, ctypes.c_void_p).value or 0)
_how = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_SYMLINKS)
_how_at, _how_bytes = ctypes.addressof(_how), ctypes.sizeof(_how)
_how_to_find = (ctypes.c_uint64 * 3)(os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
_how_to_find_at = ctypes.addressof(_how_to_find)


def enter(directory: int, path: bytes) -> int:
    """Open the directory at a path below another one; -1 if there is a link on the way, or if it fails."""
    return int(_enter(_OPENAT2, directory, path, _how_at, _how_bytes))


def find(directory: int, path: bytes) -> int:
    """Open whatever is at a path below a directory, only to name it; if it fails, return the error with a minus.

    That is ``ELOOP`` if there is a link on the way or at the end.
    """
    found = int(_enter(_OPENAT2, directory, path, _how_to_find_at, _how_bytes))
    return found if found >= 0 else -ctypes.get_errno()


def is_mount(path: bytes) -> bool:
    """Tell whether a path, not followed, is where something is mounted: then it can be neither removed nor renamed."""
    # Not synchronised: a mask is a file system whose server may wait for the very process that asks here.
    flags = _AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT | _AT_STATX_DONT_SYNC
    if _statx(_AT_FDCWD, path, flags, 0, _buffer_at):
        return False
    return bool(_bytes[_ATTRIBUTES] & _MOUNT_ROOT)


def is_missing(path: bytes) -> bool:
    """Tell whether there is nothing at a path, not followed; what may not be looked at is there."""
    flags = _AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT
    return bool(_statx(_AT_FDCWD, path, flags, 0, _buffer_at)) and ctypes.get_errno() == ENOENT


def mount_of(path: bytes) -> int:
    """Return the number of the mount that a path lies on, followed; 0 if nobody knows."""
    if _statx(_AT_FDCWD, path, _AT_NO_AUTOMOUNT, _STATX_MNT_ID, _buffer_at):
        return 0
    return int.from_bytes(_buffer.raw[_MOUNT], "little")


def identity(path: bytes) -> bytes:
    """Return what tells the file at a path, followed, from all others that are there now; empty if nobody knows."""
    if _statx(_AT_FDCWD, path, _AT_NO_AUTOMOUNT | _AT_STATX_DONT_SYNC, 0, _buffer_at):
        return b""
    return bytes(_bytes[_INODE] + _bytes[_DEVICE])


def error_of_writing(path: bytes, *, enter: bool = False) -> int:
    """Return the error that stands between this process and writing at a path, 0 if none; ``EROFS`` comes last."""
    mode = os.W_OK | os.X_OK if enter else os.W_OK
    return ctypes.get_errno() if _libc.faccessat(_AT_FDCWD, path, mode, 0) else 0


def is_read_only(path: bytes) -> bool:
    """Tell whether a path, followed, lies on a read-only mount; what cannot be looked at counts as one."""
    try:
        return bool(os.statvfs(path).f_flag & _READ_ONLY)
    except OSError:
        return True


def is_of_processes(descriptor: int) -> bool:
    """Tell whether an open descriptor lies in a ``/proc``."""
    if _libc.fstatfs(descriptor, _buffer):
        return False
    return int.from_bytes(_buffer.raw[:8], "little") == _PROC


def real_path(descriptor_path: bytes) -> bytes:
    """Return where an open descriptor, named by its link in ``/proc``, lies; empty if it has no name any more."""
    path = os.readlink(descriptor_path)
    return path if path[:1] == b"/" and os.stat(descriptor_path).st_nlink else b""
