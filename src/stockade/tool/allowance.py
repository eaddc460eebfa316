"""Whether all of a line is allowed by rules, with nothing hidden in it.

A rule that allows is a promise about plain words. So a line counts only if every simple command in it matches a rule
and nothing in it runs, writes or becomes something that the words do not say: no substitution, no expansion that can
run code, no redirection to a file, no text that is not certain to be read right. Such a line is not refused: it is
asked for.

``SKIP_CHECK`` in the environment switches this check off, for tests of programs that use the tool. Lines are then
compared by their first words alone, which is no protection at all, and every result says so.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.exclusion import LineMatch, match_all
from stockade.policy.shell_line import SimpleCommand, Word, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.policy.command_pattern import CommandPattern
    from stockade.settings.layer import Sourced

SKIP_CHECK: Final = "STOCKADE_UNSAFE_SKIP_INJECTION_CHECK"
SKIPPED: Final = f"UNSAFE: {SKIP_CHECK} is set: rules that allow commands also allow whatever is hidden in them"


def skips_check(environment: Mapping[str, str]) -> bool:
    """Say whether somebody has switched the check off."""
    return environment.get(SKIP_CHECK, "") not in ("", "0")


def allowed_by(patterns: tuple[Sourced[CommandPattern], ...], line: str, *, check: bool = True) -> LineMatch:
    """Say whether rules allow all of a line, by which of them, or what is in the way."""
    if not check:
        return _by_first_words(patterns, line)
    match = match_all(patterns, line)
    if not match.covered:
        return match
    hidden = next((command for command in parse(line) if _substitutes(command)), None)
    if hidden is not None:
        return LineMatch(False, blocked_by=f"`{hidden}` holds the output of another command")
    return match


def _substitutes(command: SimpleCommand) -> bool:
    # A word that the shell changes stands as it is spelled; quotes around a $( only make this too careful.
    return any(not word.literal and "$(" in word.text for word in (*command.words, *command.assignments))


def _by_first_words(patterns: tuple[Sourced[CommandPattern], ...], line: str) -> LineMatch:
    command = SimpleCommand(tuple(map(Word, line.split())))
    pattern = next((pattern for pattern in patterns if pattern.value.matches(command)), None)
    return LineMatch(False, blocked_by="no pattern matches") if pattern is None else LineMatch(True, (pattern,))
