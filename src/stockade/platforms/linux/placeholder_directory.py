"""One directory of the host that holds placeholders: what can be made there, looked at, and removed.

``stockade.placeholder`` says what a placeholder looks like. All nodes that are made together are hard links of one
inode: its number is journaled before any name leads to it, and a link costs less than half of a node. A file that the
host may write is an inode of its own. So is a directory. It has its name from the beginning, for nothing but ``mkdir``
makes one without replacing what is there; that it will be made is journaled before, its number before it may be
written. Until then its mode tells what it is.

Rules: names are reached through an open directory, never by a path that somebody could bend meanwhile. A link never
replaces what is there. A node is removed only if it is still that very inode, a directory only if it is empty too, and
only by who holds the directory's lock exclusively, and that lock is held shared by who relies on a node that somebody
else has made.

Source of truth: mknod(2), link(2), mkdir(2), flock(2); mount points, when removed, go in every namespace (namespace.c).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from stockade.annotation import TYPE_CHECKING, Final, Literal
from stockade.placeholder import (
    CONTENTS,
    FILE_MODE,
    MARK,
    STAGE,
    UNMADE,
    has_mark,
    is_empty,
    is_kept,
    is_marked,
    is_placeholder,
    is_unmade,
    shape_of,
)
from stockade.platforms.linux.journal import (
    TEMPORARY,
    Journal,
    Record,
    intended_entry,
    lock,
    new_temporary,
    nodes_entry,
    path_entry,
    temporary_entry,
)
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stockade.placeholder import Shape

State = Literal["made", "present", "unneeded", "impossible", "changed"]
Verdict = tuple[State, str]

_DIRECTORY: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BOOT_MARGIN: Final = 2.0
_PATIENCE: Final = 0.02  # another user's sandbox needs the lock for less
_HASTE: Final = 0.002  # what is not removed now, is later
_ATTEMPTS: Final = 3
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What a directory lets others do, its placeholders do too; but these nobody else should look into.
_OPEN_MODE: Final = 0o755
_OWN_MODE: Final = 0o700
_PRIVATE: Final = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker", ".password-store"})
_MADE: Final[Verdict] = ("made", "")
_PRESENT: Final[Verdict] = ("present", "")
_REPLACED: Final[Verdict] = ("changed", "something else is there")
# A name that nothing can have, and a directory in which somebody has put something.
_LEFT: Final = frozenset({errno.ENAMETOOLONG, errno.ENOTEMPTY, errno.EEXIST})
GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE})


class Directory:
    """A directory, open."""

    __slots__ = ("descriptor", "path", "status")

    def __init__(self, path: str) -> None:
        """Open it by its path, in which no link may be."""
        self.path = path
        try:
            self.descriptor = os.open(path, os.O_RDONLY | _DIRECTORY)
        except PermissionError:
            self.descriptor = os.open(path, os.O_PATH | _DIRECTORY)  # one that may be written but not listed
        try:
            self.status = os.fstat(self.descriptor)
            self._require_no_links()
        except BaseException:
            os.close(self.descriptor)
            raise

    def _require_no_links(self) -> None:
        if os.readlink(f"/proc/self/fd/{self.descriptor}") != self.path:
            raise OSError(errno.ELOOP, "a link stands in its path", self.path)

    def close(self, *, unlock: bool = True) -> None:
        """Close it, and let go of its lock even if a forked process has a copy of the descriptor."""
        if unlock:
            lock(self.descriptor, fcntl.LOCK_UN, 0)
        os.close(self.descriptor)

    def look(self, name: str) -> os.stat_result | None:
        """Return what the name leads to, without following a link; ``None`` if nothing."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def keeps(self, name: str) -> bool:
        """Tell whether a placeholder is at a name."""
        try:
            return is_kept(name, self.descriptor)
        except FileNotFoundError:
            return False

    def refusal(self, error: OSError) -> Verdict:
        """Say what it means that no node can be made here."""
        number = error.errno
        if number == errno.EROFS:
            return "unneeded", "the file system is read-only"
        if number == errno.EACCES and os.geteuid() not in {0, self.status.st_uid}:
            return "unneeded", "the directory is another user's"
        if number in GONE:
            return "changed", "its directory is gone"
        return "impossible", error.strerror or str(error)

    def clean(self, journal: Journal) -> bool:
        """Remove what is journaled and still ours; tell whether nothing is left to do."""
        if lock(self.descriptor, fcntl.LOCK_EX, _HASTE) is False:
            return False
        done = [self.remove(name, inode) for inode, name in journal.nodes]
        done += [self.remove(name, None) for name in journal.temporaries]
        done += [self.remove(name, None, unmade=True) for name in journal.intended]
        return all(done)

    def remove(self, name: str, inode: int | None, *, unmade: bool = False) -> bool:
        """Remove a placeholder, if it is one and has this inode number; tell whether that is settled.

        With ``unmade`` only a directory goes whose maker was killed before it knew the number.
        """
        try:
            status = self.look(name)
            # Somebody on the host may put a file of his own here, and then it stays. Between this look and the unlink
            # lie two microseconds; to move the name aside first would need a way back for what was not ours.
            ours = status is not None and (is_unmade(status) if unmade else _is_removable(status, name))
            if name == ".git" and status is not None and inode == status.st_ino and stat.S_ISDIR(status.st_mode):
                # A file of that number is the host's: the directory is gone, and the number was free again.
                self._recover()
                ours = True
            if status is not None and ours and inode in {None, status.st_ino}:
                (os.rmdir if stat.S_ISDIR(status.st_mode) else os.unlink)(name, dir_fd=self.descriptor)
        except FileNotFoundError:
            return True
        except OSError as error:
            return error.errno in GONE or error.errno in _LEFT
        return True

    def _recover(self) -> None:
        """Make the project's what commands have left on the stage of its ``.git``, unless somebody uses that still."""
        if os.path.lexists(f"{self.path}/.git/{STAGE}"):
            from stockade.platforms.linux.recovery import recover

            recover(f"{self.path.rstrip('/')}/.git")

    def remove_if_stale(self, name: str) -> bool:
        """Remove a stranger's placeholder that is older than this boot, so that nobody can rely on it any more."""
        started = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - _BOOT_MARGIN
        status = self.look(name)
        if status is None or not self.keeps(name) or status.st_ctime >= started:
            return status is None
        other = Directory(self.path)  # locks of its own: ours may be held already
        try:
            if lock(other.descriptor, fcntl.LOCK_EX, _PATIENCE) is not True:
                return False
            again = other.look(name)
            return again is None or (again.st_ctime < started and other.remove(name, status.st_ino))
        except OSError:
            return False
        finally:
            other.close()


