"""``stockade.filesystem.cover``: what commands could not change."""

from __future__ import annotations

import pytest

from stockade.filesystem.cover import Cover, Covers
from stockade.filesystem.plan import Mount, Operation, Placeholder, Plan

PLAN = Plan(
    mounts=(
        Mount(Operation.WRITABLE, "/p", "a root"),
        Mount(Operation.PIN, "/p/sub", "it holds something"),
        Mount(Operation.READ_ONLY, "/p/sub/.git/hooks", "protected"),
        Mount(Operation.READ_ONLY, "/p/closed", "denied"),
        Mount(Operation.WRITABLE, "/p/closed/open", "allowed"),
    ),
    placeholders=(Placeholder("/p/.mcp.json", "protected", "/p"),),
)


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/p", "/p"),
        ("/p/x/y", "/p"),
        ("/p/sub/.git/config", "/p"),
        ("/p/sub/.git/hooks/pre-commit", None),
        ("/p/.mcp.json", None),
        ("/p/closed/x", None),
        ("/p/closed/open/x", "/p/closed/open"),
        ("/elsewhere", None),
        ("/", None),
    ],
)
def test_where_a_path_lies(path: str, root: str | None) -> None:
    assert Cover(PLAN).root_of(path) == root


def test_what_one_command_could_change_counts() -> None:
    covers = Covers([Cover(PLAN), Cover(Plan(mounts=(Mount(Operation.WRITABLE, "/p/closed", "a root"),)))])

    assert covers.root_of("/p/closed/x") == "/p/closed"
    assert covers.roots == ("/p", "/p/closed/open", "/p/closed")


def test_a_known_repository_is_covered_by_its_hooks() -> None:
    covers = Covers([Cover(PLAN)])

    assert covers.covers("/p/sub", ".git")
    assert not covers.covers("/p/new", ".git")
    assert covers.covers("/p", ".mcp.json")
