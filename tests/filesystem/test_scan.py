from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.plan import Operation
from stockade.filesystem.scan import Scan, plan_now
from stockade.policy.files import FileRules
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

USER = Origin(Layer.USER, "s.json")


def _rules(top: Path, *, deny: tuple[str, ...] = (), hide: tuple[str, ...] = ()) -> FileRules:
    def sourced(*texts: str) -> tuple[Sourced[PathPattern], ...]:
        return tuple(Sourced(PathPattern.parse(text, cwd=f"{top}/w", home="/h"), USER) for text in texts)

    return FileRules(f"{top}/w", "/h", sourced("."), sourced(*deny), sourced(*hide), (), 3, allow_git_config=False)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    for directory in ("w/repo/.git/hooks", "w/src/deep", "w/linked", "o"):
        (top / directory).mkdir(parents=True)
    (top / "w/repo/.git/config").touch()
    (top / "w/link").symlink_to("linked")
    return top


@pytest.fixture
def scan(top: Path) -> Iterator[Scan]:
    with Scan(_rules(top, deny=("link", "src/denied"), hide=("**/.env",))) as scan:
        yield scan


def _modes(scan: Scan, top: Path) -> dict[str, Operation]:
    return {mount.path.removeprefix(f"{top}/"): mount.operation for mount in scan.plan.mounts}


def _new_repository(top: Path) -> None:
    (top / "w/new/.git/hooks").mkdir(parents=True)
    (top / "w/new/.git/config").touch()


def _relink(top: Path) -> None:
    (top / "w/link").unlink()
    (top / "w/link").symlink_to("repo")


def _swap(top: Path) -> None:
    (top / "w/repo").rename(top / "w/aside")
    (top / "w/repo/.git/hooks").mkdir(parents=True)


@pytest.mark.parametrize(
    ("change", "path", "operation"),
    [
        pytest.param(lambda top: (top / "w/src/.bashrc").touch(), "w/src/.bashrc", Operation.READ_ONLY, id="a-file"),
        pytest.param(_new_repository, "w/new/.git/hooks", Operation.READ_ONLY, id="a-repository"),
        pytest.param(lambda top: (top / "w/.bashrc").touch(), "w/.bashrc", Operation.READ_ONLY, id="at-the-root"),
        pytest.param(
            lambda top: (top / "w/src/denied").mkdir(), "w/src/denied", Operation.READ_ONLY, id="a-denied-place"
        ),
        pytest.param(lambda top: (top / "w/src/deep/.env").touch(), "w/src/deep/.env", Operation.HIDDEN, id="a-match"),
        pytest.param(_relink, "w/repo", Operation.READ_ONLY, id="a-link-elsewhere"),
        pytest.param(_swap, "w/aside/.git/hooks", Operation.READ_ONLY, id="a-repository-moved"),
    ],
)
def test_what_a_command_made_is_in_the_next_plan(
    top: Path, scan: Scan, change: Callable[[Path], object], path: str, operation: Operation
) -> None:
    assert not scan.refresh()
    change(top)
    scan.refresh()
    assert _modes(scan, top)[path] is operation
    assert scan.plan == plan_now(scan._rules)
    assert not scan.refresh()


@pytest.mark.parametrize("number", range(6))
def test_after_anything_the_plan_is_that_of_the_disk(top: Path, number: int) -> None:
    """The same walk through changes, begun at different points, so that every state is the first one once."""
    changes: list[Callable[[], object]] = [
        lambda: _new_repository(top),
        lambda: _swap(top),
        lambda: _relink(top),
        lambda: shutil.rmtree(top / "w/src"),
        lambda: (top / "w/src").symlink_to(top / "o"),
        (top / "o/.env").touch,
    ]
    rules = _rules(top, deny=("link", "src/denied"), hide=("**/.env",))
    for change in changes[:number]:
        change()
    with Scan(rules) as scan:
        for change in changes[number:]:
            change()
            scan.refresh()
            assert scan.plan == plan_now(rules)
            assert not scan.refresh()


def test_other_rules(top: Path, scan: Scan) -> None:
    assert not scan.follow(scan._rules)
    assert scan.follow(_rules(top, deny=("repo",)))
    assert _modes(scan, top)["w/repo"] is Operation.READ_ONLY


def test_a_second_name_of_a_closed_file_is_closed_too(top: Path) -> None:
    os.link(top / "w/repo/.git/config", top / "w/src/deep/config")
    with Scan(_rules(top)) as scan:
        assert _modes(scan, top)["w/src/deep/config"] is Operation.READ_ONLY
        assert _modes(scan, top)["w/src/deep"] is Operation.PIN
