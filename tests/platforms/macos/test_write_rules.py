from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.macos.evaluator import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.platforms.macos.conftest import Case

W = "/Users/ann/w"
HOOKS = {f"{W}/{path}": None for path in (".git/hooks/x", ".git/config", ".git/HEAD", "sub/.git/hooks/x")}


@pytest.mark.parametrize(
    ("entries", "options", "writable", "closed"),
    [
        pytest.param({W: ""}, {}, ["a", "a/b", "refsx"], ["../x", "/etc/hosts", "/", "refs"], id="root"),
        pytest.param({W: ""}, {"write": ["/o/*.log"]}, ["/o/a.log", "/o/b.log/c"], ["/o/a", "a"], id="glob"),
        pytest.param({W: ""}, {"deny": ["keep"]}, ["keeper"], ["keep", "keep/a", "KEEP", "KEEP/a"], id="missing-deny"),
        pytest.param({f"{W}/keep/a": None}, {"deny": ["keep"]}, ["keeper"], ["keep", "keep/a"], id="deny"),
        pytest.param(
            {f"{W}/a/": ""}, {"deny": ["a/b/c"]}, ["a/d"], ["a/b", "a/b/c", "a/B/x"], id="way-to-a-missing-deny"
        ),
        pytest.param({W: ""}, {"deny": ["**/*.lock"]}, ["a"], ["x.lock", "a/b/x.lock/y"], id="deny-by-glob"),
        pytest.param({W: ""}, {"hide": ["s"]}, ["t"], ["s", "s/a"], id="hidden"),
        pytest.param({f"{W}/l": "d/x", f"{W}/d/x": None}, {"deny": ["l"]}, ["d/y"], ["l", "d/x"], id="deny-on-a-link"),
        pytest.param(
            HOOKS, {}, [".git/index", ".git/objects/a", "sub/.git/HEAD"], [".git/hooks", ".git/hooks/y"], id="hooks"
        ),
        pytest.param(
            HOOKS, {}, [], [".GIT/HOOKS/y", ".git/Config", "sub/.git/hooks/y", "new/.git/hooks"], id="any-depth"
        ),
        pytest.param(
            HOOKS, {"git_config": True}, [".git/config", "sub/.git/config"], [".git/hooks/y"], id="git-config"
        ),
        pytest.param(
            HOOKS, {}, [".git/modules/m/index"], [".git/modules/m/hooks/y", ".git/modules/a/b/config"], id="submodules"
        ),
        pytest.param(HOOKS, {}, [".git/worktrees/t/HEAD"], [".git/worktrees/t/commondir"], id="worktrees"),
        pytest.param(
            {W: ""},
            {},
            ["a/idea", "a/.idea2", ".bashrc", ".gitmodules"],
            [".mcp.json", "a/b/c/d/.Idea", "a/.v\u017fcode", ".vscode/a"],
            id="names",
        ),
        pytest.param({f"{W}/a/.bashrc": None}, {}, ["b/.bashrc"], ["a/.bashrc"], id="names-that-are-there"),
        pytest.param(
            {"/Users/ann/.ssh/": "", "/Users/ann/.config/": ""},
            {"write": ["/Users"]},
            ["/Users/ann/x", "/Users/ann/.config/x", "/Users/.bashrc"],
            ["/Users/ann/.bashrc", "/Users/ann/.ssh/config", "/Users/ann/.config/systemd/x", "/Users/ann/.local/bin/x"],
            id="names-of-a-home",
        ),
        pytest.param(
            {f"{W}/a/.idea/": "", f"{W}/.git/": ""},
            {"lifted": [".idea", ".git/hooks"]},
            [".idea/x", "a/.idea/x", "b/.idea", ".git/hooks/x", "a/.git/hooks/x"],
            [".vscode", ".git/config"],
            id="lifted-names",
        ),
        pytest.param(
            {f"{W}/a/.git/hooks/": "", f"{W}/a/.vscode/": ""},
            {"spared": ["a"]},
            ["a/.git/hooks/x", "a/.vscode/x", "a/.idea", "a/b/.mcp.json"],
            ["b/.git/hooks/x", ".vscode", ".idea"],
            id="spared-places",
        ),
        pytest.param(
            {W: ""},
            {},
            ["node_modules/p/.vscode/x", "a/node_modules/p/.bashrc"],
            [".vscode/node_modules/x", "a/.idea/node_modules/x", "node_modulesx/.vscode"],
            id="node-modules",
        ),
        pytest.param({f"{W}/.claude/": ""}, {}, [".claude/x"], [".claude/commands/a", "a/.claude/agents"], id="claude"),
        pytest.param({W: ""}, {}, [], [".claude", ".claude/x", ".git", ".git/index", ".GIT"], id="missing-holders"),
        pytest.param({f"{W}/.git": None}, {}, [], [".git", ".git/x"], id="git-file"),
        pytest.param(
            {"/tmp": "private/tmp", "/private/tmp/o/": ""},
            {"write": ["/tmp/o"]},
            ["/private/tmp/o/x"],
            [],
            id="aliases",
        ),
        pytest.param(
            {f'{W}/x"\\\n*[/a': None}, {"deny": ['x"\\\\\n\\*\\[']}, ["x"], ['x"\\\n*[/a'], id="names-of-all-kinds"
        ),
    ],
)
def test_writes(
    case: Callable[..., Case],
    entries: Mapping[str, str | None],
    options: Mapping[str, object],
    writable: list[str],
    closed: list[str],
) -> None:
    walls = Evaluator(case({path.rstrip("/"): what for path, what in entries.items()}, **options).profile.text)

    def place(path: str) -> str:
        return path if path.startswith("/") else f"{W}/{path}".replace("/w/../", "/")

    for operation in ("file-write-data", "file-write-create"):
        assert [path for path in writable if not walls.allows_file(operation, place(path))] == []
        assert [path for path in closed if walls.allows_file(operation, place(path))] == []


