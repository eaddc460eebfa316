from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.policy.files import Access, FileRules, judge, survey
from stockade.policy.path_pattern import PathPattern
from stockade.policy.places import Disk
from stockade.policy.promised import Promising
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from pathlib import Path

USER = Origin(Layer.USER)


def _rules(
    root: Path, *, lifted: tuple[str, ...] = (), spared: tuple[str, ...] = (), deny: tuple[str, ...] = ()
) -> FileRules:
    def sourced(*texts: str) -> tuple[Sourced[PathPattern], ...]:
        return tuple(Sourced(PathPattern.parse(text, cwd=str(root), home="/h"), USER) for text in texts)

    return FileRules(
        str(root),
        "/h",
        sourced("."),
        sourced(*deny),
        (),
        (),
        3,
        allow_git_config=False,
        left_allow=sourced(*spared),
        lifted=frozenset(lifted),
    )


def _writable(rules: FileRules, *names: str) -> list[str]:
    return [name for name in names if judge(rules, Access.WRITE, name, Disk()).allowed]


ASKED = (".claude", ".claude/commands/a.md", ".claude/hooks/x", ".claude/settings.json", ".claude/own", ".vscode")


@pytest.mark.parametrize(
    ("settings", "open_names"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"lifted": (".vscode",)}, [".vscode"], id="another"),
        pytest.param({"lifted": (".claude/commands",)}, [".claude", ".claude/commands/a.md", ".claude/own"], id="name"),
        pytest.param(
            {"spared": ("./.claude/commands",)}, [".claude", ".claude/commands/a.md", ".claude/own"], id="path"
        ),
        pytest.param({"spared": ("./.claude/",)}, list(ASKED[:-1]), id="directory"),
        pytest.param(
            {"spared": ("./.claude",), "deny": (".claude/settings.json",)},
            [".claude", ".claude/commands/a.md", ".claude/hooks/x", ".claude/own"],
            id="but-for-a-deny",
        ),
        pytest.param(
            {"lifted": (".claude/settings.json",), "deny": (".claude/settings.json",)}, [], id="only-what-is-denied"
        ),
    ],
)
def test_a_missing_directory_may_be_made_for_what_is_lifted_in_it_and_nothing_else_there(
    tmp_path: Path, settings: dict[str, tuple[str, ...]], open_names: list[str]
) -> None:
    rules = _rules(tmp_path, **settings)
    assert _writable(rules, *ASKED) == open_names
    assert survey(rules, Disk()).promised == ({f"{tmp_path}/.claude"} if ".claude" in open_names else set())
    (tmp_path / ".claude").mkdir()
    assert survey(rules, Disk()).promised == frozenset()
    assert [name for name in _writable(rules, *ASKED) if name not in (".claude", ".claude/own")] == [
        name for name in open_names if name not in (".claude", ".claude/own")
    ]


def test_only_where_there_are_no_stages_a_repository_is_promised(tmp_path: Path) -> None:
    rules = _rules(tmp_path, lifted=(".git/config",))
    assert survey(rules, Disk()).promised == frozenset()
    bare = rules.but(staged=False)
    assert survey(bare, Disk()).promised == {f"{tmp_path}/.git"}
    assert _writable(bare, ".git", ".git/config", ".git/hooks/x") == [".git", ".git/config"]


def test_a_disk_with_promises_is_otherwise_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    disk = Promising(Disk(), frozenset({f"{tmp_path}/d"}))
    assert [disk.exists(f"{tmp_path}/{name}") for name in ("file", "d", "e")] == [True, True, False]
    assert [disk.is_directory(f"{tmp_path}/{name}") for name in ("file", "d", "e")] == [False, True, False]
    assert (disk.names(str(tmp_path)), disk.names(f"{tmp_path}/d")) == (("file",), ())


def test_a_refusal_in_a_missing_directory_names_what_would_lift_it(tmp_path: Path) -> None:
    rules = _rules(tmp_path)
    for name, start in (
        (".claude/agents/x", 'add ".claude/agents" to sandbox.filesystem.allowProtected, or run with'),
        (".claude/hooks", 'add ".claude/hooks" to sandbox.filesystem.allowProtected, or run with'),
        (".claude/own", f'make the directory "{tmp_path}/.claude" outside the sandbox first'),
        (".claude", f'make the directory "{tmp_path}/.claude" outside the sandbox first'),
    ):
        assert judge(rules, Access.WRITE, name, Disk()).remedy.startswith(start)
