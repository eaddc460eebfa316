"""The files that a jail shows: the host's own tree, read-only, with exceptions laid over it in order.

Rules:
- everything is read-only first, and no mount of the host can come or go afterwards;
- each place is resolved once, without following links, and the mount is put on what was found;
- a place is shown as the host has it, never as an earlier wall shows it;
- a hidden place answers "Permission denied", to root as well: its wall belongs to an id that does
  not exist inside, on a read-only mount, so no capability and no chmod reaches it;
- a place that must stay absent shows its placeholder, laid over itself: it can be neither opened nor replaced;
- a link is laid over itself: it leads where it led, and can be neither removed nor renamed;
- ``/dev`` holds what programs need and nothing of the machine.

The kernel takes about 20 microseconds per mount, so a jail with 300 of them is built in 6 ms.
Source of truth: open_tree, move_mount, mount_setattr (Linux 5.12), mount_namespaces(7).
"""

from __future__ import annotations

import fcntl
import os
import stat
from _signal import SIGURG  # type: ignore[import-not-found] # signal costs 3 ms: it makes enumerations
from errno import EINVAL

from stockade.platforms.linux import glance, kernel
from stockade.platforms.linux.mask import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

READ_ONLY = b"read-only"
WRITABLE = b"writable"
HIDDEN = b"hidden"
GUARDED = b"guarded"
TEMPORARY = b"temporary"
ABSENT = b"absent"
LINK = b"link"

DEVICES = b"/dev"
PROCESSES = b"/proc"
_WALLS = b".walls"
_WALL_FILE = b".walls/file"
_WALL_DIRECTORY = b".walls/directory"
_MASKS = b".walls/masks"
_CLOSED = frozenset({HIDDEN, GUARDED})
_NODES = (b"null", b"zero", b"full", b"random", b"urandom", b"tty")
_LINKS = (
    (b"fd", b"/proc/self/fd"),
    (b"stdin", b"/proc/self/fd/0"),
    (b"stdout", b"/proc/self/fd/1"),
    (b"stderr", b"/proc/self/fd/2"),
    (b"ptmx", b"pts/ptmx"),
)
_NO_ACCESS = 0
_ATTEMPTS = 3
_F_SETSIG = 10
_PASS_ONLY = 0o111
_NAMES = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_COPY = kernel.OPEN_TREE_CLONE | kernel.AT_RECURSIVE
# Nothing outside the jail's own /dev is a device, and no program gains rights.
_HARMLESS = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV


class Place:
    """One mount of the plan, and how it lies among the others."""

    __slots__ = ("copied_first", "kind", "operation", "outer", "source", "target", "wall")

    def __init__(self, operation: bytes, target: bytes, source: bytes, outer: int) -> None:
        """Take the index of the nearest earlier mount around it, or -1."""
        self.operation = operation
        self.target = target
        self.source = source or target
        self.outer = outer
        self.copied_first = False
        #: What lay there when the mount was laid: a directory, a link, a file.
        self.kind = 0
        #: The wall to lay here, if something is shown again inside it; else one of the two plain walls serves.
        self.wall = b""

    def restricts(self) -> bool:
        """Tell whether commands could do more at this place if its mount were gone; a pin counts, too."""
        if self.operation in {READ_ONLY, WRITABLE}:
            return self.source == self.target and not self.copied_first
        return self.operation != TEMPORARY


def arrange(mounts: list[tuple[bytes, bytes, bytes]]) -> list[Place]:
    """Find for each mount what surrounds it, and whether it must be copied before walls cover it."""
    places: list[Place] = []
    indexes: dict[bytes, int] = {}
    for index, (operation, target, source) in enumerate(mounts):
        outer = next((indexes[path] for path in parents(target) if path in indexes), -1)
        place = Place(operation, target, source, outer)
        around = places[outer].operation if outer >= 0 else READ_ONLY
        if operation in {READ_ONLY, WRITABLE}:
            place.copied_first = (
                place.source != target
                or around in {HIDDEN, GUARDED, TEMPORARY}
                or (operation == WRITABLE and around != WRITABLE)
            )
        if outer >= 0 and around in _CLOSED:
            places[outer].wall = wall_with_ways(outer)
        places.append(place)
        indexes[target] = index
    return places


def parents(path: bytes) -> Iterator[bytes]:
    """Yield the directories above a path, nearest first."""
    while path not in {b"/", b""}:
        path = path.rpartition(b"/")[0] or b"/"
        yield path