@pytest.mark.parametrize(
    ("entries", "options", "held", "free"),
    [
        pytest.param({f"{W}/a/b/c": None}, {"deny": ["a/b/c"]}, ["a", "a/b", "a/b/c"], ["a/x"], id="above-a-deny"),
        pytest.param(
            {f"{W}/a/s/k": None}, {"hide": ["a/s"]}, ["a", "a/s", "a/s/k"], ["a/x"], id="above-a-hidden-place"
        ),
        pytest.param(
            HOOKS, {}, [".git", "sub", "sub/.git", ".git/hooks", "new/.git"], [".git/index"], id="repositories"
        ),
        pytest.param({W: ""}, {}, [""], ["x"], id="the-root-itself"),
        pytest.param({"/o/f": None}, {"write": ["/o/f"]}, [], ["/o/f"], id="a-file-can-be-replaced"),
        pytest.param({f"{W}/l": "d", f"{W}/d/x": None}, {"deny": ["l/x"]}, ["l", "d", "d/x"], ["d/y"], id="links"),
        pytest.param({f"{W}/a/m.pem": None}, {"hide": ["*/*.pem"]}, ["a", "a/m.pem"], ["b"], id="above-a-glob"),
        pytest.param({f"{W}/p/q/": ""}, {"write": ["p/*"]}, ["p/q"], ["p/q/r"], id="what-a-glob-opens"),
    ],
)
def test_nothing_closed_is_carried_away(
    case: Callable[..., Case],
    entries: Mapping[str, str | None],
    options: Mapping[str, object],
    held: list[str],
    free: list[str],
) -> None:
    made = case({path.rstrip("/"): what for path, what in entries.items()}, **options)
    walls = Evaluator(made.profile.text)

    def place(path: str) -> str:
        return path if path.startswith("/") else f"{W}/{path}".rstrip("/")

    for path in held:
        kind = "DIRECTORY" if made.disk.is_directory(place(path)) else "REGULAR-FILE"
        assert not walls.allows_file("file-write-unlink", place(path), kind), path
        assert not walls.allows_rename(place(path), f"{W}/fresh", kind), path
    assert [path for path in free if not walls.allows_file("file-write-unlink", place(path))] == []


def test_each_change_of_a_closed_file_is_denied(case: Callable[..., Case]) -> None:
    walls = Evaluator(case(HOOKS, deny=["keep"]).profile.text)
    changes = ("data", "create", "unlink", "mode", "owner", "flags", "times", "xattr", "acl", "setugid")
    for path in (f"{W}/keep", f"{W}/.git/config", "/etc/hosts"):
        assert [change for change in changes if walls.allows_file(f"file-write-{change}", path)] == []
