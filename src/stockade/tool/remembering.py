"""Answers that are kept: a rule or an exclusion in the local settings.

What cannot be kept (settings are locked, a file is not trusted, a disk is full) changes nothing about the call that
was approved; it is told with its result.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.errors import StockadeError
from stockade.escape import escape
from stockade.tool.request import ApprovalChoice
from stockade.tool.setting_change import SettingChange, allow_commands, exclude, write

if TYPE_CHECKING:
    from stockade.settings.sources import Locations
    from stockade.tool.request import ApprovalAnswer


def remember(answer: ApprovalAnswer, locations: Locations | None) -> str:
    """Keep an answer; return a note for the result, or nothing if there was nothing to keep."""
    if answer.choice not in (ApprovalChoice.ALWAYS, ApprovalChoice.EXCLUDE) or not answer.patterns:
        return ""
    if locations is None:
        return "the answer was not kept: this tool was not told where settings are"
    try:
        written = write(_change(answer), locations)
    except StockadeError as error:
        return f"the answer was not kept: {error.message}"
    return f"kept in {escape(written.file)}: {_change(answer).done}"


def _change(answer: ApprovalAnswer) -> SettingChange:
    if answer.choice is ApprovalChoice.ALWAYS:
        return allow_commands(answer.patterns)
    changes = [exclude(pattern) for pattern in answer.patterns]
    edits = tuple(edit for change in changes for edit in change.edits)
    return SettingChange(edits, "; ".join(change.done for change in changes))
