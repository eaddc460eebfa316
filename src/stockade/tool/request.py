"""The question whether a call may run, and its answer.

A host gives the tool an async function that takes an ``ApprovalRequest`` and returns an ``ApprovalAnswer``. Rules:
whatever is not clearly a yes is a no: an error, another type, nobody to ask. A yes holds for this call; ``ALWAYS``
and ``EXCLUDE`` also write the local settings, from which the next calls know. No answer moves a call from inside to
outside.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, TypeAlias
from stockade.enumeration import Enum
from stockade.escape import escape, legible
from stockade.tool.placement import Place, leaves_walls
from stockade.tool.suggestion import suggested_patterns
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stockade.tool.approval import Approval
    from stockade.tool.call import ShellCall
    from stockade.tool.placement import Placement


class ApprovalChoice(Enum):
    """What somebody may answer."""

    ONCE = "once"
    ALWAYS = "always"
    EXCLUDE = "exclude"
    NO = "no"


class ApprovalAnswer(Value):
    """The answer. ``patterns`` are what to remember; ``reason`` is told to the model, with a no."""

    choice: ApprovalChoice
    patterns: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_yes(self) -> bool:
        """Whether the call runs."""
        return self.choice is not ApprovalChoice.NO


class Suggestion(Value):
    """An answer to offer, in words."""

    label: str
    answer: ApprovalAnswer


class ApprovalRequest(Value):
    """What would run, where, and why it is asked for. ``agent`` names the sub-agent that wants it, if one does."""

    command: str
    description: str
    directory: str
    placement: Placement
    approval: Approval
    suggestions: tuple[Suggestion, ...]
    agent: str = ""
    background: bool = False

    @property
    def outside(self) -> bool:
        """Whether no walls would stand around it."""
        return self.placement.place is Place.OUTSIDE

    def text(self) -> str:
        """Return the question for people, safe to show."""
        where = "OUTSIDE the sandbox" if self.outside else "inside the sandbox"
        who = f" for the sub-agent {escape(self.agent)}" if self.agent else ""
        later = " in the background" if self.background else ""
        command = "\n".join(f"    {legible(line)}" for line in self.command.split("\n"))
        lines = [f"Run{later} {where}{who}, in {escape(self.directory)}?", command]
        if self.description:
            lines.append(f"  it says: {escape(self.description)}")
        lines.append(f"  asked because {legible(self.approval.reason)}")
        return "\n".join(lines)


if TYPE_CHECKING:
    Approve: TypeAlias = Callable[[ApprovalRequest], Awaitable[ApprovalAnswer]]


def make_request(
    call: ShellCall,
    placement: Placement,
    approval: Approval,
    *,
    directory: str,
    agent: str = "",
    remembers: bool = False,
) -> ApprovalRequest:
    """Return the question about a call; ``remembers``: answers can be kept in the local settings."""
    return ApprovalRequest(
        command=call.command,
        description=call.description,
        directory=directory,
        placement=placement,
        approval=approval,
        suggestions=_suggestions(call, placement, approval) if remembers else (_ONCE, _NO),
        agent=agent,
        background=call.run_in_background,
    )


_ONCE = Suggestion("Yes, this once", ApprovalAnswer(ApprovalChoice.ONCE))
_NO = Suggestion("No", ApprovalAnswer(ApprovalChoice.NO))


def _suggestions(call: ShellCall, placement: Placement, approval: Approval) -> tuple[Suggestion, ...]:
    patterns = suggested_patterns(call.command, outside=leaves_walls(placement))
    # These ask each time, whatever else allows the command.
    if not patterns or approval.by in ("ask rule", "planted", "length"):
        return (_ONCE, _NO)
    names = ", ".join(patterns)
    always = Suggestion(f"Yes, and do not ask again for {names}", ApprovalAnswer(ApprovalChoice.ALWAYS, patterns))
    if placement.gate != "bypass":
        return (_ONCE, always, _NO)
    exclude = Suggestion(
        f"Yes, and always run {names} outside the sandbox", ApprovalAnswer(ApprovalChoice.EXCLUDE, patterns)
    )
    return (_ONCE, always, exclude, _NO)
