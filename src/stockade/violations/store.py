"""The violations of one session: the last hundred, and how many there were. Never written to disk.

Rules:

- The same refusal of the same command again is no further entry: it raises the ``times`` of the one that is there.
  That keeps its place and its time, which are those of the first.
- When the store is full, the oldest entry goes; but once a command holds more than half, its own oldest. So a command
  that floods the store leaves half of it to others, and what many commands left before keeps no room from the next.
- What went is counted, in all and for each command: ``total`` is always the sum of what is kept and what was dropped.
- Subscribers are told of each new entry, and of one that is repeated only as often as its number doubles: a loop inside
  must not become one outside. A subscriber that fails breaks nothing; ``failure`` keeps its last words.
- May be used from several threads. Subscribers are called in the one that adds.
"""

from __future__ import annotations

from _thread import allocate_lock  # threading would cost a start of `stockade run` 2 ms

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.annotation import TypeAlias
    from stockade.violations.violation import Operation, Violation

    Key: TypeAlias = tuple[str, Operation, str, str, str, str]
    Subscriber: TypeAlias = Callable[[Violation], object]

#: How many are kept.
KEPT: Final = 100

# Of so many commands it is remembered how much of theirs was dropped.
_COMMANDS: Final = 1000


class Violations:
    """A bounded store. Iterating it gives a snapshot, the newest last."""

    def __init__(self, kept: int = KEPT) -> None:
        """Start empty, also in a session that is restored."""
        self._kept = kept
        self._lock = allocate_lock()
        self._entries: dict[Key, Violation] = {}
        self._held: dict[str, dict[Key, None]] = {}
        self._lost: dict[str, int] = {}
        self._subscribers: dict[object, Subscriber] = {}
        self._total = 0
        self._dropped = 0
        self.failure = ""

    @property
    def total(self) -> int:
        """How many refusals there were, each repetition counted."""
        return self._total

    @property
    def dropped(self) -> int:
        """How many of them are in no entry any more."""
        return self._dropped

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self._entries)

    def __iter__(self) -> Iterator[Violation]:
        """Iterate over the entries of this moment."""
        with self._lock:
            return iter(tuple(self._entries.values()))

    def of(self, command: str) -> tuple[Violation, ...]:
        """Return the entries of one command."""
        with self._lock:
            return tuple(self._entries[key] for key in self._held.get(command, ()))

    def dropped_of(self, command: str) -> int:
        """Return how many refusals of one command are in no entry any more."""
        return self._lost.get(command, 0)

    def add(self, violation: Violation) -> None:
        """Count a violation, as often as it says, and keep it."""
        with self._lock:
            kept, is_news = self._count(violation)
        if is_news:
            self._tell(kept)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Have each new violation told; return what ends that, and may be called more than once."""
        mark = object()
        with self._lock:
            self._subscribers[mark] = subscriber

        def unsubscribe() -> None:
            with self._lock:
                self._subscribers.pop(mark, None)

        return unsubscribe

    def clear(self) -> None:
        """Forget all entries and all counts; subscribers stay."""
        with self._lock:
            self._entries.clear()
            self._held.clear()
            self._lost.clear()
            self._total = self._dropped = 0

    def _count(self, violation: Violation) -> tuple[Violation, bool]:
        key = _key(violation)
        self._total += violation.times
        known = self._entries.get(key)
        if known is not None:
            times = known.times + violation.times
            self._entries[key] = raised = known.but(times=times)
            return raised, times.bit_length() > known.times.bit_length()
        self._entries[key] = violation
        self._held.setdefault(violation.command, {})[key] = None
        while len(self._entries) > self._kept:
            self._drop()
        return violation, True

    def _drop(self) -> None:
        _, keys = max(self._held.items(), key=_size)
        oldest = next(iter(keys if 2 * len(keys) > self._kept else self._entries))
        command = oldest[0]
        keys = self._held[command]
        del keys[oldest]
        if not keys:
            del self._held[command]
        times = self._entries.pop(oldest).times
        self._dropped += times
        self._lost[command] = self._lost.pop(command, 0) + times  # the command that lost last stands last
        if len(self._lost) > _COMMANDS:
            del self._lost[next(iter(self._lost))]

    def _tell(self, violation: Violation) -> None:
        with self._lock:
            subscribers = tuple(self._subscribers.values())
        for subscriber in subscribers:
            try:
                subscriber(violation)
            except Exception as error:  # noqa: BLE001 - whoever listens must not be able to break a refusal
                self.failure = escape(f"{type(error).__name__}: {error}")


def _key(violation: Violation) -> Key:
    """Return what makes two refusals the same: all but time and number."""
    asked = (violation.command, violation.operation, violation.target)
    return (*asked, violation.why, violation.rule, violation.source)


def _size(held: tuple[str, dict[Key, None]]) -> int:
    return len(held[1])