class Hold:
    """What one lease holds in one directory."""

    __slots__ = ("_journal", "_record", "_relies", "directory")

    def __init__(self, directory: Directory, record: Record) -> None:
        """Take over an open directory and its record, held shared."""
        self.directory = directory
        self._record = record
        self._journal = Journal()
        self._relies = False

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return what keeps the hold alive in whatever process has a copy."""
        return (self._record.descriptor, *((self.directory.descriptor,) if self._relies else ()))

    def make(self, names: Sequence[str], shapes: Mapping[str, Shape] | None = None) -> dict[str, Verdict]:
        """See to it that a placeholder is at each name, of the shape that it is to have."""
        found: dict[str, Verdict] = {}
        self._journal = self._record.read()
        if self.directory.path not in self._journal.paths:
            self._record.append(path_entry(self.directory.path))
        elif self._journal.nodes:  # others are here: most names will be there already
            found = {name: verdict for name in names if (verdict := self._judge(name)) is not None}
        groups: dict[bytes | None, list[str]] = {}
        directories: list[str] = []
        for name in names:
            if name in found:
                continue
            shape = (shapes or {}).get(name) or ("file" if name in CONTENTS else shape_of(name))
            if shape == "directory":
                directories.append(name)
            elif shape == "node":
                groups.setdefault(None, []).append(name)
            elif name in CONTENTS:
                groups.setdefault(CONTENTS[name], []).append(name)
            else:
                found |= self._create([name], b"")
        if directories:
            found |= self._create_directories(directories)
        for content, missing in groups.items():
            found |= self._create(missing, content)
        return {name: found[name] for name in names}

    def release(self) -> None:
        """Let go; who is the last removes the nodes."""
        try:
            if self._record.is_alone() and self.directory.clean(self._record.read()):
                self._record.remove()
        finally:
            self.close(unlock=True)

    def close(self, *, unlock: bool) -> None:
        """Close the descriptors; without ``unlock`` whoever has copies still holds."""
        self._record.close(unlock=unlock)
        self.directory.close(unlock=unlock)

    def _create(self, names: Sequence[str], content: bytes | None) -> dict[str, Verdict]:
        place = self.directory.descriptor
        temporary = new_temporary()
        self._record.append(temporary_entry(temporary))
        try:
            _make_node(temporary, content, place)
        except OSError as error:
            return dict.fromkeys(names, self.directory.refusal(error))
        try:
            status = os.stat(temporary, dir_fd=place, follow_symlinks=False)
            if content != b"" or is_placeholder(status):
                self._record.append(nodes_entry(status.st_ino, names))
                return {name: self._link(temporary, name) for name in names}
        finally:
            self.directory.remove(temporary, None)
        return self._create(names, None)  # the disk does not keep the times that it is given

    def _create_directories(self, names: Sequence[str]) -> dict[str, Verdict]:
        self._record.append(intended_entry(names))
        found: dict[str, Verdict] = {}
        made: dict[str, int] = {}
        try:
            for name in names:
                found[name] = self._attempt(name, os.mkdir, name, UNMADE, dir_fd=self.directory.descriptor)
                if found[name] is _MADE:
                    made[name] = self._open_new(name)
            unmarked = self._mark(made)
        finally:
            for descriptor in made.values():
                os.close(descriptor)
        return found | self._create(unmarked, None) if unmarked else found

    def _open_new(self, name: str) -> int:
        """Open a directory that was made a moment ago: whatever has its name by now, nothing else is to be changed."""
        try:
            return os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=self.directory.descriptor)
        except OSError:
            # It is not there any more, or the umask lets nobody look into it. Then it cannot be marked.
            return os.open(".", os.O_PATH | _DIRECTORY, dir_fd=self.directory.descriptor)

    def _mark(self, made: dict[str, int]) -> list[str]:
        """Make of new directories what they are to be; return those that could not be, and are gone again."""
        # There are disks without modes.
        ours = {name: about for name, file in made.items() if is_unmade(about := os.fstat(file)) or is_empty(file)}
        self._record.append(b"".join(nodes_entry(about.st_ino, [name]) for name, about in ours.items()))
        return [name for name in made if name not in ours or not self._finish(name, made[name], ours[name])]

    def _finish(self, name: str, descriptor: int, about: os.stat_result) -> bool:
        mode = _OWN_MODE if name in _PRIVATE else _OWN_MODE | self.directory.status.st_mode & _OPEN_MODE
        with suppress(OSError):
            os.utime(descriptor, ns=(MARK, MARK))
            if has_mark(os.fstat(descriptor)):
                with suppress(OSError):
                    os.fchmod(descriptor, mode | about.st_mode & stat.S_ISGID)
                return True
        with suppress(OSError):
            os.rmdir(name, dir_fd=self.directory.descriptor)
        return False

    def _link(self, temporary: str, name: str) -> Verdict:
        place = self.directory.descriptor
        return self._attempt(name, os.link, temporary, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)

    def _attempt(self, name: str, make: Callable[..., None], *arguments: object, **options: object) -> Verdict:
        """Make something at a name, unless something is there."""
        for _ in range(_ATTEMPTS):
            try:
                make(*arguments, **options)
            except FileExistsError:
                verdict = self._judge(name)
                if verdict is not None:
                    return verdict
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    return "unneeded", "no name can be so long"
                return self.directory.refusal(error)
            else:
                return _MADE
        return "changed", "it comes and goes"

    def _judge(self, name: str) -> Verdict | None:
        """Say what is at a name; ``None`` if nothing is."""
        status = self.directory.look(name)
        if status is None:
            return None
        if not self.directory.keeps(name):
            return _REPLACED
        if self._is_ours(name, status.st_ino):
            return _PRESENT
        if self.directory.remove_if_stale(name):
            return None
        return self._rely(name)

    def _is_ours(self, name: str, inode: int) -> bool:
        """Tell whether it is journaled: as we last read, or since."""
        if (inode, name) not in self._journal.nodes:
            self._journal = self._record.read()
        return (inode, name) in self._journal.nodes

    def _rely(self, name: str) -> Verdict | None:
        """Use the node of another user or machine: he removes it only if he can have the directory's lock alone."""
        if not self._relies:
            self._relies = lock(self.directory.descriptor, fcntl.LOCK_SH, _PATIENCE) is True
        if not self._relies:
            return "impossible", "another user's sandbox is there, and the directory cannot be locked"
        status = self.directory.look(name)
        if status is None:
            return None
        return _PRESENT if self.directory.keeps(name) else _REPLACED