def new_devices(places: list[Place], owner: tuple[int, int] | None) -> int:
    """Make, detached, the filesystem that holds ``/dev`` and the walls of hidden places."""
    attributes = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV | kernel.MOUNT_ATTR_NOEXEC
    root = kernel.new_filesystem(b"tmpfs", ((b"mode", b"0755"),), attributes)
    previous = os.umask(0)
    try:
        _furnish_devices(root)
        _furnish_walls(root, places, owner)
    finally:
        os.umask(previous)
    return root


def _furnish_devices(root: int) -> None:
    for name in _NODES:
        os.close(os.open(name, _NAMES, 0o666, dir_fd=root))
    for name in (b"pts", b"shm"):
        os.mkdir(name, 0o755, dir_fd=root)
    for name, leads_to in _LINKS:
        os.symlink(leads_to, name, dir_fd=root)


def _furnish_walls(root: int, places: list[Place], owner: tuple[int, int] | None) -> None:
    os.mkdir(_WALLS, _PASS_ONLY, dir_fd=root)
    os.mkdir(_WALL_DIRECTORY, _NO_ACCESS, dir_fd=root)
    os.mkdir(_MASKS, _NO_ACCESS, dir_fd=root)
    os.close(os.open(_WALL_FILE, _NAMES, _NO_ACCESS, dir_fd=root))
    made = [_WALLS, _WALL_DIRECTORY, _WALL_FILE, _MASKS]
    for place in places:
        if place.outer >= 0 and places[place.outer].operation in _CLOSED:
            _furnish_way(root, place, places[place.outer].target, places[place.outer].wall, made)
    if owner is not None:
        for name in made:
            os.chown(name, *owner, dir_fd=root, follow_symlinks=False)


def _furnish_way(root: int, place: Place, hidden: bytes, wall: bytes, made: list[bytes]) -> None:
    """Make the directories that lead through a wall to a place that is shown again."""
    steps = place.target[len(hidden) :].strip(b"/").split(b"/")
    path = wall
    _make_directory(root, path, made)
    for step in steps[:-1]:
        path += b"/" + step
        _make_directory(root, path, made)
    path += b"/" + steps[-1]
    if is_directory(place):
        _make_directory(root, path, made)
    elif path not in made:
        os.close(os.open(path, _NAMES, _NO_ACCESS, dir_fd=root))
        made.append(path)


def is_directory(place: Place) -> bool:
    """Tell whether a place that is shown again needs a directory to be mounted on."""
    return place.operation == TEMPORARY or stat.S_ISDIR(os.lstat(place.source).st_mode)


def _make_directory(root: int, path: bytes, made: list[bytes]) -> None:
    if path not in made:
        os.mkdir(path, _PASS_ONLY, dir_fd=root)
        made.append(path)


def wall_with_ways(index: int) -> bytes:
    """Name the wall of a hidden directory in which something is shown again."""
    return b"%b/%d" % (_WALLS, index)


def build(places: list[Place], devices: int, terminals: int, masks: int = -1) -> None:
    """Turn the mounts of this namespace into the jail's; the last step that sees the host as it is.

    ``masks`` is the file system of guarded places, detached; without it they are merely hidden.
    """
    copies = {place.target: _copy_path(place.source) for place in places if place.copied_first and place.target != b"/"}
    nodes = {name: copy for name in _NODES if (copy := _copy_node(name)) is not None}
    _close_tree(open_root=any(place.target == b"/" for place in places))
    _put_devices(devices, nodes, terminals)
    if masks >= 0:
        kernel.move_mount(masks, kernel.AT_FDCWD, b"%b/%b" % (DEVICES, _MASKS))
        os.close(masks)
    for index, place in enumerate(places):
        if place.target == b"/":
            continue
        copy = copies.pop(place.target, None)
        if masks >= 0 and place.operation == GUARDED:
            copy = _mask(index, place)
        lay(place, copy)
    if masks >= 0:
        kernel.umount(b"%b/%b" % (DEVICES, _MASKS))
    _share()


def _share() -> None:
    """Have mounts that are laid later appear in every copy of this tree as well; see ``lay_again``.

    ``/proc`` stays private: commands lay their own over it.
    """
    kernel.mount_setattr(kernel.AT_FDCWD, b"/", kernel.AT_RECURSIVE, 0, kernel.MS_SHARED)
    kernel.mount_setattr(kernel.AT_FDCWD, PROCESSES, kernel.AT_RECURSIVE, 0, kernel.MS_PRIVATE)


class Relaid:
    """What came of laying fallen mounts again: targets that were laid, that are missing, and that cannot be covered."""

    __slots__ = ("files", "hopeless", "laid", "missing")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.laid: list[bytes] = []
        #: Those of them that are files which must not be written.
        self.files: list[bytes] = []
        self.missing: list[bytes] = []
        self.hopeless: list[bytes] = []


