from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.settings.schema import schema

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_prints_the_schema(here: Here) -> None:
    assert here("schema").facts == schema()
