"""``stockade.policy.inspected``: which paths are inspected, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.enforcement.conftest import policy_for

from stockade.policy.files import Access, survey
from stockade.policy.inspected import inspection_of
from stockade.policy.places import Disk

if TYPE_CHECKING:
    from pathlib import Path


def words(root: Path, path: str, **settings: Any) -> str:
    rules = policy_for(root, root.parent / "home", **settings).files
    verdict = survey(rules, Disk()).judge(Access.WRITE, path, Disk())
    return inspection_of(verdict, str(root), rules, Disk())


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("sub/.git/config", "a setting that git could run"),
        ("sub/.git/hooks/pre-commit", "a hook that git could run"),
        ("sub/.git/commondir", "another repository's hooks"),
        ("sub/.git/modules/lib/config", "a setting that git could run"),
        ("sub/.git", "a link or file that leads to another repository"),
        (".git/hooks/pre-commit", "a hook that git could run"),
        ("pkg/.mcp.json", ".mcp.json is set aside"),
        ("pkg/.vscode/tasks.json", ".vscode/tasks.json is set aside"),
        ("pkg/.vscode", "any of settings.json, tasks.json, launch.json, mcp.json in .vscode"),
        ("pkg/.claude/commands/go.md", ".claude/commands is set aside"),
    ],
)
def test_what_is_inspected(tmp_path: Path, path: str, what: str) -> None:
    assert what in words(tmp_path, path)


@pytest.mark.parametrize(
    "path",
    [
        "sub/file",
        "sub/.git/objects/x",
        "pkg/.vscode/extensions.json",
        "node_modules/x/.git/config",
        "a/b/c/d/e/.git/config",
        ".mcp.json",
    ],
)
def test_what_is_not(tmp_path: Path, path: str) -> None:
    assert words(tmp_path, path) == ""


def test_what_is_protected_is_not(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").touch()
    assert words(tmp_path, ".git/hooks/pre-commit") == ""


def test_settings_lift_it(tmp_path: Path) -> None:
    assert words(tmp_path, "sub/.git/config", filesystem__allowGitConfig=True) == ""
    for name, path in (
        (".git/hooks", "sub/.git/hooks/x"),
        (".vscode", "sub/.vscode/tasks.json"),
        (".idea", "sub/.idea"),
    ):
        assert words(tmp_path, path) != ""
        assert words(tmp_path, path, filesystem__allowProtected=(name,)) == ""
    assert "leaves it alone" in words(tmp_path, "sub/.git/config", filesystem__allowProtected=("sub",))