def lay_again(places: list[Place]) -> Relaid:
    """Lay the mounts that fell because the host replaced what they lay on.

    A rename over a mount point, or its removal, takes the mount away in every other namespace. Where nothing is now,
    there is nothing to lay a mount on. What took the place of a placeholder, or of a pinned directory, becomes
    read-only. A link that was not there before leads where no cover lies, and only a new plan knows what to do.
    """
    relaid = Relaid()
    for place in places:
        for attempt in range(_ATTEMPTS):
            if glance.is_mount(place.target):
                break
            try:
                _lay_again(place, relaid)
            except OSError as error:
                # The host may replace it once more in this moment: then what was found is gone, and another is there.
                if attempt + 1 < _ATTEMPTS:
                    continue
                missing = isinstance(error, FileNotFoundError)
                (relaid.missing if missing else relaid.hopeless).append(place.target)
            break
    return relaid


def _lay_again(place: Place, relaid: Relaid) -> None:
    kind = stat.S_IFMT(os.lstat(place.target).st_mode)
    if stat.S_ISLNK(kind) or place.operation == LINK:
        relaid.hopeless.append(place.target)
        return
    as_before = kind == place.kind and place.operation != ABSENT
    lay(place if as_before or place.operation in _CLOSED else Place(READ_ONLY, place.target, b"", -1))
    relaid.laid.append(place.target)
    if stat.S_ISDIR(kind):
        # Nobody renames a directory over one with something in it: the name was free for a moment.
        relaid.missing.append(place.target)
    elif stat.S_ISREG(kind) and place.operation == READ_ONLY:
        relaid.files.append(place.target)
        if is_within_reach(place.target):
            relaid.hopeless.append(place.target)


def is_within_reach(path: bytes) -> bool:
    """Tell whether a file can be written in spite of its cover: it has a second name, or somebody has it open.

    A program of the host writes a new file before it gives it the protected name. A command may have opened or linked
    it in that moment. The kernel grants a lease only if nobody has the file open for writing (fcntl(2)).
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False  # it is gone, or another kind of thing: then it has fallen again
    try:
        if os.fstat(file).st_nlink > 1:
            return True
        # If a process opens the file for writing now, the kernel sends us a signal, which we ignore.
        fcntl.fcntl(file, _F_SETSIG, SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # this file system knows no leases, or the file is another user's
    finally:
        os.close(file)
    return False


def _mask(index: int, place: Place) -> int:
    """Copy the mask of a place; see ``mask``."""
    name = name_of(index, directory=stat.S_ISDIR(os.lstat(place.target).st_mode))
    return kernel.open_tree(kernel.AT_FDCWD, b"%b/%b/%b" % (DEVICES, _MASKS, name), kernel.OPEN_TREE_CLONE)


def _close_tree(*, open_root: bool) -> None:
    """Make all mounts private and read-only; the kernel's own stay so even if the root is writable."""
    private = (_HARMLESS, kernel.MS_PRIVATE)
    kernel.mount_setattr(kernel.AT_FDCWD, b"/", kernel.AT_RECURSIVE, *private)
    for path in (b"/sys", b"/proc") if open_root else (b"/",):
        kernel.mount_setattr(kernel.AT_FDCWD, path, kernel.AT_RECURSIVE, kernel.MOUNT_ATTR_RDONLY)


def lay(place: Place, copy: int | None = None) -> None:
    """Put one mount over its target."""
    target = kernel.resolve(place.target)
    try:
        place.kind = place.kind or stat.S_IFMT(os.fstat(target).st_mode)
        if copy is None:
            copy = _material(place, target)
        if place.operation in {READ_ONLY, ABSENT}:
            flags = kernel.AT_EMPTY_PATH | kernel.AT_RECURSIVE
            kernel.mount_setattr(copy, b"", flags, kernel.MOUNT_ATTR_RDONLY)
        try:
            kernel.move_mount(copy, target)
        finally:
            os.close(copy)
    except OSError as error:
        error.filename = error.filename or place.target
        raise
    finally:
        os.close(target)


