"""What was refused to the commands of a jail, counted: the first of each kind is news, the rest is a number.

Rules: pure; bounded, whatever a command does: of so many places each is told, what goes beyond is told as a number
for each kind of change, without a place; what is new is told at once, how often when somebody asks.
"""

from __future__ import annotations

#: So many places are told apart for each command.
MOST_PLACES = 128
#: Stands for all places beyond.
ELSEWHERE = b""
_THREADS = 256

Key = tuple[bytes, bytes]  # what, and where


class Refusals:
    """The counts of one jail, by the number of the command."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: dict[int, dict[Key, int]] = {}
        self._last: dict[int, Key] = {}

    def add(self, command: int, thread: int, key: Key) -> bool:
        """Count a refusal; tell whether it is news, of which nobody was told.

        A thread that tries something else at the same place next (to remove what it could not write) tries the same.
        """
        last = self._last.get(thread)
        self._last.pop(thread, None)
        self._last[thread] = key if last is None or last[1] != key[1] else last
        if last is not None and last != key and last[1] == key[1]:
            return False
        if len(self._last) > _THREADS:
            del self._last[next(iter(self._last))]
        counts = self._known.setdefault(command, {})
        if key not in counts:
            if len(counts) < MOST_PLACES:
                counts[key] = 0
                return True
            key = (key[0], ELSEWHERE)
        counts[key] = counts.get(key, 0) + 1
        return False

    def give_back(self, command: int, key: Key, times: int) -> None:
        """Keep a number that could not be told."""
        self._known[command][key] += times

    def is_unsaid(self) -> bool:
        """Tell whether there are numbers that nobody was told."""
        return any(count for counts in self._known.values() for count in counts.values())

    def take(self, command: int) -> list[tuple[Key, int]]:
        """Return the numbers that nobody was told, of one command; they are said from then on."""
        counts = self._known.get(command, {})
        unsaid = [(key, count) for key, count in counts.items() if count]
        for key, _ in unsaid:
            counts[key] = 0
        return unsaid

    def commands(self) -> tuple[int, ...]:
        """Return the commands of which something is known."""
        return tuple(self._known)

    def forget(self, command: int) -> None:
        """Forget a command of which everybody has died, if there is nothing left to be said of it."""
        if not any(self._known.get(command, {}).values()):
            self._known.pop(command, None)

    def keep(self, command: int) -> None:
        """Forget all other commands."""
        self._known = {number: counts for number, counts in self._known.items() if number == command}

    def end(self, command: int) -> list[tuple[Key, int]]:
        """Return the last numbers of a command, and forget it."""
        unsaid = self.take(command)
        self._known.pop(command, None)
        return unsaid
