"""Says quickly that the walls refuse nothing of a call: the way that nearly every change of a file takes.

For each call that changes files there is one function. It takes the thread and the whole notification, and answers
``True`` only if nothing can be refused by the walls; ``False`` means that somebody must look (``onlooker``). It asks
the kernel as seldom as can be, and makes hardly any objects: the caller of every such call waits for it.

Rules: a "yes" needs the kernel's word about the path as it is written, at this moment. No answer is remembered: a
directory may be another one the next time. The kernel is asked in the supervisor's own mounts, in which it follows no
link (see ``supervisor``): forty of them may be 50,000 names, in one call that nobody can interrupt, while all other
commands wait. Errors leave as ``OSError`` and mean ``False``.
"""

from __future__ import annotations

import os
from errno import EINVAL

from stockade.platforms.linux import glance
from stockade.platforms.linux.calls import CREATE, DELETE, METADATA, NO_ARGUMENT, OPEN, RENAME, Use
from stockade.platforms.linux.memory_reader import read_text
from stockade.platforms.linux.notification import ARGUMENTS, Notification

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Quick = Callable[[int, Notification], bool]

_WORKING_DIRECTORY = 0xFFFF_FF9C  # AT_FDCWD, of which the kernel takes the lower half
_WORD = 0xFFFF_FFFF
_EXCLUSIVE = os.O_CREAT | os.O_EXCL
_CREATING = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
#: The caller has its own of these: a path into them means something else here.
_OWN = (b"/proc/", b"/dev/")
_ODD = (b"//", b"/./")
#: What C libraries make of a call on an open file for which they have none.
_OWN_FILES = b"/proc/self/fd/"
_OWN_MEMORY = b"/dev/shm/"


def quick(changes: Mapping[int, tuple[Use, ...]], absent_names: frozenset[bytes]) -> dict[int, Quick]:
    """Return a function for each number of a call; names that are kept missing are never answered quickly."""
    return {number: _made(uses, absent_names) for number, uses in changes.items()}


def _made(uses: tuple[Use, ...], absent: frozenset[bytes]) -> Quick:
    use = uses[0]
    if use.path == NO_ARGUMENT:
        return _of_descriptor(ARGUMENTS + use.directory)
    if use.does == OPEN:
        return _of_opening(use, absent)
    if use.does == CREATE:
        return _of_creation(use, absent)
    if use.does == DELETE:
        return _of_removal(use, absent)
    if use.does == RENAME:
        return _of_rename(uses, absent)
    return _of_writing(use, absent)


def _located(use: Use) -> Callable[[int, Notification], bytes]:
    """Return what makes a path that means here what the caller's means there; empty if it is none."""
    at, directory = ARGUMENTS + use.path, ARGUMENTS + use.directory
    has_directory = use.directory != NO_ARGUMENT
    readlink = os.readlink

    def locate(thread: int, asked: Notification) -> bytes:
        address = asked[at]
        text = read_text(thread, address) if address else b""
        if text[:1] != b"/":
            if not text:
                return text
            if has_directory and (start := asked[directory] & _WORD) != _WORKING_DIRECTORY:
                place = readlink(b"%d/fd/%d" % (thread, start))
            else:
                place = readlink(b"%d/cwd" % thread)
            text = b"%b/%b" % (place, text) if place != b"/" else place + text
        elif text.startswith(_ODD):
            raise OSError(EINVAL, "written so that it may lead to what is the caller's own")
        return _seen_from_outside(thread, text) if text.startswith(_OWN) else text

    return locate


def _seen_from_outside(thread: int, path: bytes) -> bytes:
    """Return a path that means here what the caller's own means there, if there is one."""
    if path.startswith(_OWN_FILES) and (number := path[len(_OWN_FILES) :]).isdigit():
        return b"%d/fd/%b" % (thread, number)
    # This one part of its devices is everybody's. The dot lets it not be taken for any other of them.
    return b"/." + path if path.startswith(_OWN_MEMORY) else path


def _of_descriptor(index: int) -> Quick:
    def possible(thread: int, asked: Notification) -> bool:
        path = b"%d/fd/%d" % (thread, asked[index] & _WORD)
        return os.access(path, os.W_OK) or not glance.is_read_only(path)

    return possible


def _ends(names: frozenset[bytes]) -> tuple[bytes, ...]:
    """Return how the paths of directories end that only keep their names: in these nothing can be made."""
    return tuple(b"/" + name for name in names)


def _of_opening(use: Use, absent: frozenset[bytes]) -> Quick:
    locate = _located(use)
    kept = _ends(absent)
    flags_at = ARGUMENTS + use.flags if use.flags != NO_ARGUMENT else -1
    access, write = os.access, os.W_OK

    def possible(thread: int, asked: Notification) -> bool:
        path = locate(thread, asked)
        flags = asked[flags_at] if flags_at >= 0 else _CREATING
        above, _, name = path.rpartition(b"/")
        if name in absent or not name or above.endswith(kept):
            return False
        if flags & _EXCLUSIVE == _EXCLUSIVE and not path.startswith(_OWN):
            # What is there already is no refusal of the walls, so that only the place counts.
            return access(above or b"/", write)
        if access(path, write):
            return True
        if not flags & os.O_CREAT or path.startswith(_OWN):
            return False
        return access(above or b"/", write) and glance.is_missing(path)

    return possible


def _of_creation(use: Use, absent: frozenset[bytes]) -> Quick:
    locate = _located(use)
    kept = _ends(absent)

    def possible(thread: int, asked: Notification) -> bool:
        path = locate(thread, asked).rstrip(b"/")
        above, _, name = path.rpartition(b"/")
        if name in absent or not name or above.endswith(kept) or path.startswith(_OWN):
            return False
        if os.access(above or b"/", os.W_OK) or os.access(path, os.F_OK, follow_symlinks=False):
            return True
        # Who makes a whole way tries its end first: without what is above it, nothing can be made there anyway.
        # A way up may lead to what is the caller's own, and missing only here.
        return b"/../" not in path and glance.is_missing(above or b"/")

    return possible


def _of_removal(use: Use, absent: frozenset[bytes]) -> Quick:
    locate = _located(use)
    kept = _ends(absent)

    def possible(thread: int, asked: Notification) -> bool:
        path = locate(thread, asked).rstrip(b"/")
        above, _, name = path.rpartition(b"/")
        if name in absent or not name or above.endswith(kept) or path.startswith(_OWN):
            return False
        return os.access(above or b"/", os.W_OK) and not glance.is_mount(path)

    return possible


def _of_rename(uses: tuple[Use, ...], absent: frozenset[bytes]) -> Quick:
    ways = tuple(_of_removal(use, absent) for use in uses)

    def possible(thread: int, asked: Notification) -> bool:
        return all(way(thread, asked) for way in ways)

    return possible


def _of_writing(use: Use, absent: frozenset[bytes]) -> Quick:
    locate = _located(use)
    of_descriptor = _of_descriptor(ARGUMENTS + use.directory) if use.directory != NO_ARGUMENT else None
    is_metadata = use.does == METADATA

    def possible(thread: int, asked: Notification) -> bool:
        path = locate(thread, asked)
        if not path:
            return of_descriptor is not None and is_metadata and of_descriptor(thread, asked)
        above, _, name = path.rpartition(b"/")
        if name in absent or path.startswith(_OWN):
            return False
        follow = use.follows_links(asked[ARGUMENTS:])
        if os.access(path, os.W_OK, follow_symlinks=follow):
            return True
        return is_metadata and not glance.is_read_only(path if follow else above or b"/")

    return possible
