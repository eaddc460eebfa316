"""What some files say, remembered until the kernel reports that one of them has changed.

A plan rests on the configs and indexes of git. Their directories are watched for names that come and go
(``stockade.filesystem.memory``), and here each file for what is written into it. Rules:

- A file is watched before it is read, so no change falls between the two.
- After a report a file is read again only if its inode, size or times are others, and only another answer counts as
  a change: a commit rewrites the index, but its gitlinks mostly stay.
- A file that cannot be watched is looked at each time.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stockade.filesystem.inotify import Inotify

Answer: TypeAlias = "bytes | tuple[str, ...] | None"
_Signature: TypeAlias = "tuple[int, int, int, int] | None"


class Readings:
    """Answers by path and by the question that was asked."""

    def __init__(self, queue: Inotify | None) -> None:
        """Start with nothing known; without a ``queue`` nothing is watched."""
        self._queue = queue
        self._questions: dict[str, dict[str, tuple[Callable[[], Answer], Answer]]] = {}
        self._signatures: dict[str, _Signature] = {}
        self._watches: dict[int, set[str]] = {}
        self._unwatched: set[str] = set()

    def ask(self, path: str, question: str, read: Callable[[], Answer]) -> Answer:
        """Return what ``read`` says about a file, or what it said when nothing has changed since."""
        known = self._questions.get(path)
        if known is None:
            known = self._questions[path] = {}
            if self._queue is not None:
                self._watch(path)
            else:
                self._unwatched.add(path)
            self._signatures[path] = _signature(path)
        if question not in known:
            known[question] = (read, read())
        return known[question][1]

    def answers(self, path: str, signature: _Signature) -> tuple[Answer, ...]:
        """Return what is remembered of a file, nothing if it is another one by now."""
        if signature is None or self._signatures.get(path) != signature:
            return ()
        return tuple(answer for _, answer in self._questions[path].values())

    @property
    def sees_all(self) -> bool:
        """Whether every file is watched."""
        return not self._unwatched

    def written(self, watch: int) -> set[str]:
        """Return the paths of the file that a watch is about."""
        return self._watches.get(watch, set())

    def check(self, paths: Iterable[str]) -> bool:
        """Look again at these files and at those that cannot be watched; tell whether any answer is another now."""
        changed = False
        for path in {*paths, *self._unwatched} & self._questions.keys():
            if self._queue is not None:
                self._watch(path)
            signature = _signature(path)
            if signature is None or signature != self._signatures[path]:
                self._signatures[path] = signature
                changed |= self._asked_again(path)
        return changed

    def forget(self, stale: Callable[[str], bool]) -> None:
        """Forget the files whose paths are stale."""
        for path in [path for path in self._questions if stale(path)]:
            del self._questions[path], self._signatures[path]
            self._unwatched.discard(path)

    def _asked_again(self, path: str) -> bool:
        known = self._questions[path]
        before = {question: answer for question, (_, answer) in known.items()}
        for question, (read, _) in known.items():
            known[question] = (read, read())
        return before != {question: answer for question, (_, answer) in known.items()}

    def _watch(self, path: str) -> None:
        """Watch the file that has this name now; one that is missing is reported by the watch of its directory."""
        self._unwatched.discard(path)
        try:
            watch = None if self._queue is None else self._queue.add_file(path)
        except FileNotFoundError:
            return
        except OSError:
            watch = None
        if watch is None:
            self._unwatched.add(path)
        else:
            self._watches.setdefault(watch, set()).add(path)


def _signature(path: str) -> _Signature:
    try:
        about = os.lstat(path)
    except (OSError, ValueError):
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns
