from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from stockade.policy.git_repository import led_to, takes_bare, user_configs
from stockade.policy.places import Disk
from stockade.policy.protected import Search, find
from stockade.policy.protected_names import CONFIGS

if TYPE_CHECKING:
    from pathlib import Path

DISK = Disk()
ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
}


def _git(directory: Path, *words: str) -> None:
    command = ["git", "-c", "protocol.file.allow=always", *words]
    subprocess.run(command, cwd=directory, env=os.environ | ALONE, check=True, capture_output=True)


def _repository(directory: Path) -> Path:
    directory.mkdir(parents=True)
    _git(directory, "init", "-q")
    _git(directory, "commit", "-q", "--allow-empty", "-m", "first")
    return directory


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    return tmp_path.resolve()


def _led(root: Path, home: Path, search: Search = Search(3)) -> dict[str, str]:  # noqa: B008 - immutable
    found = list(find(str(root), search, DISK))
    return {led.place: led.name for led in led_to([str(root)], found, search, str(home), DISK)}


def test_hooks_of_the_root_of_a_nested_repository_and_of_one_above(top: Path) -> None:
    for directory, hooks in ((top / "main", "packages/hooks"), (top / "main/packages/one", ".husky")):
        _git(_repository(directory), "config", "core.hooksPath", hooks)
    packages = f"{top}/main/packages"
    assert _led(top / "main", top / "home") == {
        f"{packages}/hooks": "core.hookspath",
        f"{packages}/one/.husky": "core.hookspath",
    }
    assert _led(top / "main/packages", top / "home") == {
        f"{packages}/hooks": "core.hookspath",
        f"{packages}/one/.husky": "core.hookspath",
    }


def test_a_worktree_and_a_submodule_have_hooks_in_their_own_work_trees(top: Path) -> None:
    main, other = _repository(top / "main"), _repository(top / "other")
    _git(main, "config", "core.hooksPath", ".husky")
    _git(main, "worktree", "add", "-q", "tree")
    _git(main, "submodule", "add", "-q", str(other), "sub")
    _git(main / "sub", "config", "core.hooksPath", "hooks-of-sub")
    found = {place for place, name in _led(main, top / "home").items() if name == "core.hookspath"}
    assert found == {f"{main}/.husky", f"{main}/tree/.husky", f"{main}/sub/hooks-of-sub"}


def test_the_users_own_config_counts_for_every_repository(top: Path) -> None:
    _repository(top / "main")
    _repository(top / "main/one")
    (top / "home").mkdir()
    (top / "home/.gitconfig").write_text("[core]\nhooksPath = .own\n[include]\npath = more\n")
    (top / "home/more").write_text(f"[init]\ntemplateDir = {top}/main/template\n")
    assert _led(top / "main", top / "home") == {
        f"{top}/main/.own": "core.hookspath",
        f"{top}/main/one/.own": "core.hookspath",
        f"{top}/home/more": "include.path",
        f"{top}/main/template": "init.templatedir",
    }


def test_where_the_users_configs_are(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = ("/h/.gitconfig", "/h/.config/git/config", "/etc/gitconfig")
    assert user_configs("/h") == usual
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{top}")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/g")
    assert user_configs("/h") == (*usual, "/g", f"{top}/git/config")


def test_gitlinks_are_known_at_any_depth(top: Path) -> None:
    main = _repository(top / "main")
    deep = _repository(main / "a/b/c/d/e/deep")
    deeper = _repository(deep / "x/y/z/w/deeper")
    for inner, outer in ((deeper, deep), (deep, main)):
        _git(outer, "add", str(inner.relative_to(outer)))
    _git(deeper, "config", "core.hooksPath", ".husky")
    led = _led(main, top / "home")
    assert {f"{deep}/.git/hooks", f"{deep}/.git/config", f"{deeper}/.git/hooks", f"{deeper}/.husky"} <= led.keys()


def test_gitlinks_of_another_hash(top: Path) -> None:
    main = top / "main"
    deep = main / "a/b/c/d/e/deep"
    for directory in (main, deep):
        directory.mkdir(parents=True)
        _git(directory, "init", "-q", "--object-format=sha256")
        _git(directory, "commit", "-q", "--allow-empty", "-m", "first")
    _git(main, "add", "a")
    assert f"{deep}/.git/hooks" in _led(main, top / "home")


def test_no_gitlink_leads_through_a_link(top: Path) -> None:
    main = _repository(top / "main")
    deep = _repository(main / "a/b/c/d/e/deep")
    _git(main, "add", "a")
    (main / "a").rename(top / "moved")
    (main / "a").symlink_to(top / "moved")
    assert deep.exists()
    assert _led(main, top / "home") == {}


def test_the_setting_for_configs_lifts_includes_and_not_hooks(top: Path) -> None:
    main = _repository(top / "main")
    _git(main, "config", "core.hooksPath", ".husky")
    _git(main, "config", "include.path", "../shared.config")
    assert _led(main, top / "home", Search(3, CONFIGS)) == {f"{main}/.husky": "core.hookspath"}
    assert _led(main, top / "home") == {f"{main}/.husky": "core.hookspath", f"{main}/shared.config": "include.path"}


EXPLICIT = "[safe]\nbareRepository = explicit\n"


@pytest.mark.parametrize(
    ("files", "takes"),
    [
        pytest.param({}, True, id="nothing-set"),
        pytest.param({".gitconfig": EXPLICIT}, False, id="explicit"),
        pytest.param({".config/git/config": EXPLICIT}, False, id="beside"),
        pytest.param({".gitconfig": "[safe]\nbareRepository = all\n"}, True, id="all"),
        pytest.param({".gitconfig": "[Safe]\n\tBAREREPOSITORY=explicit # so\n"}, False, id="any-case"),
        pytest.param({".gitconfig": '[safe "x"]\nbareRepository = explicit\n'}, True, id="another-section"),
        pytest.param({".gitconfig": "[safe]\nbareRepository = explicit\nbareRepository = all\n"}, True, id="last-wins"),
        pytest.param(
            {
                ".config/git/config": "[safe]\nbareRepository = explicit\n",
                ".gitconfig": "[safe]\nbareRepository = all\n",
            },
            True,
            id="the-later-file-wins",
        ),
        pytest.param(
            {".gitconfig": "[safe]\nbareRepository = explicit\n[include]\npath = x\n"}, True, id="an-include-behind-it"
        ),
        pytest.param(
            {".gitconfig": "[include]\npath = x\n[safe]\nbareRepository = explicit\n"}, False, id="an-include-before-it"
        ),
        pytest.param({".gitconfig": "[safe]\nbareRepository = explicit\n=\n"}, True, id="what-git-refuses"),
    ],
)
def test_whether_git_takes_a_bare_repository(
    top: Path, files: dict[str, str], *, takes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    home = top / "home"
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    assert takes_bare([str(home)], Disk()) is takes
    assert takes_bare([str(home), str(top / "other")], Disk()) is True


def test_the_directory_for_configs_is_asked_where_it_is_named(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(top / "xdg"))
    (top / "xdg/git").mkdir(parents=True)
    assert takes_bare([str(top / "home")], Disk())
    (top / "xdg/git/config").write_text(EXPLICIT)
    assert not takes_bare([str(top / "home")], Disk())
