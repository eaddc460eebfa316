"""Every cell of the table, against the rules written down a second time, in other words."""

from __future__ import annotations

from pathlib import Path

from stockade.tool.decision_table import COLUMNS, Outcome, cells, decide, render

PAGE = Path(__file__).parents[2] / "docs" / "placement.md"


def expected(cell: dict[str, str]) -> Outcome:
    yes = {name: value == "yes" for name, value in cell.items()}
    rules = set(cell["rules"].split("+")) if not yes["empty"] else set()
    if cell["mode"] in {"none", "plan"}:
        return Outcome("refuse", "-", "-", f"mode {cell['mode']}")
    where, gate = expected_place(yes)
    answers = (
        ("deny" in rules, "refuse", "nowhere", "deny rule"),
        (where == "nowhere", "refuse", "nowhere", "no walls"),
        (yes["empty"], "allow", where, "nothing"),
        ("ask" in rules, "ask", where, "ask rule"),
        (yes["planted"] and gate in {"bypass", "excluded"}, "ask", where, "planted"),
        ("allow" in rules, "allow", where, "allow rule"),
        (where == "inside" and cell["mode"] == "open" and yes["auto-allow"], "allow", where, "walls"),
        (True, "ask", where, "nothing"),
    )
    return next(Outcome(verdict, at, gate, by) for holds, verdict, at, by in answers if holds)


def expected_place(yes: dict[str, bool]) -> tuple[str, str]:
    if not yes["enabled"]:
        return "outside", "disabled"
    if not yes["available"]:
        return ("nowhere", "required") if yes["must be"] else ("outside", "unavailable")
    if yes["bypass asked"] and yes["bypass allowed"]:
        return "outside", "bypass"
    if yes["empty"]:
        return "outside", "empty"
    return ("outside", "excluded") if yes["excluded"] else ("inside", "walls")


def test_every_cell() -> None:
    wrong = [(cell, decide(cell), expected(cell)) for cell in cells() if decide(cell) != expected(cell)]
    assert wrong == []
    assert sum(1 for _ in cells()) == 16384


def test_the_page_is_what_is_decided() -> None:
    assert PAGE.read_text("utf-8") == render()


def test_the_page_stands_for_every_cell_once() -> None:
    rows = [line.strip("| ").split(" | ") for line in render().splitlines() if line.count("|") > len(COLUMNS)][2:]
    covered: dict[tuple[str, ...], int] = {}
    for cell in cells():
        fits = [
            row
            for row in rows
            if all(
                shown == "any" or value in shown.split(", ") for shown, value in zip(row, cell.values(), strict=False)
            )
        ]
        covered[tuple(cell.values())] = len(fits)
    assert set(covered.values()) == {1}
