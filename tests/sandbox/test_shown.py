from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.sandbox import shown
from stockade.sandbox.environment import Shown
from stockade.sandbox.shown import go_proxy, show

if TYPE_CHECKING:
    from pathlib import Path

TOOL = Shown("TOOL_HOME", ".tool", "tool", names=("config", "missing"), each=("hub",), once=("registry",), marker="T")


@pytest.fixture
def users(tmp_path: Path) -> Path:
    users = tmp_path / "home" / ".tool"
    for name in ("config", "hub/a/x", "hub/.lock", "registry/i/1.crate", "registry/i/2.crate", "registry/i/x.lock"):
        (users / name).parent.mkdir(parents=True, exist_ok=True)
        (users / name).write_text(name)
    return users


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    cache = tmp_path / "project-1" / "cache"
    cache.mkdir(parents=True)
    return cache


def test_names_and_entries_are_linked_and_what_is_there_stays(users: Path, cache: Path, tmp_path: Path) -> None:
    (cache / "tool" / "hub").mkdir(parents=True)
    (cache / "tool" / "hub" / "own").touch()
    for _ in range(2):
        show(TOOL, str(users), str(cache), str(tmp_path))
    assert sorted(os.listdir(cache / "tool")) == ["config", "hub"]
    assert sorted(os.listdir(cache / "tool" / "hub")) == ["a", "own"]
    assert os.readlink(cache / "tool" / "config") == str(users / "config")


def test_a_tree_is_laid_out_once_and_only_for_such_a_project(users: Path, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "T").touch()
    show(TOOL, str(users), str(cache), str(tmp_path))
    laid = cache / "tool" / "registry" / "i"
    assert sorted(os.listdir(laid)) == ["1.crate", "2.crate"]
    assert not laid.is_symlink()
    (laid / "1.crate").unlink()
    show(TOOL, str(users), str(cache), str(tmp_path))
    assert sorted(os.listdir(laid)) == ["2.crate"]
    assert os.listdir(cache.parent) == ["cache"]


def test_no_more_is_laid_out_than_so_much(
    users: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "T").touch()
    monkeypatch.setattr(shown, "MOST", 2)
    show(TOOL, str(users), str(cache), str(tmp_path))
    assert len(os.listdir(cache / "tool" / "registry" / "i")) == 1


@pytest.mark.parametrize("planted", ["tool", "tool/hub"])
def test_no_link_of_a_commands_is_followed(users: Path, cache: Path, tmp_path: Path, planted: str) -> None:
    (tmp_path / "T").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (cache / planted).parent.mkdir(exist_ok=True)
    (cache / planted).symlink_to(elsewhere)
    show(TOOL, str(users), str(cache), str(tmp_path))
    assert os.listdir(elsewhere) == []
    assert os.listdir(cache.parent) == ["cache"]


def test_go_asks_the_users_own_modules_first(tmp_path: Path) -> None:
    home = str(tmp_path)
    assert go_proxy(f"{home}/go/pkg/mod", {}, home) == ""
    files = tmp_path / "go/pkg/mod/cache/download"
    files.mkdir(parents=True)
    modules = str(tmp_path / "go/pkg/mod")
    assert go_proxy(modules, {}, home) == f"file://{files},https://proxy.golang.org,direct"
    (tmp_path / ".config/go").mkdir(parents=True)
    (tmp_path / ".config/go/env").write_text("GOFLAGS=-v\nGOPROXY=https://proxy.test\n")
    assert go_proxy(modules, {}, home) == f"file://{files},https://proxy.test"
    assert go_proxy(modules, {"GOPROXY": "off"}, home) == f"file://{files},off"


@pytest.mark.parametrize("settings", ["off", "pipe"])
def test_no_pipe_of_a_command_keeps_us_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str) -> None:
    """Go takes "off" for no file at all, so that a command may make one of that name in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "go/pkg/mod/cache/download").mkdir(parents=True)
    os.mkfifo(tmp_path / settings)
    named = settings if settings == "off" else str(tmp_path / settings)
    assert go_proxy(f"{tmp_path}/go/pkg/mod", {"GOENV": named}, str(tmp_path)).endswith(
        ",https://proxy.golang.org,direct"
    )
