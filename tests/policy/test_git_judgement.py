"""``stockade.policy.git_judgement``: what a repository would make git do, from its texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.git_judgement import (
    common_directory,
    common_fault,
    is_aside,
    is_hook,
    judge_config,
    leading_to,
    linked_directory,
)


def test_a_harmless_config_names_the_repositories_that_it_leads_to() -> None:
    text = b'[core]\nbare = false\n[remote "o"]\nurl = /p/x/.\n[branch "main"]\nremote = o\n'
    verdict = judge_config(text, "/p/sub/.git", "/p/sub")

    assert (verdict.fault, verdict.paths) == ("", ("/p/x", "/p/x.git"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[core]\nfsmonitor = x\n", "core.fsmonitor"),
        (b"[core\n", "git cannot read it"),
        (None, "cannot be read"),
        (b"[core]\nworktree = /etc\n", "core.worktree"),
        (b"[core]\nworktree = ../../../x/../sub\n", "core.worktree"),
        (b"[core]\nworktree\n", "core.worktree"),
    ],
)
def test_what_is_wrong_with_a_config(text: bytes | None, words: str) -> None:
    assert words in judge_config(text, "/p/.git/modules/sub", "/p/sub").fault


def test_a_work_tree_may_lead_back() -> None:
    text = b"[core]\nworktree = ../../../sub\n"

    assert judge_config(text, "/p/.git/modules/sub", "/p/sub").fault == ""
    assert judge_config(text, "/p/.git/modules/sub", above="/p").fault == ""
    assert judge_config(text, "/p/.git/modules/sub", "/p/other").fault


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("pre-commit", True),
        ("anything", True),
        ("pre-commit.sample", False),
        ("pre-commit.stockade-12", False),
        ("pre-commit.stockade-x", True),
    ],
)
def test_hooks(name: str, runs: bool) -> None:  # noqa: FBT001
    assert is_hook(name) == runs


def test_names_that_were_set_aside() -> None:
    assert (is_aside("config.stockade-1"), is_aside("config"), is_aside("config.stockade-")) == (True, False, False)


@pytest.mark.parametrize(
    ("text", "directory"),
    [
        (b"gitdir: ../.git/modules/sub\n", "/p/.git/modules/sub"),
        (b"gitdir: /x/y", "/x/y"),
        (b"gitdir: /x\0/y", "/x"),
        (b"gitdir: a/../b", ""),
        (b"gitdir: /x/../y", ""),
        (b"gitdir:\n", None),
        (b"something else", None),
        (None, None),
    ],
)
def test_where_a_git_file_leads(text: bytes | None, directory: str | None) -> None:
    assert linked_directory(text, "/p/sub") == directory


@pytest.mark.parametrize(
    ("text", "directory", "good"),
    [
        (b"../..\n", "/p/.git/worktrees/x", True),
        (b"/p/.git\n", "/p/.git/worktrees/x", True),
        (b".\n", "/p/.git", True),
        (b"/elsewhere\n", "/p/.git/worktrees/x", False),
        (b"../..\n", "/p/sub/.git", False),
        (b"\n", "/p/.git", False),
        (None, "/p/.git", False),
    ],
)
def test_commondir(text: bytes | None, directory: str, good: bool) -> None:  # noqa: FBT001
    assert (common_fault(text, directory) == "") == good


def test_the_repository_of_a_worktree() -> None:
    assert common_directory("/p/.git/worktrees/x") == "/p/.git"
    assert common_directory("/p/.git") == "/p/.git"


@given(st.binary(), st.text(alphabet="/.ab\0", max_size=12))
def test_no_text_raises(text: bytes, path: str) -> None:
    judge_config(text, "/p/.git", "/p")
    common_fault(text, "/p/.git")
    found = linked_directory(b"gitdir: " + text, "/p")
    assert found is None or found == "" or found.startswith("/")
    assert ".." not in leading_to(path, "/p/q").split("/")
