r"""What a terminal would show of a text that goes back and writes over what it wrote.

``sandbox\r<`` shows ``<andbox``, and ``s\bs`` shows one bold letter. What nobody wrote can be put together so, out of
pieces that look harmless one by one.

Rules: a character takes one place, and marks and unseen ones take none; backspace, carriage return, line feed, tab and
the sequences that move, erase, delete and insert do what they do; all other sequences do nothing. Places to which
nobody wrote count as one blank. The work is bounded: where a text asks for more, it cannot be told what it shows.

Source of truth: ECMA-48, xterm's control sequences.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re

_CSI: Final = "(?:\x1b\\[|\x9b)"
_MOVES: Final = f"\b|\r(?!\n)|{_CSI}[0-9;?]*[@-HJKLMPSTXZ`adefrsu]|\x1b[78DEHMc]"
_SEQUENCES: Final = (
    f"{_CSI}(?P<given>[0-?]*)[ -/]*(?P<final>[@-~])"
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?"
    "|\x1b(?P<short>[ -/]*[0-~])"
    "|[\x1b\x9b]"
)
_PIECES: Final = f"(?P<run>[ -~]+)|(?P<char>[^\x1b\x9b])|{_SEQUENCES}"
_FARTHEST: Final = 10_000
_MOST_WORK: Final = 500_000
_TAB: Final = 8
#: Rows down and places to the right, for each one that is asked for.
_STEPS: Final = {
    "A": (-1, 0),
    "F": (-1, 0),
    "B": (1, 0),
    "e": (1, 0),
    "E": (1, 0),
    "C": (0, 1),
    "a": (0, 1),
    "D": (0, -1),
}
_BEHIND: Final = 0
_AHEAD: Final = 1
_NOWHERE: Final = frozenset({"Mn", "Me", "Cf", "Cc"})
_SPELLED: Final = {"\b": "\\x08", "\r": "\\x0d", "\x1b": "\\x1b", "\x9b": "\\x9b"}


def moves(text: str) -> bool:
    """Say whether anything in a text goes back to where something was written."""
    return any(sign in text for sign in _SPELLED) and _pattern(_MOVES).search(text) is not None


def shown(text: str) -> str | None:
    """Return what a terminal would show, or ``None`` if that cannot be told."""
    screen = _Screen()
    for found in _pattern(_PIECES).finditer(text):
        if found["run"]:
            screen.write(found["run"])
        elif found["char"]:
            screen.put(found["char"])
        elif found["final"]:
            screen.obey(found["final"], found["given"])
        elif found["short"]:
            screen.obey_short(found["short"])
        if screen.work > _MOST_WORK:
            return None
    return screen.text()


def plain(text: str) -> str:
    """Return a text in which nothing moves without its sequences."""
    return _pattern(_SEQUENCES).sub("", text)


def spelled(text: str) -> str:
    """Return a text in which everything that moves is spelled out, and moves nothing; line ends stay."""
    return _pattern("[\b\x1b\x9b]|\r(?!\n)").sub(lambda found: _SPELLED[found[0]], text)


class _Screen:
    """Rows without end, each a map of places."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, str]] = {}
        self._row = self._column = 0
        self._saved = (0, 0)
        self.work = 0

    def write(self, run: str) -> None:
        """Put a row of plain characters."""
        end = self._column + len(run)
        self._rows.setdefault(self._row, {}).update(zip(range(self._column, end), run, strict=True))
        self._column = end

    def put(self, char: str) -> None:
        if char == "\b":
            self._move(0, -1)
        elif char == "\r":
            self._column = 0
        elif char in "\n\v\f":
            self._row, self._column = self._row + 1, 0
        elif char == "\t":
            self._column += _TAB - self._column % _TAB
        elif char >= " " and _takes_room(char):
            self.write(char)

    def obey(self, final: str, given: str) -> None:
        numbers = [min(int(part[:6]), _FARTHEST) if part.isdecimal() else 0 for part in given.split(";")]
        count = max(numbers[0], 1)
        if final in _STEPS:
            down, right = _STEPS[final]
            self._move(down * count, right * count)
            if final in "EF":
                self._column = 0
        elif final in "G`Hfd":
            self._go(final, count - 1, max(numbers[1] if len(numbers) > 1 else 1, 1) - 1)
        elif final in "su":
            self._save_or_return(save=final == "s")
        elif final in "@PX":
            self._shift(final, count)
        elif final == "K":
            self._erase(numbers[0])
        elif final == "J":
            self._erase_rows(numbers[0])

    def obey_short(self, short: str) -> None:
        if short in "78":
            self._save_or_return(save=short == "7")
        elif short in "DEM":
            self._move(-1 if short == "M" else 1, 0)
            if short == "E":
                self._column = 0

    def text(self) -> str:
        rows = []
        for number in sorted(self._rows):
            pieces, last = [], 0
            for place, char in sorted(self._rows[number].items()):
                pieces.append(f" {char}" if place > last else char)
                last = place + 1
            rows.append("".join(pieces))
        return "\n".join(rows)

    def _move(self, down: int, right: int) -> None:
        self._row = max(self._row + down, 0)
        self._column = min(max(self._column + right, 0), _FARTHEST)

    def _go(self, final: str, first: int, second: int) -> None:
        if final in "G`":
            self._column = first
        elif final == "d":
            self._row = first
        else:
            self._row, self._column = first, second

    def _save_or_return(self, *, save: bool) -> None:
        if save:
            self._saved = self._row, self._column
        else:
            self._row, self._column = self._saved

    def _shift(self, final: str, count: int) -> None:
        """Insert blanks, delete, or erase a number of signs from here on."""
        row = self._rows.get(self._row, {})
        self.work += len(row)
        at, gone, by = self._column, 0 if final == "@" else count, {"@": count, "P": -count, "X": 0}[final]
        self._rows[self._row] = {
            place if place < at else place + by: char for place, char in row.items() if not at <= place < at + gone
        }

    def _erase(self, part: int) -> None:
        row = self._rows.get(self._row, {})
        self.work += len(row)
        self._rows[self._row] = {place: char for place, char in row.items() if not _covers(part, self._column, place)}

    def _erase_rows(self, part: int) -> None:
        self.work += len(self._rows)
        self._rows = {
            row: places
            for row, places in self._rows.items()
            if not _covers(part, self._row, row) or (row == self._row and part in (_BEHIND, _AHEAD))
        }
        if part in (_BEHIND, _AHEAD):
            self._erase(part)


def _covers(part: int, here: int, place: int) -> bool:
    """Say whether a place is erased: what is from here on, or up to here, or everything."""
    return place >= here if part == _BEHIND else place <= here if part == _AHEAD else True


def _takes_room(char: str) -> bool:
    from unicodedata import category

    return category(char) not in _NOWHERE


def _pattern(text: str) -> re.Pattern[str]:
    import re

    return re.compile(text, re.DOTALL)
