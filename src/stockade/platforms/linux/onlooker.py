"""Tells whether the walls will refuse a change of a file that without them would be possible.

Asked for each call that may change a file and of which ``quick`` does not know that nothing is refused, while its
caller waits; the kernel decides afterwards, by its mounts. The answer is exact: the path is walked step by step in the
caller's own view (``walk``), and the same place is looked at in the host's own tree.

Rules:

- A refusal is told only if it is the walls': what ordinary permissions refuse, what is missing, and what exists
  already would fail without walls, and no setting would help.
- What cannot be looked at is not told.
- Where an empty directory keeps a name that a caller wants to write as a file, the kernel would say "Is a directory",
  which helps nobody; to who makes something in such a directory, that there is no space. ``error`` is what the caller
  gets instead.
- The working directory of this process is a ``/proc`` that shows the callers, and its ``/proc`` is empty: by way of
  that, paths would mean something else here.
"""

from __future__ import annotations

import os
import stat
from errno import EACCES, ENOENT, EROFS

from stockade.platforms.linux import glance
from stockade.platforms.linux.calls import CREATE, DELETE, METADATA, NO_ARGUMENT, OPEN, RENAME, WRITE, Use
from stockade.platforms.linux.memory_reader import read_text
from stockade.platforms.linux.notification import as_int
from stockade.platforms.linux.walk import Found, walk

_AT_FDCWD = -100
_WORKING_DIRECTORY = b"cwd"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC
_CREAT_FLAGS = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
_EXCLUSIVE = os.O_CREAT | os.O_EXCL
#: Here the caller has its own, and what is looked up from outside means something else.
_OWN = (b"/proc/", b"/dev/")
_CAP_FOWNER = 3

Refusal = tuple[bytes, bytes]  # what, and where


