from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import stockade
from stockade.filesystem.planning import make_plan
from stockade.filesystem.terrain import Land
from stockade.policy.compile import compile_policy
from stockade.policy.files import Access, Reason, judge
from stockade.policy.installation import NAME, SETTING, own_places
from stockade.policy.path_pattern import is_at_or_below
from stockade.policy.places import Disk
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import EMPTY, merge

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

DISK = Disk()


def _covers(places: tuple[str, ...], path: str) -> bool:
    return any(is_at_or_below(os.path.realpath(path), place) for place in places)


def test_what_runs_now_is_covered() -> None:
    import h11
    import idna

    places = own_places("/nowhere")
    for file in (
        stockade.__file__,
        h11.__file__,
        idna.__file__,
        os.__file__,
        sys.executable,
        f"{sys.prefix}/pyvenv.cfg",
    ):
        assert _covers(places, file), file
    assert all(os.path.lexists(place) for place in places)


def test_a_link_to_the_interpreter_is_a_place_of_its_own() -> None:
    links = {place for place in own_places("/nowhere") if os.path.islink(place)}
    assert links or not os.path.islink(sys.executable)


def test_what_holds_the_working_directory_is_covered_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path.resolve()
    for name in ("bin", f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages", "src"):
        (top / name).mkdir(parents=True)
    (top / "pyvenv.cfg").touch()
    monkeypatch.setattr(sys, "prefix", str(top))
    monkeypatch.setattr(sys, "exec_prefix", str(top))
    monkeypatch.setattr(sys, "path", [str(top), *sys.path])
    assert f"{top}" in own_places("/nowhere")
    places = own_places(f"{top}/src")
    assert str(top) not in places
    assert {f"{top}/bin", f"{top}/pyvenv.cfg"} <= {*places}
    assert not _covers(places, f"{top}/src")
    assert _covers(places, f"{top}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages")


def test_a_directory_with_what_we_depend_on_is_covered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path.resolve()
    (top / "vendored/h11").mkdir(parents=True)
    (top / "other").mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(top / "vendored"), str(top / "other")])
    places = own_places(str(top / "project"))
    assert f"{top}/vendored" in places
    assert f"{top}/other" not in places


def test_the_program_that_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path.resolve()
    (top / "tool").touch()
    (top / "stockade").symlink_to(top / "tool")
    monkeypatch.setattr(sys, "argv", [str(top / "stockade")])
    assert {f"{top}/stockade", f"{top}/tool"} <= {*own_places("/nowhere")}
    monkeypatch.setattr(sys, "argv", [str(top / "tool")])
    assert f"{top}/tool" not in own_places("/nowhere")


def test_verdict_plan_and_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path.resolve()
    (top / ".venv/bin").mkdir(parents=True)
    for name in ("prefix", "exec_prefix"):
        monkeypatch.setattr(sys, name, f"{top}/.venv")
    policy = compile_policy(EMPTY, cwd=str(top), home="/nowhere")
    verdict = judge(policy.files, Access.WRITE, f"{top}/.venv/bin/python", DISK)
    assert (verdict.reason, verdict.protected_name) == (Reason.PROTECTED, NAME)
    assert SETTING in verdict.remedy
    assert "pipx" in verdict.remedy
    plan = make_plan(policy.files, Land())
    assert f'read-only "{top}/.venv": {NAME} is protected' in str(plan)
    assert sum(NAME in mount.reason for mount in plan.mounts) == 1

    lifted = merge([Document(Layer.USER, "settings.json", {SETTING: True})])
    policy = compile_policy(lifted, cwd=str(top), home="/nowhere")
    assert policy.files.own == ()
    assert judge(policy.files, Access.WRITE, f"{top}/.venv/bin/python", DISK).allowed


def test_a_venv_that_stockade_does_not_run_from_stays_writable(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / ".venv").mkdir()
    policy = compile_policy(EMPTY, cwd=str(top), home="/nowhere")
    assert judge(policy.files, Access.WRITE, f"{top}/.venv/x", DISK).allowed
    assert NAME not in str(make_plan(policy.files, Land()))


def test_a_writable_root_inside_the_installation_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path.resolve()
    (top / ".venv/lib/x").mkdir(parents=True)
    (top / "project").mkdir()
    for name in ("prefix", "exec_prefix"):
        monkeypatch.setattr(sys, name, f"{top}/.venv")
    values = {"sandbox.filesystem.allowWrite": (f"{top}/.venv/lib",)}
    policy = compile_policy(merge([Document(Layer.USER, "s", values)]), cwd=f"{top}/project", home="/nowhere")
    assert not judge(policy.files, Access.WRITE, f"{top}/.venv/lib/x/y", DISK).allowed
    assert "writable  " + f'"{top}/.venv' not in str(make_plan(policy.files, Land()))
