from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from results import replaced, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# R\n", "# R\n\n## B\n\nnew\n", id="added"),
        pytest.param("# R\n\n## B\n\nold\n", "# R\n\n## B\n\nnew\n", id="replaced"),
        pytest.param(
            "# R\n\n## A\n\na\n\n## B\n\nold\n\n## C\n\nc\n",
            "# R\n\n## A\n\na\n\n## B\n\nnew\n\n## C\n\nc\n",
            id="others stay, in their order",
        ),
        pytest.param("# R\n\n## Bb\n\nx\n", "# R\n\n## Bb\n\nx\n\n## B\n\nnew\n", id="a longer heading is another"),
    ],
)
def test_a_section_is_replaced(text: str, expected: str) -> None:
    assert replaced(text, "B", "new\n") == expected


def test_the_same_twice_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "results.md"
    write(file, "A", "one")
    write(file, "B", "two")
    before = file.read_text("utf-8")
    write(file, "A", "one")
    assert file.read_text("utf-8") == before
    assert before.startswith("# Results\n")
