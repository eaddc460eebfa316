from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_disable_undoes_enable(here: Here) -> None:
    here("enable")
    assert here("disable").out == f"the sandbox is off ({here.local})\n"
    assert here("status", "--json").facts["enabled"] is False


def test_a_locked_sandbox_stays_on(here: Here) -> None:
    managed = here.manage({"sandbox": {"enabled": True}})
    result = here("disable")
    assert result.status == 125
    assert str(managed) in result.err
    assert here("status", "--no-sandbox").status == 125
    assert here("status", "--json").facts["enabled"] is True
