"""Files with more than one name: a second name in a writable place opens a file that its first name keeps closed.

A mount closes a name, not a file. Inside a sandbox no such name can be made (link(2) does not cross mounts), so only
those count that were there before. Two questions, both bounded:

- ``twins``: which files in writable places are the same as a file that a plan closes? Only closed files with
  more than one link are looked for, so this costs a question per closed file, and a walk only if there is such a file.
  The walk asks nothing per file: listings tell the inode number (``d_ino``).
- ``leads_out``: which files in a tree have names outside it? A question per file, so it is for reports (``doctor``),
  not for every command.

Not covered: names beyond the bounds (they are reported as not searched), closed directories with more files than the
bound, names that somebody outside makes while a session runs, and second names of Stockade's own files: installers
link whole environments from their cache, and every plan would search the writable trees for them.
"""

from __future__ import annotations

import os
import stat
from itertools import islice

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.filesystem.plan import Operation
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.filesystem.plan import Plan

#: So many files are looked at in each closed directory, and in all of them. Commands can fill directories that are
#: closed later, so what closes one file comes first, then what is hidden.
MOST_CLOSED: Final = 5_000
MOST_OF_ALL: Final = 200_000
MOST_WALKED: Final = 1_000_000
MOST_REPORTED: Final = 200_000
_CLOSED: Final = (Operation.HIDDEN, Operation.READ_ONLY)


class Twins(Value):
    """Pairs of a name in a writable place and the closed name of the same file, and what was left undone."""

    pairs: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def twins(plan: Plan, besides: frozenset[str] = frozenset()) -> Twins:
    """Return the other names, in the writable places of a plan, of the files that it hides or keeps from writing there.

    Make the plan again with these pairs if there are any. ``besides`` are closed places whose files are not looked for.
    """
    closed = [mount.path for kind in _CLOSED for mount in plan.mounts if mount.operation is kind]
    wanted, left = _linked(path for path in closed if path not in besides)
    notes = (f'hard links of closed files were looked for in a part of "{escape(left)}" only',) if left else ()
    if not wanted:
        return Twins(notes=notes)
    shut = frozenset(closed)
    pairs: list[tuple[str, str]] = []
    walked = 0
    for mount in plan.mounts:
        if mount.operation is Operation.WRITABLE:
            for entry in _walk(mount.path, shut):
                walked += 1
                if walked > MOST_WALKED:
                    left = f"hard links of closed files were looked for among the first {MOST_WALKED} names only"
                    return Twins(tuple(dict.fromkeys(pairs)), (*notes, left))
                original = wanted.get(entry.inode())
                if original and _same(entry.path, original):
                    pairs.append((entry.path, original))
    return Twins(tuple(dict.fromkeys(pairs)), notes)


def leads_out(root: str, limit: int = MOST_REPORTED) -> tuple[str, ...]:
    """Return the files below a directory that have more names than are found there, among the first ``limit``."""
    found: dict[tuple[int, int], list[str]] = {}
    counts: dict[tuple[int, int], int] = {}
    for number, entry in enumerate(_walk(root, frozenset())):
        if number >= limit:
            break
        status = _status(entry.path)
        if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            found.setdefault((status.st_dev, status.st_ino), []).append(entry.path)
            counts[status.st_dev, status.st_ino] = status.st_nlink
    return tuple(sorted(path for key, paths in found.items() if len(paths) < counts[key] for path in paths))


def _linked(closed: Iterable[str]) -> tuple[dict[int, str], str]:
    """Return the files with several names at or below these places, by inode, and what was not looked through."""
    wanted: dict[int, str] = {}
    directories = []
    for path in closed:
        status = _status(path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            directories.append(path)
        else:
            _note(status, path, wanted)
    left, looked = "", 0
    for path in directories:
        entries = _walk(path, frozenset())
        for entry in islice(entries, MOST_CLOSED):
            looked += 1
            if entry.is_file(follow_symlinks=False):
                _note(_status(entry.path), entry.path, wanted)
        if next(entries, None) is not None:
            left = left or path
        if looked > MOST_OF_ALL:
            return wanted, left or path
    return wanted, left


def _note(status: os.stat_result | None, path: str, wanted: dict[int, str]) -> None:
    if status is not None and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        wanted.setdefault(status.st_ino, path)


def _walk(top: str, shut: frozenset[str]) -> Iterator[os.DirEntry[str]]:
    """Yield all that is no directory below a directory, but for what is shut."""
    todo = [top]
    while todo:
        try:
            with os.scandir(todo.pop()) as listed:
                entries = list(listed)
        except (OSError, ValueError):
            continue
        for entry in entries:
            if entry.path in shut:
                continue
            if entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            else:
                yield entry


def _same(path: str, other: str) -> bool:
    one, two = _status(path), _status(other)
    return one is not None and two is not None and os.path.samestat(one, two)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None
