from __future__ import annotations

from errno import EPERM
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.facts import Facts, Programs, Trials
from stockade.platforms.linux.proof import Attempt, Verdict

if TYPE_CHECKING:
    from tests.cli.conftest import Here

ALL = Trials(0, 0, 0, 0, 0, 0, 0, 0, 0)
TOOLS = Programs("/usr/bin/bwrap", "0.8.0", "/usr/bin/rg")
FULL = Facts(release="6.1.0", machine="x86_64", programs=TOOLS, trials=ALL, cgroup=("memory", "pids"), walls="")
WEAKER = FULL.but(trials=ALL.but(processes=EPERM), walls="x", weaker_walls="")
BLOCKED = FULL.but(trials=Trials(EPERM, filter=0, listener=0), max_user_namespaces=1, chrooted=True, walls="x")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr("sys.platform", "linux")
    return monkeypatch


@pytest.mark.parametrize(
    ("facts", "status", "enforceable", "last"),
    [
        pytest.param(FULL, 0, "full", "Every wall can be built here.", id="full"),
        pytest.param(WEAKER, 1, "weaker", "Walls can be built here with less: see what is marked weaker.", id="weaker"),
        pytest.param(
            BLOCKED,
            1,
            "no",
            "No walls can be built here, and so nothing is run: see what is marked blocked.",
            id="blocked",
        ),
    ],
)
def test_verdict(
    here: Here, machine: pytest.MonkeyPatch, facts: Facts, status: int, enforceable: str, last: str
) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: facts)
    said = here("doctor")
    assert (said.status, said.out.splitlines()[-1], said.err) == (status, last, "")
    told = here("doctor", "--json")
    assert (told.status, told.facts["enforceable"]) == (status, enforceable)
    assert told.facts["facts"]["trials"]["user_namespace"] == facts.trials.user_namespace


def test_entries_of_path_that_do_not_count_outside_are_named(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: FULL)
    machine.setenv("PATH", f"{here.project}/.venv/bin:bin:/usr/bin")
    said = here("doctor").out
    outside = "does not count for what runs outside the walls"
    assert f"note     PATH: {here.project}/.venv/bin {outside}: commands inside can write it\n" in said
    assert f"note     PATH: bin {outside}: it is relative\n" in said
    assert "/usr/bin does" not in said


def test_one_line_each_with_the_remedy_below(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: BLOCKED)
    assert here("doctor").out.splitlines()[:3] == [
        "ok       Linux 6.1.0 on x86_64: 5.12 or newer is needed",
        "blocked  user namespaces: this process runs in a chroot, where the kernel refuses user namespaces",
        "           use pivot_root instead of chroot: start it by a container engine or systemd-nspawn",
    ]


def test_stockade_in_a_writable_place_is_a_note(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: FULL)
    place = str(here.project / "my venv")
    for module in ("installation", "compile"):
        machine.setattr(f"stockade.policy.{module}.own_places", lambda _: (place, f"{place}/bin", "/usr"))
    said = here("doctor")
    assert said.status == 0
    assert said.out.splitlines()[-4:-2] == [
        f"note     {place}: read-only to commands, because Stockade itself runs from it",
        "           install Stockade outside this place, with pipx for example, if commands must write it",
    ]
    assert "warning" not in said.out


def test_stockade_that_commands_may_change_is_a_warning(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: FULL)
    place = str(here.project / "my venv")
    for module in ("installation", "compile"):
        machine.setattr(f"stockade.policy.{module}.own_places", lambda _: (place, "/usr"))
    name = "dangerouslyAllowOwnInstallation"
    here.user({"sandbox": {"filesystem": {name: True}}})
    why = f"commands may write it, and so change what builds their walls: sandbox.filesystem.{name} is set"
    assert here("doctor").out.splitlines()[-4:-2] == [
        f"warning  {place}: {why}",
        "           remove the setting, or install Stockade outside this place, with pipx for example",
    ]


def test_files_that_are_elsewhere_too_are_reported(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: FULL)
    assert "hard links" not in here("doctor").out
    outside = here.home / "outside"
    outside.write_text("x")
    inside = here.project / "inside"
    inside.hardlink_to(outside)
    said = here("doctor")
    assert said.status == 0
    assert f"warning  hard links: 1 files in {inside.parent} have other names outside it, such as {inside}" in said.out


def test_settings_that_are_wrong_do_not_stop_it(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: FULL)
    file = here.user("{")
    said = here("doctor")
    assert (said.status, said.err) == (0, "")
    assert f"warning  settings: {file}: is not JSON" in said.out


def test_foreign_text_is_shown_escaped(here: Here, machine: pytest.MonkeyPatch) -> None:
    odd = FULL.but(release="6.1.0\x1b[2J", programs=TOOLS.but(rg="/tmp/\x1b]0;x\x07/rg"), maker="/\x1b[2J")
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: odd)
    assert "\x1b" not in here("doctor").out


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        ("win32", "stockade: Windows is not supported\n  hint: install WSL2"),
    ],
)
def test_other_platforms_are_refused_clearly(
    here: Here, monkeypatch: pytest.MonkeyPatch, platform: str, message: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    said = here("doctor")
    assert (said.status, said.out) == (125, "")
    assert said.err.startswith(message)


@pytest.mark.parametrize(
    ("verdict", "status", "line"),
    [
        pytest.param(Verdict.HELD, 0, "PASS  try it (refused)", id="held"),
        pytest.param(Verdict.MOOT, 0, "----  try it (refused)", id="moot"),
        pytest.param(Verdict.HOLE, 1, "HOLE  try it (refused)", id="hole"),
    ],
)
def test_proof(here: Here, machine: pytest.MonkeyPatch, verdict: Verdict, status: int, line: str) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: FULL)
    machine.setattr("stockade.platforms.linux.proof.prove", lambda _: iter([Attempt("try it", verdict, "refused")]))
    said = here("doctor", "--prove")
    assert said.status == status
    assert said.out.splitlines()[-3] == line
    told = here("doctor", "--prove", "--json")
    assert told.status == status
    assert told.facts["proof"] == [{"name": "try it", "verdict": verdict.value, "note": "refused"}]


def test_where_no_walls_stand_nothing_is_tried(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: BLOCKED)
    told = here("doctor", "--prove", "--json")
    assert told.status == 1
    assert "proof" not in told.facts


def test_the_setting_of_git_that_spares_a_placeholder_is_recommended(here: Here, machine: pytest.MonkeyPatch) -> None:
    machine.setattr("stockade.platforms.linux.probe.read_facts", lambda: FULL)
    machine.delenv("XDG_CONFIG_HOME", raising=False)
    machine.setattr("stockade.policy.compile.database_home", lambda: "")
    advice = "git config --global safe.bareRepository explicit"
    assert advice in here("doctor").out
    (here.home / ".gitconfig").write_text("[safe]\n\tbareRepository = explicit\n")
    assert advice not in here("doctor").out
