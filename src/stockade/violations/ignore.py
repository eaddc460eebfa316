"""Which violations are not worth reporting: ``sandbox.ignoreViolations``.

An entry is ``"*"`` or a command pattern, and a text. It covers a violation that contains the text (in what was tried
and on what, as it is shown: ``write "/etc/hosts"``), of any command or of a line in which one of the simple commands
matches the pattern: which of them was refused is not known. A line that is not certain to be read right matches no
pattern, and an empty text is contained in nothing: in doubt a violation is reported.

Nothing is allowed by this; a refusal stays one, whether it is told or not.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.settings.layer import Sourced
    from stockade.violations.violation import Violation

_ANY: Final = "*"
_REMEMBERED: Final = 16
_answers: Final[dict[tuple[str, str], bool]] = {}


def ignored(violation: Violation, entries: Iterable[Sourced[tuple[str, str]]]) -> bool:
    """Say whether one of the policy's entries covers a violation."""
    headline = violation.headline
    return any(
        text in headline and (pattern == _ANY or _speaks_of(pattern, violation.line))
        for pattern, text in (entry.value for entry in entries)
        if text
    )


def _speaks_of(pattern: str, line: str) -> bool:
    """Say whether a pattern is one of a line's; remembered, as a command that is refused is refused often."""
    answer = _answers.get((pattern, line))
    if answer is None:
        if len(_answers) >= _REMEMBERED:
            _answers.clear()
        answer = _answers[pattern, line] = _matches(pattern, line)
    return answer


def _matches(pattern: str, line: str) -> bool:
    from stockade.errors import InvalidTextError
    from stockade.policy.command_pattern import CommandPattern
    from stockade.policy.shell_line import parse

    try:
        wanted = CommandPattern.parse(pattern)
        return any(wanted.matches(command) for command in parse(line))
    except InvalidTextError:
        return False
