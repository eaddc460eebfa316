"""Refusals, counted until they are told: the same one again is one more time, and their number has a bound.

Rules: pure. Whose they are is a number, as its caller has it. What there is no room for is counted without a name.
"""

from __future__ import annotations

#: So many different ones are kept until they are told.
KEPT = 1000
_WORD = 8

#: A path, and how often it was refused; the path is empty for what had no room.
Refusal = tuple[bytes, int]
_NO_ROOM = b""


class Tally:
    """What is still to be told."""

    __slots__ = ("_counts", "_size")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._counts: dict[int, dict[bytes, int]] = {}
        self._size = 0

    def __bool__(self) -> bool:
        """Tell whether there is anything to tell."""
        return bool(self._counts)

    def add(self, who: int, path: bytes, times: int = 1) -> None:
        """Count a refusal."""
        counts = self._counts.setdefault(who, {})
        if path not in counts and self._size >= KEPT:
            path = _NO_ROOM
        if path not in counts:
            self._size += path != _NO_ROOM
        counts[path] = counts.get(path, 0) + times

    def who(self) -> list[int]:
        """Return whose refusals there are."""
        return list(self._counts)

    def take(self, who: int) -> list[Refusal]:
        """Return the refusals of one, in the order in which each was first met, and forget them."""
        counts = self._counts.pop(who, {})
        self._size -= len(counts) - (_NO_ROOM in counts)
        return list(counts.items())


def packed(refusals: list[Refusal]) -> list[bytes]:
    """Return refusals as the fields of a packet."""
    return [field for path, times in refusals for field in (path, times.to_bytes(_WORD, "little"))]


def unpacked(fields: list[bytes]) -> list[Refusal]:
    """Return the refusals that are in the fields of a packet."""
    return [(path, int.from_bytes(times, "little")) for path, times in zip(fields[::2], fields[1::2], strict=True)]
