"""Answers that are kept: a rule or an exclusion in the local settings.

What cannot be kept (settings are locked, a file is not trusted, a disk is full) changes nothing about the call that
was approved; it is told with its result. One case passes: as long as a command runs inside, the sandbox keeps a
settings file that is not there yet from being made. Such an answer holds for the session at once, and is written when
that is over.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.errors import StockadeError
from stockade.escape import escape
from stockade.policy.command_pattern import CommandPattern
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.settings.local_file import is_held
from stockade.tool.request import ApprovalChoice
from stockade.tool.setting_change import SettingChange, allow_commands, exclude, write
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.policy.model import SandboxPolicy
    from stockade.settings.sources import Locations
    from stockade.tool.request import ApprovalAnswer

_SESSION = Origin(Layer.LOCAL, "an answer in this session")


class Remembered(Value):
    """What became of an answer: a note for the result, and whether it waits to be written."""

    note: str = ""
    waits: bool = False


def remember(answer: ApprovalAnswer, locations: Locations | None) -> Remembered:
    """Keep an answer, if it is one to keep."""
    if answer.choice not in (ApprovalChoice.ALWAYS, ApprovalChoice.EXCLUDE) or not answer.patterns:
        return Remembered()
    if locations is None:
        return Remembered("the answer was not kept: this tool was not told where settings are")
    try:
        change = _change(answer)
        written = write(change, locations)
    except StockadeError as error:
        # What is locked, or is no rule, is refused whoever holds the name.
        if type(error) is StockadeError and is_held(locations):
            return Remembered(
                "the answer holds for this session, and is written when no command runs inside", waits=True
            )
        return Remembered(f"the answer was not kept: {error.message}")
    return Remembered(f"kept in {escape(written.file)}: {change.done}")


def with_answers(policy: SandboxPolicy, answers: Iterable[ApprovalAnswer]) -> SandboxPolicy:
    """Return a policy in which answers hold that wait to be written; those are patterns for certain."""
    rules, excluded = policy.commands.allow, policy.commands.excluded
    for answer in answers:
        patterns = tuple(Sourced(CommandPattern.parse(text), _SESSION) for text in answer.patterns)
        if answer.choice is ApprovalChoice.EXCLUDE:
            excluded += patterns
        else:
            rules += patterns
    return policy.but(commands=policy.commands.but(allow=rules, excluded=excluded))


def _change(answer: ApprovalAnswer) -> SettingChange:
    if answer.choice is ApprovalChoice.ALWAYS:
        return allow_commands(answer.patterns)
    changes = [exclude(pattern) for pattern in answer.patterns]
    edits = tuple(edit for change in changes for edit in change.edits)
    return SettingChange(edits, "; ".join(change.done for change in changes))
