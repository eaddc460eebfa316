from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.policy.effective import effective
from stockade.tool.guidance import guidance

if TYPE_CHECKING:
    import pytest
    from tests.cli.conftest import Here


def test_the_text_of_the_settings_in_force(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here.home))
    assert here("guidance").out == ""
    here.user({"sandbox": {"enabled": True, "filesystem": {"allowWrite": ["/srv/x"]}}})
    text = guidance(effective(here.locations).policy)
    assert "/srv/x" in text
    result = here("guidance")
    assert (result.status, result.out, result.err) == (0, text, "")
    assert here("guidance", "--json").facts == {"enabled": True, "guidance": text}
    assert "dangerously" not in here("guidance", "--sandbox-mode", "strict").out


def test_a_program_that_cannot_work_inside_is_named_where_it_is(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    program = here.home / "mcp-cli"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(here.home))
    assert "Cannot work inside, as they talk to programs outside: mcp-cli." in here("guidance", "--sandbox").out
