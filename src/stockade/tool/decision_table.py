"""The whole of placement and approval as a table, computed from the functions that decide; ``docs/placement.md`` is it.

Every combination of what counts is decided once. Rows that end alike are joined: a cell with several values stands
for each of them, and ``any`` for all.
"""

from __future__ import annotations

from itertools import product

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.compile import compile_policy
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.tool.approval import ApprovalMode, Terms, Verdict, approve, approve_mode
from stockade.tool.call import ShellCall
from stockade.tool.placement import GATES, Place, Situation, leaves_walls, place
from stockade.tool.program import Planted, Programs
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stockade.annotation import TypeAlias
    from stockade.policy.model import SandboxPolicy

    Cell: TypeAlias = tuple[str, ...]

_YES_NO: Final = ("yes", "no")
_RULES: Final = ("none", "allow", "ask", "deny", "allow+ask", "allow+deny", "ask+deny", "allow+ask+deny")
#: What counts, and its values, in the order of the columns.
COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "mode": tuple(mode.value for mode in ApprovalMode),
    "empty": _YES_NO,
    "rules": _RULES,
    "enabled": _YES_NO,
    "available": _YES_NO,
    "must be": _YES_NO,
    "bypass asked": _YES_NO,
    "bypass allowed": _YES_NO,
    "excluded": _YES_NO,
    "auto-allow": _YES_NO,
    "planted": _YES_NO,
}
_ANY: Final = "any"


class Outcome(Value):
    """What is done with a call, where it would run, by which gate, and what decided about approval."""

    verdict: str
    place: str
    gate: str
    by: str


def decide(cell: Mapping[str, str]) -> Outcome:
    """Return what the tool does in one combination, by column."""
    policy = _policy(tuple((name, cell[name]) for name in ("enabled", "must be", "bypass allowed", "excluded")), cell)
    mode = ApprovalMode(cell["mode"])
    early = approve_mode(mode)
    if early is not None:
        return Outcome(early.verdict.value, "-", "-", early.by)
    command = "" if cell["empty"] == "yes" else "make all"
    call = ShellCall(command, dangerously_disable_sandbox=cell["bypass asked"] == "yes")
    where = place(Situation(call, policy, "" if cell["available"] == "yes" else "no walls"))
    found = Programs((Planted("make", "was written inside"),)) if cell["planted"] == "yes" else None
    approval = approve(command, where, policy, Terms(mode), found if leaves_walls(where) else None)
    shown = where.place if approval.verdict is not Verdict.REFUSE else Place.NOWHERE
    return Outcome(approval.verdict.value, shown.value, where.gate, approval.by)


_policies: Final[dict[tuple[object, ...], SandboxPolicy]] = {}


def _policy(switches: tuple[tuple[str, str], ...], cell: Mapping[str, str]) -> SandboxPolicy:
    key = (switches, cell["auto-allow"], cell["rules"])
    if key not in _policies:
        on = {name: value == "yes" for name, value in switches}
        values: dict[str, object] = {
            "sandbox.enabled": on["enabled"],
            "sandbox.failIfUnavailable": on["must be"],
            "sandbox.allowUnsandboxedCommands": on["bypass allowed"],
            "sandbox.excludedCommands": ("make",) if on["excluded"] else (),
            "sandbox.autoAllowBashIfSandboxed": cell["auto-allow"] == "yes",
        }
        rules = cell["rules"].split("+") if cell["rules"] != "none" else []
        values |= {f"permissions.{name}": ("Bash(make:*)",) for name in rules}
        settings = merge([Document(Layer.USER, "settings.json", values)])
        _policies[key] = compile_policy(settings, cwd="/project", home="/home/user")
    return _policies[key]


def cells() -> Iterator[dict[str, str]]:
    """Yield every combination."""
    for values in product(*COLUMNS.values()):
        yield dict(zip(COLUMNS, values, strict=True))


def render() -> str:
    """Return the page."""
    outcomes = {tuple(cell.values()): decide(cell) for cell in cells()}
    gates = "\n".join(f"| {number} | `{gate.name}` | {gate.when} |" for number, gate in enumerate(GATES, 1))
    header = (*COLUMNS, "verdict", "runs", "gate", "decided by")
    rows = [
        (*row, outcome.verdict, outcome.place, outcome.gate, outcome.by)
        for row, outcome in _joined(outcomes, tuple(COLUMNS.values()))
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (header, ("---",) * len(header), *rows))
    return _PAGE.format(gates=gates, table=table, cells=len(outcomes), rows=len(rows))


def _joined(outcomes: dict[Cell, Outcome], columns: tuple[Cell, ...]) -> list[tuple[Cell, Outcome]]:
    """Split by the first column into groups of values that go on alike."""
    if not columns:
        return [((), outcomes[()])]
    groups: dict[tuple[tuple[Cell, Outcome], ...], list[str]] = {}
    for value in columns[0]:
        below = {cell[1:]: outcome for cell, outcome in outcomes.items() if cell[0] == value}
        groups.setdefault(tuple(_joined(below, columns[1:])), []).append(value)
    return [
        ((_ANY if len(values) == len(columns[0]) else ", ".join(values), *cell), outcome)
        for rows, values in groups.items()
        for cell, outcome in rows
    ]


_PAGE: Final = """\
# Where a call of the shell tool runs, and who is asked

Generated from `stockade.tool`: do not edit. A test compares this page with what the code decides.

## Placement

The first gate that answers wins.

| | gate | answers when |
|---|---|---|
{gates}

## The whole table

All {cells} combinations, joined into {rows} rows. *rules* are the `Bash(...)` rules that match the line. *must be* is
`failIfUnavailable`. *planted*: commands inside could have written a program that the line would start outside. A call
that is asked for runs where the row says once somebody has said yes; nobody to ask is a no. In the modes `none` and
`plan` nothing else is looked at. An empty command runs nothing, wherever it is placed.

{table}
"""