class Onlooker:
    """Looks at changes of files on behalf of whoever reports."""

    def __init__(self, host: int, absent: list[bytes], capabilities: int = 0) -> None:
        """Take the host's root, opened before there were walls, and the places that are kept missing."""
        own = os.getpid()
        self.descriptors = b"%d/fd/" % own
        self.host = b"%b%d" % (self.descriptors, host)
        self.absent = frozenset(absent)
        self.absent_names = frozenset(path.rpartition(b"/")[2] for path in absent)
        self.owns_all = bool(capabilities >> _CAP_FOWNER & 1)
        self.user = os.geteuid()
        #: What is answered to the call that was looked at last, in place of the kernel's word; 0 if that is heard.
        self.error = 0

    def refusal(self, uses: tuple[Use, ...], thread: int, arguments: tuple[int, ...]) -> Refusal | None:
        """Return what the walls will refuse of a call, and where; ``None`` if nothing."""
        self.error = 0
        use = uses[0]
        if use.path == NO_ARGUMENT:
            return self.of_descriptor(thread, as_int(arguments[use.directory]))
        start, text = asked_of(use, thread, arguments)
        if len(uses) > 1:
            return self.of_rename(thread, (start, text), asked_of(uses[1], thread, arguments))
        if not text:
            return self.of_descriptor(thread, int(start[3:])) if use.does == METADATA and start[:3] == b"fd/" else None
        if use.does == OPEN:
            return self.of_opening(thread, start, text, _CREAT_FLAGS if use.flags < 0 else arguments[use.flags])
        if use.old is not None and not _is_there(*asked_of(use.old, thread, arguments), thread):
            return None
        return self.walked(use.does, thread, start, text, follow=use.follows_links(arguments))

    def of_opening(self, thread: int, start: bytes, text: bytes, flags: int) -> Refusal | None:
        """Look at a file that is opened for writing, or made."""
        if flags & os.O_PATH or (flags & os.O_CREAT and text.endswith(b"/")):
            return None
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            return self.of_unnamed(thread, start, text)
        with walk(thread, start, text, follow=not flags & os.O_NOFOLLOW) as found:
            if found.error == ENOENT and flags & os.O_CREAT and not found.rest:
                return self.create(found)
            if found.error:
                return self.blocked(OPEN, found)
            return self.open_existing(found, flags)

    def of_unnamed(self, thread: int, start: bytes, text: bytes) -> Refusal | None:
        """Look at a file that is made without a name: what is written is the directory."""
        refused = self.walked(CREATE, thread, start, text + b"/*")
        return refused and (WRITE, refused[1].removesuffix(b"/*"))

    def open_existing(self, found: Found, flags: int) -> Refusal | None:
        """Look at a file that is there."""
        kind = os.fstat(found.target).st_mode
        if self.is_kept_missing(found):
            # Who wants a new file and no other is content if something is there.
            if stat.S_ISDIR(kind) and flags & (_WRITES | os.O_CREAT) and flags & _EXCLUSIVE != _EXCLUSIVE:
                self.error = EACCES
            return self.create(found) if flags & os.O_CREAT else None
        if flags & _EXCLUSIVE == _EXCLUSIVE or not flags & _WRITES or stat.S_ISDIR(kind) or stat.S_ISLNK(kind):
            return None
        return self.write(found)

    def walked(self, does: bytes, thread: int, start: bytes, text: bytes, *, follow: bool = False) -> Refusal | None:
        """Look at any other change of one name."""
        with walk(thread, start, text, follow=follow) as found:
            if does == CREATE:
                return self.make(found)
            if found.error:
                return self.blocked(does, found)
            if does == DELETE:
                return self.delete(found)
            if does == WRITE:
                if not stat.S_ISDIR(os.fstat(found.target).st_mode):
                    return self.write(found)
                self.error = EACCES if self.is_kept_missing(found) else 0
                return None
            return self.metadata(found.target)

    def of_descriptor(self, thread: int, number: int) -> Refusal | None:
        """Look at a change of an open file's attributes."""
        try:
            target = os.open(b"%d/fd/%d" % (thread, number), os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return self.metadata(target)
        finally:
            os.close(target)

    def of_rename(self, thread: int, old: tuple[bytes, bytes], new: tuple[bytes, bytes]) -> Refusal | None:
        """Look at both names of a rename."""
        if not (old[1] and new[1]):
            return None
        with walk(thread, *old, follow=False) as source, walk(thread, *new, follow=False) as target:
            if source.error:
                return self.blocked(RENAME, source)
            if target.error and (target.error != ENOENT or target.rest):
                return self.blocked(RENAME, target)
            return self.rename(source, target)

    def rename(self, old: Found, new: Found) -> Refusal | None:
        """Judge a rename whose names were found."""
        if not (old.name and new.name):
            return None
        names = tuple(self.named(found) for found in (old, new))
        above = tuple(self.at(found.directory) for found in (old, new))
        errors = tuple(glance.error_of_writing(path, enter=True) for path in above)
        writable = tuple(
            not error and not self.is_in_cover(*place) for error, *place in zip(errors, above, names, strict=True)
        )
        if all(writable) and glance.mount_of(above[0]) != glance.mount_of(above[1]):
            return None  # two places that may be written, but no name can move between them
        kept = tuple(
            glance.is_mount(b"%b/%b" % (path, found.name)) for path, found in zip(above, (old, new), strict=True)
        )
        refused = next((index for index in (0, 1) if not writable[index] or kept[index]), None)
        if refused is None or not self.could_be_renamed(*names):
            return None
        if not new.error and self.is_kept_missing(new) and _is_file_for_directory(old.target, new.target):
            self.error = EACCES
        return RENAME, names[refused]

    def could_be_renamed(self, old: bytes, new: bytes) -> bool:
        """Tell whether the host's own tree would let a name be changed."""
        if not (self.could_be_made(new, anyway=True) and self.could_be_removed(old)):
            return False
        above = [self.host + (path.rpartition(b"/")[0] or b"/") for path in (old, new)]
        return glance.mount_of(above[0]) == glance.mount_of(above[1])

    def blocked(self, does: bytes, found: Found) -> Refusal | None:
        """Judge a walk that was stopped on its way, or at its end by a wall that shows nothing."""
        if found.error != EACCES:
            return None
        path = b"/".join([self.named(found), *found.rest])
        if does == OPEN:
            does = WRITE if os.path.lexists(self.host + path) else CREATE
        possible = {
            WRITE: self.could_be_written,
            CREATE: self.could_be_made,
            DELETE: self.could_be_removed,
            RENAME: self.could_be_removed,
            METADATA: self.could_be_changed,
        }
        return (does, path) if possible[does](path) else None

    def make(self, found: Found) -> Refusal | None:
        """Judge the making of a name that may be there already."""
        if found.error and (found.error != ENOENT or found.rest):
            return self.blocked(CREATE, found)
        if not found.error and not self.is_kept_missing(found):
            return None
        return self.create(found)

    def create(self, found: Found) -> Refusal | None:
        """Judge the making of a name."""
        path = self.named(found)
        # A name that is kept from being made: it is there, but only as a placeholder. So is what would be made in one.
        kept = not found.error or path.rpartition(b"/")[0] in self.absent
        above = self.at(found.directory)
        error = glance.error_of_writing(above, enter=True)
        if not error and self.is_in_cover(above, path):
            self.error = EACCES
        if not path or not (error or kept):
            return None
        if path.startswith(_OWN):
            return (CREATE, path) if error == EROFS else None
        return (CREATE, path) if self.could_be_made(path, anyway=kept) else None

    def delete(self, found: Found) -> Refusal | None:
        """Judge the removal of a name."""
        path = self.named(found)
        above = self.at(found.directory)
        error = glance.error_of_writing(above, enter=True)
        covered = not error and self.is_in_cover(above, path)
        self.error = EACCES if covered else 0
        if not found.name or not path or not (error or covered or glance.is_mount(b"%b/%b" % (above, found.name))):
            return None
        if path.startswith(_OWN):
            return (DELETE, path) if error == EROFS else None
        if (kept := path.rpartition(b"/")[0]) in self.absent:
            path = kept  # what is in it is not the host's, and stands in the way of whoever wants the name
        return (DELETE, path) if self.could_be_removed(path) else None

    def write(self, found: Found) -> Refusal | None:
        """Judge the writing of what is there."""
        own = self.at(found.target)
        path = glance.real_path(own)
        error = glance.error_of_writing(own)
        if not path or not error:
            return None
        if path.startswith(_OWN):
            return (WRITE, path) if error == EROFS else None
        return (WRITE, path) if self.could_be_written(path) else None

    def metadata(self, target: int) -> Refusal | None:
        """Judge a change of attributes."""
        own = self.at(target)
        path = glance.real_path(own)
        if not path or not glance.is_read_only(own):
            return None
        if path.startswith(_OWN):
            return (METADATA, path) if self.is_ours(os.fstat(target)) else None
        return (METADATA, path) if self.could_be_changed(path) else None

    def could_be_written(self, path: bytes) -> bool:
        """Tell whether the host's own tree would let a file be written."""
        return glance.error_of_writing(self.host + path) == 0

    def could_be_made(self, path: bytes, *, anyway: bool = False) -> bool:
        """Tell whether the host's own tree would let a name be made; ``anyway``: even if it is there."""
        if not anyway and os.path.lexists(self.host + path):
            return False
        return glance.error_of_writing(self.host + (path.rpartition(b"/")[0] or b"/"), enter=True) == 0

    def could_be_removed(self, path: bytes) -> bool:
        """Tell whether the host's own tree would let a name be removed."""
        host = self.host + path
        return os.path.lexists(host) and self.could_be_made(path, anyway=True) and not glance.is_mount(host)

    def could_be_changed(self, path: bytes) -> bool:
        """Tell whether the host's own tree would let the attributes of a file be changed."""
        try:
            about = os.lstat(self.host + path)
        except OSError:
            return False
        changeable = self.is_ours(about) or os.access(self.host + path, os.W_OK)
        return changeable and not glance.is_read_only(self.host + (path.rpartition(b"/")[0] or b"/"))

    def is_ours(self, about: os.stat_result) -> bool:
        """Tell whether the commands own a file, or may act as if they did."""
        return self.owns_all or about.st_uid == self.user

    def is_kept_missing(self, found: Found) -> bool:
        """Tell whether what was found only keeps its name from being made."""
        return found.name in self.absent_names and self.named(found) in self.absent

    def is_in_cover(self, directory: bytes, path: bytes) -> bool:
        """Tell whether a path lies in a directory that only keeps its own name from being made.

        If it is no mount, the host has put another one in its place, and mounts decide once that is covered.
        """
        return path.rpartition(b"/")[0] in self.absent and glance.is_mount(b"%b/." % directory)

    def named(self, found: Found) -> bytes:
        """Return the real path of the last name of a walk."""
        above = glance.real_path(self.at(found.directory))
        return b"%b/%b" % (above.rstrip(b"/"), found.name) if above and found.name else above

    def at(self, descriptor: int) -> bytes:
        """Return the path of an open descriptor."""
        return b"%b%d" % (self.descriptors, descriptor)


def _is_there(start: bytes, text: bytes, thread: int) -> bool:
    """Tell whether a name is there; none stands for what ``start`` is."""
    if not text:
        return True
    with walk(thread, start, text, follow=False) as found:
        return not found.error


def _is_file_for_directory(old: int, new: int) -> bool:
    return stat.S_ISDIR(os.fstat(new).st_mode) and not stat.S_ISDIR(os.fstat(old).st_mode)


def asked_of(use: Use, thread: int, arguments: tuple[int, ...]) -> tuple[bytes, bytes]:
    """Return where a path starts, and its text."""
    directory = _AT_FDCWD if use.directory == NO_ARGUMENT else as_int(arguments[use.directory])
    start = _WORKING_DIRECTORY if directory == _AT_FDCWD else b"fd/%d" % directory
    address = arguments[use.path]
    return start, read_text(thread, address) if address else b""
