from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_allow_opens_a_path(here: Here) -> None:
    target = str(here.home / "out" / "file")
    assert here("explain", "--json", target).facts["write"]["allowed"] is False
    assert here("allow", "~/out").out == f"commands may write ~/out ({here.local})\n"
    assert here("explain", "--json", target).facts["write"]["allowed"] is True


def test_allow_read_opens_a_path_inside_a_deny(here: Here) -> None:
    here("deny", "--read", "~/secret")
    here("allow", "--read", "~/secret/public")
    assert here("explain", "--json", "~/secret/key").facts["read"]["allowed"] is False
    assert here("explain", "--json", str(here.home / "secret/public/x")).facts["read"]["allowed"] is True
