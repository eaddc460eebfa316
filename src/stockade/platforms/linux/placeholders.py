"""Placeholders: something to mount on where a protected name does not exist yet, while a command runs.

Unlinking a mount point detaches the mount in every namespace, so two sandboxes that share a directory would take
each other's walls down if each removed what it made. Therefore the sandboxes of a user count themselves, across
processes, with a record for each directory (see journal.py) in the user's runtime directory; only the last one removes
the nodes. After any death the next ``sweep`` or the next last one does.

Rules: what cannot be made is a verdict for that name, never a failure of the lease; only a runtime directory or a
record that cannot be used is an error. What is no placeholder of the journal is never removed, save a placeholder
that is older than this boot. A plan must take a placeholder for a missing name (``is_kept``), and no command
may see the records (``journal_directory``).
"""

from __future__ import annotations

import os
from errno import EMFILE, ENFILE

from stockade.annotation import TYPE_CHECKING, Final, Self
from stockade.errors import InvalidTextError, UnavailableError
from stockade.placeholder import is_kept
from stockade.platforms.linux.journal import Record, inode_of, record_name
from stockade.platforms.linux.placeholder_directory import (
    GONE,
    Directory,
    Hold,
    State,
    Verdict,
    refusals,
)
from stockade.platforms.runtime_directory import runtime_directory
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stockade.placeholder import Shape

__all__ = ["Lease", "Placeholder", "State", "acquire", "is_kept", "journal_directory", "sweep"]

_PRIVATE: Final = 0o700
# That a directory cannot be opened says nothing about it, if this process can open nothing at all.
_NO_ROOM: Final = frozenset({EMFILE, ENFILE})


class Placeholder(Value):
    """What became of one name.

    ``made`` and ``present``: there is something to mount on. ``unneeded``: nobody who is not root could make the name
    either. ``impossible``: the walls need another way. ``changed``: the plan is out of date. ``reason`` says why.
    """

    path: str
    state: State
    reason: str = ""


class Lease:
    """Placeholders that stay at least until ``release``, or until the last copy of ``descriptors`` is closed."""

    __slots__ = ("_holds", "_process", "_verdicts")

    def __init__(self) -> None:
        """Hold nothing yet; see ``acquire``."""
        self._holds: list[Hold] = []
        self._process = os.getpid()
        self._verdicts: dict[str, Verdict] = {}

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """Return what became of each name, in the order of the directories."""
        return tuple(Placeholder(path, *verdict) for path, verdict in self._verdicts.items())

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the paths that can be mounted on."""
        return tuple(path for path, (state, _) in self._verdicts.items() if state in {"made", "present"})

    @property
    def changed(self) -> tuple[Placeholder, ...]:
        """Return the names that must be planned again."""
        return self._in("changed")

    @property
    def impossible(self) -> tuple[Placeholder, ...]:
        """Return the names that must be protected in another way."""
        return self._in("impossible")

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return what a process must have copies of to keep the placeholders even if this one is killed."""
        return tuple(descriptor for hold in self._holds for descriptor in hold.descriptors)

    def release(self) -> None:
        """Let go, whoever has copies: the commands have ended. May be called again; a forked copy only closes."""
        holds, self._holds = self._holds, []
        for hold in holds:
            if os.getpid() != self._process:
                hold.close(unlock=False)
                continue
            try:
                hold.release()
            except OSError:
                continue  # what is left is journaled: the next sweep removes it

    def __enter__(self) -> Self:
        """Hold."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go."""
        self.release()

    def _in(self, state: State) -> tuple[Placeholder, ...]:
        return tuple(placeholder for placeholder in self.placeholders if placeholder.state == state)

    def _add(self, parent: str, names: list[str], journals: str, shapes: Mapping[str, Shape]) -> None:
        try:
            directory = Directory(parent)
        except OSError as error:
            if error.errno in _NO_ROOM:
                raise
            self._note(parent, refusals(names, error))
            return
        try:
            record = Record.shared(f"{journals}/{record_name(directory.status.st_dev, directory.status.st_ino)}")
        except BaseException:
            directory.close()
            raise
        hold = Hold(directory, record)
        self._holds.append(hold)
        start = _start(parent)
        self._note(parent, hold.make(names, {name: shapes[start + name] for name in names if start + name in shapes}))

    def _note(self, parent: str, verdicts: dict[str, Verdict]) -> None:
        start = _start(parent)
        self._verdicts.update((start + name, verdict) for name, verdict in verdicts.items())


def _start(parent: str) -> str:
    return parent if parent == "/" else parent + "/"


def acquire(
    paths: Iterable[str], journals: str = "", lease: Lease | None = None, shapes: Mapping[str, Shape] | None = None
) -> Lease:
    """Put placeholders at these paths, absolute and resolved, and hold them.

    ``shapes`` are those that a plan has chosen; where there is none, the name tells. Who can be interrupted at any
    moment gives an empty ``lease`` that is known already to whoever cleans up.
    """
    grouped = _grouped(paths)
    lease = lease or Lease()
    try:
        journals = journals or journal_directory()
        for parent, names in grouped.items():
            lease._add(parent, names, journals, shapes or {})  # noqa: SLF001 - only a lease that is being made may grow
    except OSError as error:
        lease.release()
        if error.errno in _NO_ROOM:
            raise
        message = f"cannot journal placeholders in {journals}: {error.strerror}"
        raise UnavailableError(message, "Free space or descriptors, or mend the directory's permissions.") from error
    except BaseException:
        lease.release()
        raise
    return lease


def journal_directory() -> str:
    """Return where this user's records are; make it if need be. No command may see it, nor rename what holds it."""
    path = runtime_directory() + "/placeholders"
    try:
        os.mkdir(path, _PRIVATE)
        os.chmod(path, _PRIVATE)  # whatever the umask took away
    except FileExistsError:
        return path
    except OSError as error:
        message = f"cannot make {path}: {error.strerror}"
        raise UnavailableError(message, "Free space, or mend the directory's permissions.") from error
    return path


def sweep(journals: str = "") -> int:
    """Remove what sandboxes that were killed have left; return how many records were settled."""
    journals = journals or journal_directory()
    try:
        names = os.listdir(journals)
    except OSError:
        return 0
    return sum(_settle(f"{journals}/{name}", inode) for name in names if (inode := inode_of(name)) is not None)


def _settle(path: str, inode: int) -> bool:
    record = Record.exclusive(path)
    if record is None:
        return False
    try:
        journal = record.read()
        if not all(_clean(directory, inode, record) for directory in journal.paths):
            return False
        record.remove()
    except OSError:
        return False
    finally:
        record.close()
    return True


def _clean(path: str, inode: int, record: Record) -> bool:
    """Clean the directory if it is still the one that the record is about; tell whether that is settled."""
    try:
        directory = Directory(path)
    except OSError as error:
        return error.errno in GONE
    try:
        return directory.status.st_ino != inode or directory.clean(record.read())
    finally:
        directory.close()


def _grouped(paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the names by their directories."""
    grouped: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        parent, _, name = path.rpartition("/")
        if name in {"", ".", ".."} or "\0" in name:
            raise _abnormal(path)
        grouped.setdefault(parent or path[:1], []).append(name)
    for parent in grouped:
        if not parent.startswith("/") or "\0" in parent or os.path.normpath(parent) != parent:
            raise _abnormal(parent)
    return grouped


def _abnormal(path: str) -> InvalidTextError:
    message = f"not an absolute, normal path: {path!r}"
    return InvalidTextError(message, "resolve the path first")
