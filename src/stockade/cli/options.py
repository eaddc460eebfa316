"""What a command line parses to, and a quick way there for commands that are started again and again.

``Reader`` takes what a command's ``configure`` says to ``Parser``, and reads the command lines that people and programs
nearly always write: known flags, each with its value. It never says that something is wrong: whatever else it meets,
be it a mistake or only unusual, is left to ``Parser``. To import and build that costs 6 ms. It also tells where a
command begins that stands behind options of ours, which argparse does in a way of its own.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Any
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_SIMPLE = frozenset({"dest", "metavar", "help", "type", "choices", "default", "action"})
_ACTIONS = frozenset({"store", "append", "store_true", "either"})


class Options:
    """Base of what command lines parse to: one attribute for each option."""

    def __init__(self, **values: object) -> None:
        """Begin with what is known already."""
        self.__dict__.update(values)


class _Option(Value):
    """One option that a command takes."""

    dest: str
    action: str
    kind: Callable[[str], object]
    choices: Collection[str] | None

    def take(self, options: Options, text: str) -> None:
        """Note a value. Raises ValueError for one that is none."""
        if self.choices is not None and text not in self.choices:
            raise ValueError(text)
        value = self.kind(text)
        setattr(options, self.dest, [*getattr(options, self.dest), value] if self.action == "append" else value)


class Reader:
    """Reads plain command lines of one command."""

    #: As of ``Parser``; only that tells anybody.
    usage: str | None = None

    def __init__(self, prog: str) -> None:
        """Begin without options."""
        self.prog = prog
        self._valued: dict[str, _Option] = {}
        self._bare: dict[str, tuple[str, bool]] = {}
        self._defaults: dict[str, object] = {}
        self._plain = True

    def add_argument(self, *flags: str, **options: Any) -> None:
        """Learn an option, as ``argparse`` would."""
        action = options.get("action", "store")
        if not flags[0].startswith("-") or not _SIMPLE.issuperset(options) or action not in _ACTIONS:
            self._plain = False
            return
        dest = options.get("dest") or _name(flags)
        self._defaults[dest] = options.get("default", False if action == "store_true" else None)
        if action in {"store_true", "either"}:
            self._bare |= dict.fromkeys(flags, (dest, True))
            if action == "either":
                self._bare |= {f"--no-{flag[2:]}": (dest, False) for flag in flags}
            return
        option = _Option(dest, action, options.get("type", str), options.get("choices"))
        self._valued |= dict.fromkeys(flags, option)

    def add_argument_group(self, _title: str) -> Reader:
        """Return where to add more; groups are for those who read."""
        return self

    def split(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """Part our own words from the command's, which begin with the first that is no option, or behind ``--``.

        An unknown word with a dash in front counts as ours, and ends the search: ``Parser`` says what is wrong with it.
        """
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] not in {"-", "--"}:
            known, valued = self._shape(words[at])
            at += 1
            if not known:
                break
            if valued and at < len(words):
                at += 1
        behind = at + 1 if words[at : at + 1] == ["--"] else at
        return list(words[:at]), list(words[behind:])

    def _shape(self, word: str) -> tuple[bool, bool]:
        """Tell whether a word is an option of ours, and whether its value is the next word."""
        if word in self._bare or word in self._valued:
            return True, word in self._valued
        if word.startswith("--"):
            return word.partition("=")[0] in self._valued, False
        # Letters behind one dash: options without a value, and at last one whose value may follow at once.
        for place, letter in enumerate(word[1:], 1):
            if f"-{letter}" in self._valued:
                return True, place == len(word) - 1
            if f"-{letter}" not in self._bare:
                break
        else:
            return True, False
        return False, False

    def read(self, words: Sequence[str], options: Options) -> bool:
        """Parse into ``options``; ``False`` if that is for ``Parser`` to do, and then ``options`` is as it was."""
        found = Options(**self._defaults)
        if not self._plain or not self._read(list(words), found):
            return False
        options.__dict__.update(found.__dict__)
        return True

    def _read(self, words: list[str], options: Options) -> bool:
        words.reverse()
        while words:
            flag = words.pop()
            if flag in self._bare:
                setattr(options, *self._bare[flag])
                continue
            flag, given, text = flag.partition("=") if flag.startswith("--") else (flag, "", "")
            # A value that looks like a flag may be a mistake.
            if not given and words and not words[-1].startswith("-"):
                text = words.pop()
            if flag not in self._valued or not text:
                return False
            try:
                self._valued[flag].take(options, text)
            except ValueError:
                return False
        return True


def _name(flags: Sequence[str]) -> str:
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    return long.lstrip("-").replace("-", "_")
