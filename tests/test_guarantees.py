"""Every promise of GUARANTEES.md names a test, and that test is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "GUARANTEES.md").read_text("utf-8")
KEPT, _, PLANNED = PAGE.partition("\n## Not yet\n")
PLATFORMS = {"any", "Linux", "macOS"}


def _rows(text: str) -> list[list[str]]:
    """Return the cells of a page's tables, without heads and rules."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if row[0] != "id" and not re.fullmatch(r":?-+:?", row[0])]


ROWS = _rows(KEPT)


def test_there_are_promises() -> None:
    assert ROWS


def test_each_promise_has_an_id_of_its_own() -> None:
    names = [row[0] for row in (*ROWS, *_rows(PLANNED))]
    assert [name for name in names if not re.fullmatch(r"[A-Z]+-\d+", name)] == []
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in ROWS])
def test_each_promise_names_a_test_that_exists(row: list[str]) -> None:
    _, promise, platform, tests = row
    assert promise
    assert platform in PLATFORMS
    named = re.findall(r"`([^`]+)::([^`]+)`", tests)
    assert named, "a promise needs a test: `tests/file.py::test_function`"
    for file, function in named:
        assert function in _tests_of(ROOT / file), f"{file} has no {function}"


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in _rows(PLANNED)])
def test_what_is_planned_claims_no_test(row: list[str]) -> None:
    assert len(row) == 3, "id, promise, platform"
    assert row[2] in PLATFORMS


def _tests_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }
