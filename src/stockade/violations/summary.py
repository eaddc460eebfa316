"""Violations for people, at the end of a run: in short, in full, or for programs.

In short, what was refused for one reason and would be allowed by one change stands together: a thousand refusals of one
host are one line, and one below it that says what to do. All texts come safe from the violation itself; lines of
commands are escaped here.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.violations.violation import Violation

#: So many groups are shown in short.
MOST: Final = 3

_LONGEST_REMEDY: Final = 300
_CODES: Final = {"bold": "1", "dim": "2", "red": "31"}


def summary(violations: Sequence[Violation], *, dropped: int = 0, colour: bool = False) -> str:
    """Return a few lines, or an empty text if nothing was refused; ``dropped`` were more than anybody kept."""
    if not violations and not dropped:
        return ""
    groups = _groups(violations)
    shown, rest = groups[:MOST], groups[MOST:]
    lines = [_heading(violations, dropped, colour=colour)]
    for group in shown:
        lines += _in_short(group, colour=colour)
    if more := sum(map(_times, rest)) + dropped:
        lines.append(_painted(f"  and {more} more: see them with --violations=full", "dim", colour=colour))
    return "".join(f"{line}\n" for line in lines)


def full(violations: Sequence[Violation], *, dropped: int = 0, colour: bool = False) -> str:
    """Return all there is to say, under the line of each command if there are several."""
    if not violations and not dropped:
        return ""
    lines = [_heading(violations, dropped, colour=colour)]
    commands = dict.fromkeys(violation.command for violation in violations)
    for command in commands:
        own = [violation for violation in violations if violation.command == command]
        if len(commands) > 1:
            lines.append(_painted(f"  {_named(own[0])}", "bold", colour=colour))
        for violation in own:
            lines += _in_full(violation, colour=colour)
    if dropped:
        lines.append(_painted(f"  and {dropped} more, which were not kept", "dim", colour=colour))
    return "".join(f"{line}\n" for line in lines)


def as_json(violations: Sequence[Violation], *, dropped: int = 0) -> str:
    """Return one JSON object on one line: how many there were, how many were not kept, and the rest."""
    import json

    told = {
        "total": _times(violations) + dropped,
        "dropped": dropped,
        "violations": [violation.mapping() for violation in violations],
    }
    return json.dumps(told) + "\n"


def _heading(violations: Sequence[Violation], dropped: int, *, colour: bool) -> str:
    total = _times(violations) + dropped
    word = "refusal" if total == 1 else "refusals"
    return f"stockade: {_painted(f'{total} {word}', 'red', colour=colour)}"


def _groups(violations: Sequence[Violation]) -> list[list[Violation]]:
    """Return violations by why they were refused and what would allow them, in the order of the first of each."""
    groups: dict[tuple[str, str], list[Violation]] = {}
    for violation in violations:
        groups.setdefault((violation.reason, violation.remedy), []).append(violation)
    return list(groups.values())


def _in_short(group: list[Violation], *, colour: bool) -> list[str]:
    first = group[0]
    also = f" and {len(group) - 1} more like it" if len(group) > 1 else ""
    head = f"  {_painted(first.brief(), 'bold', colour=colour)}{also}: {first.reason}"
    return [head, f"    {_remedy(first, limit=_LONGEST_REMEDY)}"]


def _in_full(violation: Violation, *, colour: bool) -> list[str]:
    return [
        f"  {_painted(violation.brief(), 'bold', colour=colour)}",
        f"    refused: {violation.reason}",
        f"    {_remedy(violation)}",
    ]


def _remedy(violation: Violation, limit: int | None = None) -> str:
    """Return what to do; a text that begins with why nothing can be done needs no introduction."""
    remedy = violation.remedy
    if limit is not None and len(remedy) > limit:
        return "to allow it: see --violations=full"  # half a setting might allow something else
    helpless = remedy.startswith(("cannot be allowed", "only ", "the setting that"))
    return remedy if helpless else f"to allow it: {remedy}"


def _named(violation: Violation) -> str:
    return f"$ {escape(violation.line)}" if violation.line else f"command {escape(violation.command)}"


def _times(violations: Sequence[Violation]) -> int:
    return sum(violation.times for violation in violations)


def _painted(text: str, style: str, *, colour: bool) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour else text
