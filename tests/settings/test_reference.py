from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stockade.settings.catalog import CATALOG, LEAVING, LOCKING
from stockade.settings.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def rows() -> dict[str, list[str]]:
    lines = [line for line in reference().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0].strip("`"): row[1:] for row in cells}


def test_the_page_in_the_documentation_is_the_generated_one() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m stockade.settings.reference > docs/settings.md"
    )


def test_the_module_prints_the_page() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "stockade.settings.reference"], capture_output=True, text=True, check=True
    )
    assert printed.stdout == reference()


def test_every_setting_has_one_row_of_five_cells() -> None:
    table = rows()
    assert list(table) == list(CATALOG)
    assert {len(row) for row in table.values()} == {4}


@pytest.mark.parametrize(
    ("name", "row"),
    [
        pytest.param(
            "sandbox.enabled",
            ["true or false", "`false`", "Run commands inside the sandbox.", "only `true`"],
            id="flag that loosens when false",
        ),
        pytest.param(
            "sandbox.autoAllowBashIfSandboxed",
            ["true or false", "`true`", "Sandboxed commands need no approval.", "only `false`"],
            id="flag that loosens when true",
        ),
        pytest.param(
            "sandbox.ripgrep.command",
            ["a non-empty string", "", "The ripgrep to use where one is used.", "ignored"],
            id="no default",
        ),
        pytest.param(
            "sandbox.mandatoryDenySearchDepth",
            [
                "a whole number from 1 to 10",
                "`3`",
                "How many directory levels below each writable root protected files are looked for.",
                "only 3 or more",
            ],
            id="number with a range",
        ),
        pytest.param(
            "permissions.deny",
            ["a list of non-empty strings", "`[]`", "Rules that deny; a deny always wins.", "counts"],
            id="list that never loosens",
        ),
    ],
)
def test_a_row_says_what_the_catalogue_says(name: str, row: list[str]) -> None:
    assert rows()[name] == row


def test_the_settings_that_lock_and_those_that_a_lock_takes_are_named() -> None:
    last = reference().splitlines()[-1]
    assert all(f"`{key.name}`" in last for key in (*LOCKING, *LEAVING))
