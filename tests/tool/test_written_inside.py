from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from stockade.tool.written_inside import WrittenInside

if TYPE_CHECKING:
    from tests.tool.conftest import Yard


def test_places_of_the_policy(yard: Yard) -> None:
    written = WrittenInside(yard.policy(None, filesystem__denyWrite=("./kept",)).files, str(yard.outside / "tmp"))
    assert str(yard.project) in written
    assert str(yard.project / "a" / "b") in written
    assert str(yard.project / "kept" / "x") not in written
    assert str(yard.outside) not in written
    assert str(yard.outside / "tmp" / "x") in written
    assert "/usr/bin/env" not in written
    assert 7 not in written


def test_a_protected_name_may_have_been_made_inside(yard: Yard) -> None:
    for name in (".vscode", "n/.vscode", "n/.profile", ".git/hooks"):
        place = yard.project / name / "x"
        place.parent.mkdir(parents=True, exist_ok=True)
        assert str(place) in WrittenInside(yard.policy().files)


def test_links_count_where_they_lie_and_where_they_lead(yard: Yard) -> None:
    (yard.outside / "in").symlink_to(yard.project)
    (yard.project / "out").symlink_to(yard.outside)
    (yard.outside / "loop").symlink_to("loop")
    written = WrittenInside(yard.policy().files)
    assert str(yard.outside / "in" / "x") in written
    assert str(yard.project / "out") in written
    assert str(yard.project / "out" / "x") in written
    assert str(yard.outside / "loop") in written


def test_what_leads_elsewhere_for_whoever_looks_counts(yard: Yard) -> None:
    written = WrittenInside(yard.policy().files)
    for path in ("/proc/self/cwd/x", "/dev/stdin", "/dev/fd/3", "/usr/../proc/1/root", "/proc/self/exe"):
        assert path in written


def test_a_second_name_counts(yard: Yard) -> None:
    file = yard.outside / "file"
    file.touch()
    assert str(file) not in WrittenInside(yard.policy().files)
    os.link(file, yard.outside / "other")
    assert str(file) in WrittenInside(yard.policy().files)


def test_the_repository_of_a_worktree_counts(yard: Yard) -> None:
    main = yard.outside / "main"
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }

    def git(*words: str) -> None:
        subprocess.run(["git", *words], check=True, capture_output=True, env=environment)

    git("init", "-q", str(main))
    git("-C", str(main), "commit", "-q", "--allow-empty", "-m", "x")
    (yard.project / ".git").rmdir()
    yard.project.rmdir()
    git("-C", str(main), "worktree", "add", "-q", str(yard.project))
    assert str(main / ".git" / "run.sh") in WrittenInside(yard.policy().files)
    assert str(main / "run.sh") not in WrittenInside(yard.policy().files)


def test_private_caches_of_any_project_are_written_inside(yard: Yard) -> None:
    caches = yard.home / ".cache" / "stockade-projects"
    written = WrittenInside(yard.policy().files, "", str(caches))
    assert str(caches / "other-1" / "cache" / "bin" / "tool") in written
    assert str(yard.home / ".cache" / "tool") not in written