def _material(place: Place, target: int) -> int:
    if place.operation in _CLOSED:
        directory = stat.S_ISDIR(os.fstat(target).st_mode)
        name = place.wall or (_WALL_DIRECTORY if directory else _WALL_FILE)
        return kernel.open_tree(kernel.AT_FDCWD, b"%b/%b" % (DEVICES, name), kernel.OPEN_TREE_CLONE)
    if place.operation == TEMPORARY:
        attributes = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
        return kernel.new_filesystem(b"tmpfs", ((b"mode", b"1777"),), attributes)
    if place.source != place.target:
        return _copy_path(place.source)
    return kernel.open_tree(target, b"", _COPY | kernel.AT_EMPTY_PATH)


def _copy_path(path: bytes) -> int:
    place = kernel.resolve(path)
    try:
        copy = kernel.open_tree(place, b"", _COPY | kernel.AT_EMPTY_PATH)
    finally:
        os.close(place)
    kernel.mount_setattr(copy, b"", kernel.AT_EMPTY_PATH | kernel.AT_RECURSIVE, _HARMLESS)
    return copy


def _copy_node(name: bytes) -> int | None:
    """Copy a device of the host, read-only: it can be used, but root cannot change its mode, owner or times."""
    try:
        copy = kernel.open_tree(kernel.AT_FDCWD, b"%b/%b" % (DEVICES, name), kernel.OPEN_TREE_CLONE)
    except FileNotFoundError:
        return None
    kernel.mount_setattr(copy, b"", kernel.AT_EMPTY_PATH, kernel.MOUNT_ATTR_RDONLY)
    return copy


def _put_devices(devices: int, nodes: dict[bytes, int], terminals: int) -> None:
    """Cover ``/dev``; the walls below it are read-only, so nobody can open them up by chmod."""
    kernel.move_mount(devices, kernel.AT_FDCWD, DEVICES)
    os.close(devices)
    shared = kernel.new_filesystem(b"tmpfs", ((b"mode", b"1777"),), kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV)
    for name, mount in ((b"shm", shared), (b"pts", terminals), *nodes.items()):
        kernel.move_mount(mount, kernel.AT_FDCWD, b"%b/%b" % (DEVICES, name))
        os.close(mount)
    kernel.mount_setattr(kernel.AT_FDCWD, DEVICES, 0, kernel.MOUNT_ATTR_RDONLY)


def new_terminals() -> int:
    """Make, detached, a ``/dev/pts`` of its own."""
    options = ((b"ptmxmode", b"0666"), (b"mode", b"0620"))
    return kernel.new_filesystem(b"devpts", options, kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NOEXEC)


def can_show_processes() -> bool:
    """Tell whether the kernel allows a fresh ``/proc``: it does not where parts of the one around are masked."""
    try:
        os.close(kernel.new_filesystem(b"proc"))
    except PermissionError:
        return False
    return True


def new_processes(*, writable: bool) -> int:
    """Make, detached, the ``/proc`` of this process's own pid namespace.

    The kernel allows it only in a mount namespace that shows a whole ``/proc``: the jail's own, not a locked copy.
    """
    attributes = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV | kernel.MOUNT_ATTR_NOEXEC
    return kernel.new_filesystem(b"proc", (), attributes | (0 if writable else kernel.MOUNT_ATTR_RDONLY))


def show_processes(processes: int, *, writable: bool) -> None:
    """Cover ``/proc`` with one that was made detached, which is taken."""
    try:
        kernel.move_mount(processes, kernel.AT_FDCWD, PROCESSES)
    finally:
        os.close(processes)
    if writable:
        _close_settings()


def uncover_processes() -> None:
    """Take the ``/proc`` of the command before away; if that was killed before it had one, the locked cover stays."""
    try:
        kernel.umount(PROCESSES)
    except OSError as error:
        if error.errno != EINVAL:
            raise


def cover_processes() -> None:
    """Cover ``/proc`` with an empty directory. A command lays its own ``/proc`` on it, and leaves it when that goes."""
    attributes = _HARMLESS | kernel.MOUNT_ATTR_NOEXEC | kernel.MOUNT_ATTR_RDONLY
    nothing = kernel.new_filesystem(b"tmpfs", ((b"mode", b"0555"),), attributes)
    try:
        kernel.move_mount(nothing, kernel.AT_FDCWD, PROCESSES)
    finally:
        os.close(nothing)


def _close_settings() -> None:
    """Make the kernel's settings read-only: some of the session's own namespaces belong to the user."""
    copy = kernel.open_tree(kernel.AT_FDCWD, b"/proc/sys", kernel.OPEN_TREE_CLONE)
    try:
        kernel.mount_setattr(copy, b"", kernel.AT_EMPTY_PATH, kernel.MOUNT_ATTR_RDONLY)
        kernel.move_mount(copy, kernel.AT_FDCWD, b"/proc/sys")
    finally:
        os.close(copy)
