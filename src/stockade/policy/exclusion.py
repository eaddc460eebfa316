"""Which shell lines run outside the sandbox because ``excludedCommands`` names them.

A line is excluded only if all of it is: it was read with certainty, it has at least one command, every simple command
in it matches a pattern, no command reads or writes a file by redirection, and each builtin of the shell in it is plain
(``stockade.policy.builtin``): the others assign or evaluate, and could make the next word mean anything. In doubt a
line stays inside.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.errors import InvalidTextError
from stockade.policy.builtin import changes_directory, why_not_plain
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.shell_line import parse
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.shell_line import SimpleCommand
    from stockade.settings.layer import Sourced


class LineMatch(Value):
    """Whether patterns cover a whole line: the patterns that were needed, or what is not covered and why."""

    covered: bool
    matched: tuple[Sourced[CommandPattern], ...] = ()
    blocked_by: str = ""


class Exclusion(Value):
    """The verdict on a line; ``matched`` are the patterns that excluded it, ``blocked_by`` is what kept it inside."""

    excluded: bool
    reason: str
    matched: tuple[Sourced[CommandPattern], ...] = ()
    blocked_by: str = ""


def parse_exclusion(text: str) -> CommandPattern:
    """Read an item of ``excludedCommands``; raise InvalidTextError if it is no pattern, or one of everything."""
    pattern = CommandPattern.parse(text)
    if pattern.is_universal:
        message = f"the exclusion {text!a} would take every command out of the sandbox"
        raise InvalidTextError(message, "name a command; to switch the sandbox off, use `stockade disable`")
    return pattern


def decide_exclusion(patterns: tuple[Sourced[CommandPattern], ...], line: str) -> Exclusion:
    """Say whether a line runs outside the sandbox, and why."""
    if not patterns:
        return Exclusion(False, "no command is excluded")
    match = match_all(patterns, line)
    if not match.covered:
        return Exclusion(False, f"not excluded: {match.blocked_by}", blocked_by=match.blocked_by)
    names = ", ".join(f"`{pattern.value}` of {pattern.origin}" for pattern in match.matched)
    return Exclusion(True, f"excluded by {names}", match.matched)


def match_all(patterns: tuple[Sourced[CommandPattern], ...], line: str) -> LineMatch:
    """Say whether each simple command of a line matches one of the patterns."""
    try:
        commands = parse(line)
    except InvalidTextError as error:
        return LineMatch(False, blocked_by=error.message)
    if not commands:
        return LineMatch(False, blocked_by="the line holds no command")
    matched: list[Sourced[CommandPattern]] = []
    moves = changes_directory(commands)
    for command in commands:
        pattern = next((pattern for pattern in patterns if pattern.value.matches(command)), None)
        if pattern is None:
            return LineMatch(False, blocked_by=f"no pattern matches `{command}`")
        if why := _why_not_covered(command, moves=moves):
            return LineMatch(False, blocked_by=why)
        matched.append(pattern)
    return LineMatch(True, tuple(dict.fromkeys(matched)))


def _why_not_covered(command: SimpleCommand, *, moves: bool) -> str:
    """Say why a command is not covered although a pattern matches it; ``moves``: the line changes its directory."""
    name = command.words[0].text
    if command.redirects:
        return _redirection(command)
    if moves and "/" in name and not name.startswith("/"):
        return f"`{command}` is looked for in the directory that the line goes to"
    why = why_not_plain(command)
    return f"{why}: no pattern covers it" if why else ""


def _redirection(command: SimpleCommand) -> str:
    return f"`{command}` is redirected from or to the file {command.redirects[0].text!a}"
