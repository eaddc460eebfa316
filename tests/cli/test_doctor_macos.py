from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.macos.diagnosis import Finding

if TYPE_CHECKING:
    from tests.cli.conftest import Here

OK = Finding("ok", "walls", "sandbox-exec takes our profile")
BLOCKED = Finding("blocked", "walls", "no profile can be applied here", "leave the sandbox")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr("sys.platform", "darwin")
    return monkeypatch


@pytest.mark.parametrize(
    ("finding", "status", "lines"),
    [
        pytest.param(
            OK, 0, ["ok       walls: sandbox-exec takes our profile", "", "Walls can be built here."], id="ok"
        ),
        pytest.param(
            BLOCKED,
            1,
            [
                "blocked  walls: no profile can be applied here",
                "           leave the sandbox",
                "",
                "No walls can be built here, and so nothing is run.",
            ],
            id="blocked",
        ),
    ],
)
def test_findings(here: Here, machine: pytest.MonkeyPatch, finding: Finding, status: int, lines: list[str]) -> None:
    machine.setattr("stockade.cli.doctor_macos.diagnose", lambda: (finding,))
    machine.delenv("XDG_CONFIG_HOME", raising=False)
    machine.setattr("stockade.policy.compile.database_home", lambda: "")
    (here.home / ".gitconfig").write_text("[safe]\n\tbareRepository = explicit\n")
    said = here("doctor")
    assert (said.status, said.out.splitlines(), said.err) == (status, lines, "")
    told = here("doctor", "--json")
    assert (told.status, told.facts["enforceable"]) == (status, "no" if status else "full")
    assert told.facts["findings"][0]["why"] == finding.why


def test_entries_of_path_that_do_not_count_outside_are_named(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.cli.doctor_macos.diagnose", lambda: (OK,))
    machine.setenv("PATH", f"{here.project}/bin:/usr/bin")
    outside = "does not count for what runs outside the walls"
    assert f"note     PATH: {here.project}/bin {outside}: commands inside can write it\n" in here("doctor").out


def test_the_proof_is_named(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.cli.doctor_macos.diagnose", lambda: (OK,))
    assert here("doctor", "--prove").out.splitlines()[-1].endswith("scripts/test tests/seatbelt")


def test_the_setting_of_git_that_spares_a_rule_is_recommended(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.cli.doctor_macos.diagnose", lambda: (OK,))
    assert "run: git config --global safe.bareRepository explicit\n" in here("doctor").out
