from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_deny_closes_a_path_for_writing_or_reading(here: Here) -> None:
    assert here("explain", "--json", "src/x").facts["write"]["allowed"] is True
    here("deny", "src")
    assert here("explain", "--json", "src/x").facts["write"]["allowed"] is False
    assert here("explain", "--json", "src/x").facts["read"]["allowed"] is True
    here("deny", "--read", "src")
    assert here("explain", "--json", "src/x").facts["read"]["allowed"] is False
