"""The promise about a covered line, and whether a shell has kept it.

A line that patterns cover starts no program but those that the patterns name, by the words that they name, found where
``PATH`` has them, in the environment that was there before; and the shell writes no file. A line that is said not to
move ends where it began.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from stockade.errors import InvalidTextError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.exclusion import match_all
from stockade.policy.shell_line import SimpleCommand, parse
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.allowance import allowed_by
from stockade.tool.directory import may_move
from vocabulary import PATTERNS
from world import MOVED, PROBE

if TYPE_CHECKING:
    from shells import Line
    from world import Deed, World

Judge = Callable[[str], bool]

_SOURCED = tuple(Sourced(CommandPattern.parse(text), Origin(Layer.USER)) for text in PATTERNS)
#: Shells set these for whatever they start.
_OF_SHELLS = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "LOGNAME", "FUZZ_LINE"))


def is_covered(line: str) -> bool:
    """Say whether the patterns cover a line, in the words of the code that is tried."""
    covered = match_all(_SOURCED, line).covered
    assert covered or not allowed_by(_SOURCED, line).covered, f"allowed, and not covered: {line!r}"
    return covered


def stays(line: str) -> bool:
    """Say whether the code promises that a line ends in the directory where it began."""
    return not may_move(line)


def is_read(line: str) -> bool:
    """Say whether a line is read at all, as one with a command."""
    return bool(_read(line))


def breaches(line: Line, deeds: list[Deed], world: World) -> list[str]:
    """Return what programs did that the promises about a line do not let them."""
    left = [" ".join(deed.words[1:]) for deed in deeds if deed.exe == f"{world.programs}/{PROBE}"]
    if not line.covered:
        return [what for what in left if what == MOVED]
    ran = [deed for deed in deeds if deed.exe != f"{world.programs}/{PROBE}"]
    unexplained = _unexplained(line.text, ran, world)
    return [f"ran {' '.join(map(repr, deed.words))}: {why}" for deed, why in unexplained] + left


def _unexplained(line: str, deeds: list[Deed], world: World) -> list[tuple[Deed, str]]:
    # The most certain first, so that a command that could be anything explains only what nothing else does.
    left = sorted(_read(line), key=_certainty, reverse=True)
    strange: list[tuple[Deed, str]] = []
    for deed in deeds:
        command = next((command for command in left if _may_be(command, deed.words)), None)
        if command is not None:
            left.remove(command)
        if why := _wrong(deed, command, world):
            strange.append((deed, why))
    return strange


def _read(line: str) -> tuple[SimpleCommand, ...]:
    try:
        return parse(line)
    except InvalidTextError:
        return ()


def _wrong(deed: Deed, command: SimpleCommand | None, world: World) -> str:
    name = deed.words[0] if deed.words else ""
    if command is None:
        return "no command of the line says so"
    if deed.exe != (f"{world.here}/{name}" if "/" in name else f"{world.programs}/{name}"):
        return f"it is {deed.exe.removeprefix(world.root)}"
    allowed = [pattern for pattern in _NAMED if pattern.fullmatch("\0".join(deed.words) + "\0")]
    if not allowed:
        return "no pattern names it"
    assigned = {assignment for pattern in allowed for assignment in _NAMED[pattern]}
    changed = set(deed.environment.items()) ^ set(world.environment.items())
    odd = sorted({key for key, value in changed if key not in _OF_SHELLS and not _assigns(assigned, key)})
    return f"with another {', '.join(odd)}" if odd else ""


def _assigns(assigned: set[str], key: str) -> bool:
    return any(item.startswith(f"{key}=") for item in assigned)


def _certainty(command: SimpleCommand) -> tuple[bool, int]:
    """Return whether all words are known, and how many are before the first that is not."""
    sure = next((at for at, word in enumerate(command.words) if not word.literal), len(command.words))
    return sure == len(command.words), sure


def _may_be(command: SimpleCommand, words: tuple[str, ...]) -> bool:
    whole, sure = _certainty(command)
    expected = tuple(word.text for word in command.words[:sure])
    return bool(command.words) and (words if whole else words[:sure]) == expected


def _expression(text: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return what a pattern says, by its documentation alone: an expression for words that end with NUL each."""
    words = text.removesuffix(":*").split()
    assignments = tuple(word for word in words if re.match(r"\w+=", word))
    words = words[len(assignments) :]
    open_end = text.endswith("*") or not any("*" in word for word in words)
    parts = [r"(?:[^\0]*\0)*" if word == "*" else re.escape(word).replace(r"\*", r"[^\0]*") + r"\0" for word in words]
    return re.compile("".join(parts) + (r"(?:[^\0]*\0)*" if open_end else ""), re.DOTALL), assignments


_NAMED = dict(map(_expression, PATTERNS))
