from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.terrain import Land
from stockade.filesystem.unseen import is_unseen

if TYPE_CHECKING:
    from pathlib import Path

NAME = "settings.local.json"


@pytest.mark.parametrize(
    ("file", "line", "unseen"),
    [
        ("", "", False),
        ("p/.gitignore", ".claude/settings.local.json", True),
        ("p/.gitignore", ".claude/", True),
        ("p/.gitignore", "settings.json", False),
        ("p/.gitignore", f"{NAME}\n!{NAME}", False),
        ("p/.claude/.gitignore", NAME, True),
        ("p/.git/info/exclude", "**/.claude/settings.local.json", True),
        ("h/.config/git/ignore", "**/.claude/settings.local.json", True),
        (".gitignore", NAME, False),
    ],
)
def test_git_agrees(tmp_path: Path, file: str, line: str, *, unseen: bool) -> None:
    project, home = tmp_path / "p", tmp_path / "h"
    project.mkdir()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
    subprocess.run(["git", "init", "-q", str(project)], env=environment, check=True)
    (project / ".claude").mkdir()
    if file:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"{line}\n")
    path = project / ".claude" / NAME
    assert is_unseen(str(path), str(home), Land()) is unseen
    path.touch()
    words = ["git", "-C", str(project), "status", "--porcelain", "-uall"]
    told = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert (NAME not in told) is unseen


@pytest.mark.parametrize("ignored", [True, False])
def test_where_no_repository_is_yet_only_an_ignore_file_counts(tmp_path: Path, *, ignored: bool) -> None:
    (tmp_path / ".claude").mkdir()
    if ignored:
        (tmp_path / ".gitignore").write_text(f"{NAME}\n")
    assert is_unseen(f"{tmp_path}/.claude/{NAME}", "/nowhere", Land()) is ignored
