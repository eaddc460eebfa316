"""What the rules say at single places, and what that amounts to along a path.

Each rule, laid over the disk, marks the places that it names. Going down a path, the marks add up to a *mode*. The sums
are those of ``stockade.policy.files``: for writing a bar wins over every opening; for reading the deepest mark
decides, at equal depth the one that hides, and only the administrator's marks answer the administrator's.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.enumeration import Enum
from stockade.filesystem.plan import Operation
from stockade.policy.path_pattern import joined, names_of
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator


class Mark(Enum):
    """What a rule does at a place."""

    OPENS = "opens"
    COPIES = "copies"
    BARS = "bars"
    HIDES = "hides"
    HIDES_BY_POLICY = "hides by policy"
    SHOWS = "shows"
    SHOWS_BY_POLICY = "shows by policy"


class State(Value):
    """The marks on the way to a place, added up. Depths are -1 where there was no such mark."""

    opened: str = ""
    private: str = ""
    barred: str = ""
    hidden: str = ""
    shown: str = ""
    hides: int = -1
    hides_by_policy: int = -1
    shows: int = -1
    shows_by_policy: int = -1

    @property
    def mode(self) -> Operation:
        """What the place should be."""
        by_policy = self.hides_by_policy >= max(self.shows_by_policy, 0)
        if by_policy or self.hides >= max(self.shows, 0):
            return Operation.HIDDEN
        if self.barred:
            return Operation.READ_ONLY
        if self.opened:
            return Operation.WRITABLE
        return Operation.PRIVATE if self.private else Operation.READ_ONLY

    @property
    def reason(self) -> str:
        """Why the place is so."""
        mode = self.mode
        if mode is Operation.HIDDEN:
            return self.hidden
        if mode is Operation.PRIVATE:
            return self.private
        return self.opened if mode is Operation.WRITABLE else self.barred or self.shown


START: Final = State()


class Marks:
    """All marks, by place."""

    def __init__(self) -> None:
        """Start with none."""
        self._marks: dict[str, list[tuple[Mark, str]]] = {}
        self._states: dict[str, State] = {}

    def add(self, path: str, mark: Mark, reason: str) -> None:
        """Mark a place."""
        self._marks.setdefault(path, []).append((mark, reason))
        if self._states:
            self._states.clear()

    def __iter__(self) -> Iterator[str]:
        """Yield the marked places."""
        return iter(self._marks)

    def state_at(self, path: str) -> State:
        """Return what the marks on the way to a place amount to."""
        known = self._states.get(path)
        if known is None:
            names = names_of(path)
            above = START if not names else self.state_at(joined(names[:-1]))
            known = self._states[path] = self._added(above, path, len(names))
        return known

    def _added(self, state: State, path: str, depth: int) -> State:
        for mark, reason in self._marks.get(path, ()):
            state = _with(state, mark, reason, depth)
        return state


def _with(state: State, mark: Mark, reason: str, depth: int) -> State:
    if mark in (Mark.OPENS, Mark.COPIES):
        return state.but(opened=reason) if mark is Mark.OPENS else state.but(private=reason)
    if mark is Mark.BARS:
        return state if state.barred else state.but(barred=reason)
    if mark is Mark.HIDES:
        return state.but(hides=depth, hidden=reason)
    if mark is Mark.HIDES_BY_POLICY:
        return state.but(hides_by_policy=depth, hidden=reason)
    if mark is Mark.SHOWS:
        return state.but(shows=depth, shown=reason)
    return state.but(shows=depth, shows_by_policy=depth, shown=reason)
