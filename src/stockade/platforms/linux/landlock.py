"""A second wall around writing, inside each command: Landlock, which knows places and not mounts.

Mounts cannot say everything. A pipe or a device on a read-only mount can still be written; a file that somebody passes
as a standard stream lies on the host's own, writable mount, and can be opened again through ``/proc/self/fd`` for more
than it was given for. Landlock asks where a file lies whenever it is opened, by whatever way.

Rules: reading is not its matter; writing is allowed below the session's writable places, in the jail's own ``/dev`` and
``/proc``, and on streams that were given for writing. Where the kernel has no Landlock there is only the first wall;
``doctor`` says so.

Source of truth: landlock(7), the kernel's userspace-api/landlock.
"""

from __future__ import annotations

import fcntl
import os

from stockade.platforms.linux import kernel

WRITE_FILE = 1 << 1
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
REFER = 1 << 13
TRUNCATE = 1 << 14
#: The first version of the interface that knows a right.
_SINCE = ((1, WRITE_FILE | _REMOVE | _MAKE), (2, REFER), (3, TRUNCATE))
_LEAST = 2  # before it, no file could be moved from one directory to another
_OF_FILES = WRITE_FILE | TRUNCATE
_PLACES = (b"/dev", b"/proc")


def version() -> int:
    """Return the version of the interface, 0 if there is none that serves."""
    try:
        found = kernel.landlock_version()
    except OSError:
        return 0
    return found if found >= _LEAST else 0


def handled(version_of_interface: int) -> int:
    """Return the rights to write that this version can deny."""
    return sum(rights for since, rights in _SINCE if since <= version_of_interface)


def outermost(mounts: list[tuple[bytes, bytes, bytes]], writable: frozenset[bytes]) -> list[bytes]:
    """Return the writable places of a plan that lie in no other."""
    targets = [target for operation, target, _ in mounts if operation in writable]
    return [path for path in targets if not any(path.startswith(_below(other)) for other in targets if other != path)]


def prepare(rights: int, places: list[bytes]) -> int:
    """Return rules that allow to write at these places alone, ahead of need: they take most of the time."""
    rules = kernel.landlock_create(rights)
    for path in (*places, *_PLACES):
        _allow_path(rules, rights, path)
    return rules


def restrict(rules: int, rights: int, streams: tuple[int, ...]) -> None:
    """Put this process, and all that it starts, under the rules, which are taken; these streams may be written too."""
    try:
        for stream in streams:
            if fcntl.fcntl(stream, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY:
                _allow_stream(rules, rights, stream)
        kernel.landlock_restrict(rules)
    finally:
        os.close(rules)


def _allow_path(rules: int, rights: int, path: bytes) -> None:
    place = kernel.resolve(path)
    try:
        is_file = not os.path.isdir(b"/proc/self/fd/%d" % place)
        kernel.landlock_allow(rules, rights & _OF_FILES if is_file else rights, place)
    finally:
        os.close(place)


def _allow_stream(rules: int, rights: int, stream: int) -> None:
    """Allow to open a stream anew; pipes and sockets lie nowhere and need no leave."""
    try:
        kernel.landlock_allow(rules, rights & _OF_FILES, stream)
    except OSError:
        return


def _below(path: bytes) -> bytes:
    return path if path == b"/" else path + b"/"