def _make_node(name: str, content: bytes | None, place: int) -> None:
    if content is None:
        os.mknod(name, stat.S_IFSOCK, dir_fd=place)
        return
    file = os.open(name, _NEW, FILE_MODE if content else 0o666, dir_fd=place)
    try:
        if content:
            os.fchmod(file, FILE_MODE)  # whatever the umask took away
            os.write(file, content)
        else:
            os.utime(file, ns=(MARK, MARK))
    finally:
        os.close(file)


def _is_removable(status: os.stat_result, name: str) -> bool:
    """Tell whether this may be one of ours: a placeholder, or a file that is to become one under its temporary name.

    Of a directory it is said as if it were empty; only then it can be removed.
    """
    # A bare node is one at any name: another version of this program may have made it, and journaled it here.
    if is_placeholder(status, name) or is_placeholder(status) or is_marked(status):
        return True
    if not name.startswith(TEMPORARY):
        return False
    is_empty = stat.S_ISREG(status.st_mode) and not status.st_size  # killed before its content was written
    return is_empty or any(is_placeholder(status, kept) for kept in CONTENTS)


def refusals(names: Iterable[str], error: OSError) -> dict[str, Verdict]:
    """Say what it means for these names that their directory cannot be opened."""
    changed = error.errno in GONE
    verdict: Verdict = ("changed" if changed else "impossible", f"its directory: {error.strerror}")
    return dict.fromkeys(names, verdict)
