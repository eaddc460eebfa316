from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.files import Access, FileRules, Reason, survey
from stockade.policy.git_link import GitLink, git_link_at
from stockade.policy.path_pattern import PathPattern
from stockade.policy.places import Disk
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DISK = Disk()
USER = Origin(Layer.USER, "settings.json")
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


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """``main`` has a worktree ``tree`` and a submodule ``main/sub``; ``apart`` keeps its repository in ``kept``."""
    top = tmp_path.resolve()
    for name in ("main", "other", "apart"):
        (top / name).mkdir()
    for name in ("main", "other"):
        _git(top / name, "init", "-q")
        _git(top / name, "commit", "-q", "--allow-empty", "-m", "first")
    _git(top / "main", "worktree", "add", "-q", "../tree")
    _git(top / "main", "submodule", "add", "-q", str(top / "other"), "sub")
    _git(top / "apart", "init", "-q", "--separate-git-dir", "../kept")
    return top


def test_a_worktree_leads_to_its_repository(top: Path) -> None:
    assert git_link_at(f"{top}/tree", DISK) == GitLink(f"{top}/tree/.git", f"{top}/main/.git")


def test_a_submodule_leads_to_its_own_part(top: Path) -> None:
    assert git_link_at(f"{top}/main/sub", DISK) == GitLink(f"{top}/main/sub/.git", f"{top}/main/.git/modules/sub")


def test_a_repository_is_no_link(top: Path) -> None:
    assert git_link_at(f"{top}/main", DISK) is None
    assert git_link_at(f"{top}/none", DISK) is None


def _forge(top: Path, text: str) -> None:
    (top / "apart" / ".git").write_text(text)


def _of_another_user(top: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(top / "main" / ".git" / "worktrees" / "tree" / "gitdir", 1, 1)


WORKTREE = "main/.git/worktrees/tree"


@pytest.mark.parametrize(
    ("root", "change", "why"),
    [
        pytest.param("apart", lambda _: None, "it leads neither", id="a-repository-that-is-neither"),
        pytest.param("apart", lambda top: _forge(top, "hello"), "it does not say", id="no-git-file"),
        pytest.param("apart", lambda top: _forge(top, "gitdir:\n"), "it does not say", id="no-path"),
        pytest.param("apart", lambda top: _forge(top, "gitdir: a\nb"), "the path in it", id="two-lines"),
        pytest.param("apart", lambda top: _forge(top, "gitdir: /\n"), "it leads neither", id="the-whole-disk"),
        pytest.param(
            "apart", lambda top: _forge(top, f"gitdir: {top}/main/.git"), "it leads neither", id="a-whole-repository"
        ),
        pytest.param(
            "apart", lambda top: _forge(top, f"gitdir: {top}/{WORKTREE}"), "the worktree", id="another-tree's-worktree"
        ),
        pytest.param(
            "apart",
            lambda top: _forge(top, f"gitdir: {top}/main/.git/modules/sub"),
            "the repository that it names does not point back",
            id="another-tree's-submodule",
        ),
        pytest.param(
            "tree",
            lambda top: (top / WORKTREE / "commondir").write_text(f"{top}/other/.git\n"),
            "the worktree that it names belongs to no repository",
            id="a-common-directory-elsewhere",
        ),
        pytest.param(
            "tree", lambda top: (top / "main/.git/HEAD").unlink(), "the worktree that it names belongs", id="no-head"
        ),
        pytest.param("tree", _of_another_user, "the worktree that it names does not", id="confirmed-by-another-user"),
        pytest.param(
            "main/sub",
            lambda top: (top / "main/.git/modules/sub/config").write_text('[core "x"]\nworktree = ../../../sub\n'),
            "the repository that it names does not point back",
            id="another-section",
        ),
    ],
)
def test_what_is_not_confirmed_is_not_followed(
    top: Path, root: str, change: Callable[[Path], object], why: str
) -> None:
    change(top)
    link = git_link_at(f"{top}/{root}", DISK)
    assert link is not None
    assert (link.store, link.why.startswith(why)) == ("", True), link.why


def _rules(root: str, *, write_deny: tuple[str, ...] = (), read_deny: tuple[str, ...] = ()) -> FileRules:
    def sourced(*paths: str) -> tuple[Sourced[PathPattern], ...]:
        return tuple(Sourced(PathPattern.literal(path), USER) for path in paths)

    return FileRules(
        cwd=root,
        home="/home",
        write_allow=sourced(root),
        write_deny=sourced(*write_deny),
        read_deny=sourced(*read_deny),
        read_allow=(),
        search_depth=3,
        allow_git_config=False,
    )


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("main/.git/objects/ab/x", Reason.IN_REPOSITORY, id="objects"),
        pytest.param("main/.git/refs/heads/tree", Reason.IN_REPOSITORY, id="refs"),
        pytest.param("main/.git/packed-refs.lock", Reason.IN_REPOSITORY, id="packed-refs"),
        pytest.param(f"{WORKTREE}/index.lock", Reason.IN_REPOSITORY, id="index"),
        pytest.param(f"{WORKTREE}/commondir", Reason.PROTECTED, id="the-common-directory"),
        pytest.param(f"{WORKTREE}/config.worktree", Reason.PROTECTED, id="a-missing-config-of-the-worktree"),
        pytest.param("main/.git/hooks/pre-commit", Reason.PROTECTED, id="hooks"),
        pytest.param("main/.git/config", Reason.PROTECTED, id="config"),
        pytest.param("main/.git/commondir", Reason.PROTECTED, id="a-missing-common-directory"),
        pytest.param("main/.git/modules/sub/hooks", Reason.PROTECTED, id="hooks-of-a-submodule"),
        pytest.param("main/file", Reason.OUTSIDE_WRITABLE, id="the-other-working-tree"),
        pytest.param("tree/.git", Reason.PROTECTED, id="the-git-file"),
        pytest.param("tree/file", Reason.IN_WRITABLE_ROOT, id="the-tree-itself"),
    ],
)
def test_a_worktree_can_be_committed_to(top: Path, path: str, reason: Reason) -> None:
    ground = survey(_rules(f"{top}/tree"), DISK)
    assert ground.judge(Access.WRITE, f"{top}/{path}", DISK).reason is reason


@pytest.mark.parametrize("field", ["write_deny", "read_deny"])
def test_a_deny_closes_the_repository(top: Path, field: str) -> None:
    rules = _rules(f"{top}/tree", **{field: (f"{top}/main",)})
    assert [link.store for link in survey(rules, DISK).git_links] == [""]
    assert not survey(rules, DISK).judge(Access.WRITE, f"{top}/main/.git/index", DISK).allowed


class Said:
    """A disk on which every file says the same."""

    def __init__(self, text: str) -> None:
        self._text = text

    def link(self, _path: str) -> str | None:
        return None

    def exists(self, _path: str) -> bool:
        return True

    def is_directory(self, _path: str) -> bool:
        return True

    def names(self, _path: str) -> tuple[str, ...]:
        return ()

    def text(self, _path: str) -> str | None:
        return self._text

    def config(self, _path: str) -> bytes | None:
        return os.fsencode(self._text)

    def gitlinks(self, _path: str, _hash_size: int) -> tuple[str, ...]:
        return ()


@given(st.text() | st.text().map("gitdir: {}".format) | st.just("gitdir: /x/worktrees/y"))
def test_no_text_raises_or_is_followed(text: str) -> None:
    link = git_link_at("/w", Said(text))
    assert link is not None
    assert link.store == ""
