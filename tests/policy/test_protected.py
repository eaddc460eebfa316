from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.policy.path_pattern import PathPattern
from stockade.policy.places import Disk
from stockade.policy.protected import Search, find, lifted, protected_by
from stockade.policy.protected_names import CONFIGS, INNER, NAMES, UNKEPT

if TYPE_CHECKING:
    from pathlib import Path

DISK = Disk()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A writable root that is a repository with a submodule, a worktree, and other repositories below."""
    top = tmp_path.resolve() / "root"
    for directory in (
        ".git/hooks",
        ".git/modules/lib/foo/hooks",
        ".git/modules/lib/foo/refs",
        ".git/worktrees/wt",
        ".git/refs/heads",
        ".claude/agents",
        "a/.git/hooks",
        "a/.helix",
        "a/.codex",
        "a/b/c/.vscode",
        "a/b/c/d/.vscode",
        "node_modules/pkg/.vscode",
        "sub",
        "empty",
    ):
        (top / directory).mkdir(parents=True)
    for file in (
        ".git/config",
        ".git/modules/lib/foo/config",
        ".git/worktrees/wt/config.worktree",
        ".git/refs/heads/hooks",
        "a/.git/config",
        "a/.bashrc",
        "a/.codex/config.toml",
        "a/b/c/.bashrc",
        "a/b/c/d/.bashrc",
        "sub/.git",
    ):
        (top / file).touch()
    return top


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *(pytest.param(name, name, id=f"root-{name}") for name in NAMES if name not in UNKEPT),
        pytest.param(".zed", None, id="root-.zed-that-is-missing"),
        pytest.param(".cursor/mcp.json", None, id="root-.cursor-that-is-missing"),
        pytest.param("a/.helix/languages.toml", ".helix", id="settings-of-an-editor"),
        pytest.param("a/.codex/config.toml", ".codex/config.toml", id="settings-of-an-agent"),
        pytest.param("a/.codex/notes", None, id="other-things-of-an-agent"),
        pytest.param(".vscode/tasks.json", ".vscode", id="below-a-directory"),
        pytest.param(".MCP.json", ".mcp.json", id="case-of-a-file"),
        pytest.param(".bashrc", None, id="start-up-file-that-is-missing"),
        pytest.param("a/.BashRC", None, id="another-start-up-file"),
        pytest.param(".gitmodules", None, id="submodules-that-are-missing"),
        pytest.param(".bashrc2", None, id="a-longer-name"),
        pytest.param("bashrc", None, id="a-shorter-name"),
        pytest.param("", None, id="the-root-itself"),
        pytest.param(".git", None, id="a-repository-itself"),
        pytest.param(".git/index", None, id="commits-work"),
        pytest.param(".git/hooks", ".git/hooks", id="hooks"),
        pytest.param(".git/hooks/pre-commit", ".git/hooks", id="a-hook"),
        pytest.param(".git/Hooks/x", ".git/hooks", id="case-of-hooks"),
        pytest.param(".git/config", ".git/config", id="config"),
        pytest.param(".git/config.worktree", ".git/config.worktree", id="missing-config-at-the-root"),
        pytest.param(".git/config.lock", None, id="another-name"),
        pytest.param(".git/refs/heads/hooks", None, id="a-branch-called-hooks"),
        pytest.param(".git/modules/lib/foo/hooks/x", ".git/hooks", id="hooks-of-a-module"),
        pytest.param(".git/modules/lib/foo/config", ".git/config", id="config-of-a-module"),
        pytest.param(".git/modules/lib/foo/index", None, id="commits-in-a-module-work"),
        pytest.param(".git/modules/new/hooks", None, id="a-new-module"),
        pytest.param(".git/modules/hooks", None, id="a-module-called-hooks"),
        pytest.param(".git/worktrees/wt/config.worktree", ".git/config.worktree", id="config-of-a-worktree"),
        pytest.param(".git/worktrees/wt/HEAD", None, id="commits-in-a-worktree-work"),
        pytest.param(".git/worktrees/wt/commondir", ".git/commondir", id="missing-in-a-worktree"),
        pytest.param(".git/worktrees/new/config.worktree", None, id="a-new-worktree"),
        pytest.param("refs/heads", "refs", id="what-would-make-the-root-a-repository"),
        pytest.param("objects", None, id="the-rest-of-it"),
        pytest.param("HEAD", None, id="a-file-called-head"),
        pytest.param("a/refs", None, id="refs-at-level-1"),
        pytest.param(".claude", None, id="claude-itself"),
        pytest.param(".claude/agents/x.md", ".claude/agents", id="agents"),
        pytest.param(".claude/commands", ".claude/commands", id="missing-commands-at-the-root"),
        pytest.param(".claude/todo", None, id="other-things-of-claude"),
        pytest.param("commands", None, id="half-a-name"),
        pytest.param("a/.bashrc", ".bashrc", id="level-1-there"),
        pytest.param("a/.zshrc", None, id="level-1-missing"),
        pytest.param("a/.git/hooks", ".git/hooks", id="repository-at-level-1"),
        pytest.param("a/.git/config.worktree", None, id="missing-config-at-level-1"),
        pytest.param("a/b/c/.bashrc", ".bashrc", id="level-3"),
        pytest.param("a/b/c/.vscode/x/y/z", ".vscode", id="below-level-3"),
        pytest.param("a/b/c/d/.bashrc", None, id="level-4"),
        pytest.param("node_modules/pkg/.vscode", None, id="node_modules-is-not-searched"),
        pytest.param("node_modules/.bashrc", None, id="node_modules-itself"),
        pytest.param("sub/.git", ".git", id="a-git-file"),
        pytest.param("sub/.git/hooks", ".git", id="below-a-git-file"),
        pytest.param("empty/.git", None, id="git-init-below-the-root"),
        pytest.param("empty/.git/hooks/x", None, id="new-hooks-below-the-root"),
    ],
)
def test_what_is_protected_in_a_repository(top: Path, path: str, name: str | None) -> None:
    found = protected_by(str(top / path), str(top), Search(3), DISK)
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("there", "kept"),
    [
        pytest.param((), "refs", id="nothing"),
        pytest.param(("refs",), "objects", id="refs"),
        pytest.param(("refs", "objects"), "HEAD", id="refs-and-objects"),
        pytest.param(("HEAD",), "refs", id="head"),
    ],
)
def test_one_part_of_a_repository_stays_missing_at_the_root(tmp_path: Path, there: tuple[str, ...], kept: str) -> None:
    top = tmp_path.resolve()
    for name in there:
        (top / name).mkdir()
    found = {each.name for each in find(str(top), Search(3), DISK)} & {"refs", "objects", "HEAD"}
    assert found == {kept}
    judged = [name for name in ("refs", "objects", "HEAD") if protected_by(f"{top}/{name}", str(top), Search(3), DISK)]
    assert judged == [kept]


@pytest.mark.parametrize("store", [".", ".git/modules/lib"], ids=["a-bare-root", "a-submodule"])
@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param("hooks", ".git/hooks", id="hooks"),
        pytest.param("config", ".git/config", id="config"),
        pytest.param("config.worktree", ".git/config.worktree", id="config-of-the-worktree"),
        pytest.param("commondir", ".git/commondir", id="common-directory"),
        pytest.param("HEAD", None, id="commits-work"),
        pytest.param("logs/config", None, id="deeper"),
    ],
)
def test_what_is_missing_in_a_repository_must_not_be_made(
    tmp_path: Path, store: str, path: str, name: str | None
) -> None:
    top = tmp_path.resolve()
    for folder in ("objects", "refs"):
        (top / store / folder).mkdir(parents=True)
    (top / store / "HEAD").touch()
    place = str(top / store / path)
    found = protected_by(place, str(top), Search(3), DISK)
    assert (found and found.name) == name
    assert [each.name for each in find(str(top), Search(3), DISK) if each.path == place] == ([name] if name else [])


@pytest.mark.parametrize(
    ("path", "name", "where"),
    [
        pytest.param(".git", None, None, id="git-itself-is-made-on-a-stage"),
        pytest.param(".git/hooks/x", None, None, id="all-of-git-is"),
        pytest.param(".GIT/hooks/x", None, None, id="in-any-case"),
        pytest.param(".claude/x", ".claude/commands", ".claude", id="all-of-claude"),
        pytest.param("x/.git", None, None, id="below-it-can"),
    ],
)
def test_missing_directories_on_the_way_are_protected_at_the_root(
    tmp_path: Path, path: str, name: str | None, where: str | None
) -> None:
    found = protected_by(str(tmp_path / path), str(tmp_path), Search(3), DISK)
    assert (found and (found.name, found.path)) == (name and (name, f"{tmp_path}/{where}"))


def test_on_a_disk_without_case_a_repository_is_protected_by_any_spelling(top: Path) -> None:
    class Caseless(Disk):
        def exists(self, path: str) -> bool:
            return super().exists(path.replace(".GIT", ".git"))

        def is_directory(self, path: str) -> bool:
            return super().is_directory(path.replace(".GIT", ".git"))

        def names(self, path: str) -> tuple[str, ...]:
            return super().names(path.replace(".GIT", ".git"))

    found = protected_by(f"{top}/.GIT/hooks/x", str(top), Search(3), Caseless())
    assert (found and found.name) == ".git/hooks"


@pytest.mark.parametrize(
    ("root", "path", "name"),
    [
        pytest.param("a/.git", "a/.git/hooks/x", ".git/hooks", id="root-is-a-repository"),
        pytest.param("a/.git/hooks/x", "a/.git/hooks/x", ".git/hooks", id="root-is-a-hook"),
        pytest.param("a/.bashrc", "a/.bashrc", ".bashrc", id="root-is-a-protected-file"),
        pytest.param("a/b/c/.vscode/x", "a/b/c/.vscode/x/y", ".vscode", id="root-in-a-protected-directory"),
        pytest.param("a/b/c/d", "a/b/c/d/.bashrc", ".bashrc", id="a-deeper-root-reaches-deeper"),
        pytest.param("node_modules/pkg", "node_modules/pkg/.vscode", ".vscode", id="root-in-node_modules"),
        pytest.param("a/.git/refs", "a/.git/refs/.vscode", ".vscode", id="root-in-git"),
    ],
)
def test_names_above_the_root_count(top: Path, root: str, path: str, name: str) -> None:
    found = protected_by(str(top / path), str(top / root), Search(1), DISK)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param(".git/config", None, id="config"),
        pytest.param(".git/config.worktree", None, id="config.worktree"),
        pytest.param(".git/modules/lib/foo/config", None, id="config-of-a-module"),
        pytest.param(".git/hooks", ".git/hooks", id="hooks-stay"),
        pytest.param("a/.bashrc", ".bashrc", id="others-stay"),
    ],
)
def test_a_setting_lifts_the_configs_only(top: Path, path: str, name: str | None) -> None:
    found = protected_by(str(top / path), str(top), Search(3, CONFIGS), DISK)
    assert (found and found.name) == name


@pytest.mark.parametrize(
    ("names", "path", "name"),
    [
        pytest.param({".vscode"}, ".vscode/x", None, id="missing-at-the-root"),
        pytest.param({".vscode"}, "a/b/c/.vscode/x", None, id="below"),
        pytest.param({".vscode"}, ".idea", ".idea", id="another-name"),
        pytest.param({".git/hooks"}, ".git/hooks/x", None, id="hooks"),
        pytest.param({".git/hooks"}, ".git/modules/lib/foo/hooks/x", None, id="hooks-of-a-module"),
        pytest.param({".git/hooks"}, ".git/config", ".git/config", id="another-entry"),
        pytest.param({".claude/commands"}, ".claude/commands", None, id="missing-entry"),
        pytest.param({"refs", "objects", "HEAD"}, "refs", None, id="parts-of-a-repository"),
    ],
)
def test_a_name_is_lifted_everywhere(top: Path, names: set[str], path: str, name: str | None) -> None:
    search = Search(3, frozenset(names))
    found = protected_by(str(top / path), str(top), search, DISK)
    assert (found and found.name) == name
    kept = {each.name for each in lifted(find(str(top), search, DISK), search)}
    assert not kept & names
    assert name is None or name in kept


def test_a_directory_may_be_made_once_all_that_is_protected_in_it_is_lifted(tmp_path: Path) -> None:
    entries = [f".claude/{entry}" for entry in INNER[".claude"]]
    for count in range(len(entries) + 1):
        search = Search(3, frozenset(entries[:count]))
        found = protected_by(f"{tmp_path}/.claude/x", str(tmp_path), search, DISK)
        assert (found is None) == (count == len(entries))
        kept = {each.path for each in lifted(find(str(tmp_path), search, DISK), search)}
        assert (f"{tmp_path}/.claude" in kept) == (count < len(entries))


@pytest.mark.parametrize(
    ("spared", "path", "name"),
    [
        pytest.param("a", "a/.bashrc", None, id="below-it"),
        pytest.param("a", "a/.git/config", None, id="a-repository-below-it"),
        pytest.param("a/.bashrc", "a/.bashrc", None, id="the-very-path"),
        pytest.param("a/.bashrc", "a/.git/hooks/x", ".git/hooks", id="beside-it"),
        pytest.param(".vscode", ".vscode/x", None, id="missing-at-the-root"),
        pytest.param("a/b/c/.vscode/x", "a/b/c/.vscode/x", ".vscode", id="inside-a-name-is-not-enough"),
        pytest.param(".", ".stockade/settings.json", ".stockade/settings.json", id="own-settings-stay"),
        pytest.param(".", ".git/hooks", None, id="everything-else"),
    ],
)
def test_a_path_lifts_what_is_protected_at_it(top: Path, spared: str, path: str, name: str | None) -> None:
    (top / ".stockade").mkdir()
    (top / ".stockade/settings.json").touch()
    pattern = PathPattern.parse(spared, cwd=str(top), home="/h")
    search = Search(3, spared=(pattern,))
    found = protected_by(str(top / path), str(top), search, DISK)
    assert (found and found.name) == name
    covering = [
        each for each in lifted(find(str(top), search, DISK), search) if f"{top / path}/".startswith(each.place)
    ]
    assert {each.name for each in covering} == ({name} if name else set())


@pytest.mark.parametrize("name", ["refs", "objects", "HEAD"])
def test_where_git_takes_no_bare_repository_its_parts_are_free(tmp_path: Path, name: str) -> None:
    search = Search(3, bare=False)
    assert protected_by(f"{tmp_path}/{name}", str(tmp_path), search, DISK) is None
    assert name not in {each.name for each in find(str(tmp_path), search, DISK)}


@pytest.mark.parametrize(
    ("name", "root", "kept"),
    [
        pytest.param(".bashrc", "u", ".bashrc", id="the-home-itself"),
        pytest.param(".config/systemd/user/x", "u", ".config/systemd", id="there"),
        pytest.param(".ssh/config", ".", ".ssh", id="a-root-above"),
        pytest.param(".config/autostart", "u/.config", ".config/autostart", id="a-root-between"),
        pytest.param(".local/bin/x", "u", ".local/bin", id="on-a-missing-way"),
        pytest.param(".local/anything", "u", ".local/bin", id="the-missing-way-itself"),
        pytest.param(".nvm/x", "u", ".nvm", id="set-up"),
        pytest.param(".pyenv/x", "u", None, id="not-set-up"),
        pytest.param(".config/foo", "u", None, id="anything-else"),
        pytest.param(".ssh/config", "u/.ssh", None, id="an-allow-of-its-own"),
        pytest.param("code/.bashrc", "u/code", None, id="a-project"),
        pytest.param("Library/LaunchAgents/x", "u", None, id="no-mac"),
    ],
)
def test_what_is_protected_in_a_home(tmp_path: Path, name: str, root: str, kept: str | None) -> None:
    top = tmp_path.resolve()
    home = top / "u"
    for folder in (".config/systemd/user", ".ssh", ".nvm", "code"):
        (home / folder).mkdir(parents=True)
    search = Search(3, homes=(str(home),))
    place, tree = str(home / name), str(top / root)
    found = protected_by(place, tree, search, DISK)
    assert kept in (None, ".local/bin") or (found is not None and found.name == kept)
    assert (found is None) == (kept is None)
    covering = [each for each in find(tree, search, DISK) if f"{place}/".startswith(f"{each.place}/")]
    assert bool(covering) == (kept is not None)


def test_names_of_a_home_are_lifted_one_by_one(tmp_path: Path) -> None:
    home = str(tmp_path.resolve())
    search = Search(3, frozenset({".bashrc", ".local/bin"}), homes=(home,))
    assert protected_by(f"{home}/.bashrc", home, search, DISK) is None
    way = protected_by(f"{home}/.local", home, search, DISK)
    assert way is not None
    assert way.name != ".local/bin"
    left = {each.name for each in lifted(find(home, search, DISK), search) if each.place == f"{home}/.local"}
    assert ".local/bin" not in left
    assert ".local/lib" in left


def test_find_yields_what_protected_by_names(top: Path) -> None:
    found = {each.path.removeprefix(f"{top}/") for each in find(str(top), Search(3), DISK)}
    assert found == {
        *(name for name in NAMES if name not in UNKEPT),
        "refs",
        ".claude/agents",
        ".claude/commands",
        ".claude/hooks",
        ".claude/settings.json",
        ".claude/settings.local.json",
        "a/.helix",
        "a/.codex/config.toml",
        ".git/hooks",
        ".git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".git/modules/lib/foo/hooks",
        ".git/modules/lib/foo/config",
        ".git/worktrees/wt/config.worktree",
        ".git/worktrees/wt/commondir",
        "a/.git/hooks",
        "a/.git/config",
        "a/.bashrc",
        "a/b/c/.bashrc",
        "a/b/c/.vscode",
        "sub/.git",
    }
    for path in found:
        assert protected_by(str(top / path), str(top), Search(3), DISK) is not None


def test_find_follows_protected_links(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    (top / "store" / "hooks").mkdir(parents=True)
    (top / "dots").mkdir()
    (top / "a").mkdir()
    (top / "a" / ".git").symlink_to("../store")
    (top / "a" / ".bashrc").symlink_to("../dots/bashrc")
    (top / "a" / ".vscode").symlink_to(".vscode")
    below = {(each.name, each.place) for each in find(str(top), Search(2), DISK) if each.path.startswith(f"{top}/a/")}
    assert below == {
        (".git", f"{top}/a/.git"),
        (".bashrc", f"{top}/dots/bashrc"),
        (".vscode", f"{top}/a/.vscode"),
    }
    assert (".git/hooks", f"{top}/store/hooks") in {(each.name, each.place) for each in find(str(top), Search(2), DISK)}


def test_a_root_that_is_missing_is_not_protected_itself(tmp_path: Path) -> None:
    root = f"{tmp_path}/new"
    found = {each.path.removeprefix(f"{root}/") for each in find(root, Search(3), DISK)}
    assert found == {*NAMES, *INNER, "refs"} - UNKEPT
