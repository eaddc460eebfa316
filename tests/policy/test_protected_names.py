from __future__ import annotations

from stockade.policy.protected_names import HELD, INNER, NAMES, OBEYED, UNKEPT, left_over


def test_all_names_are_folded_and_known() -> None:
    assert all(name == name.casefold() for name in HELD)
    assert {*NAMES, *INNER} == HELD
    assert HELD >= UNKEPT
    assert {*OBEYED} <= HELD


def test_what_is_lifted_is_left_out() -> None:
    entries = OBEYED[".claude"]
    assert left_over(entries, ".claude", frozenset()) is entries
    assert left_over(entries, ".claude", frozenset({".claude/hooks", ".vscode"})).keys() == entries.keys() - {"hooks"}
    assert left_over(OBEYED[".vscode"], ".vscode", frozenset({".vscode"})) == {}
    assert left_over(OBEYED[".idea"], ".idea", frozenset({".idea"})) == {}
