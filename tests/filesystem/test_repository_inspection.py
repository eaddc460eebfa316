"""``stockade.filesystem.repository_inspection``: one look at repositories on a real disk."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem import repository_inspection
from stockade.filesystem.cover import Cover, Covers
from stockade.filesystem.finding import Memo
from stockade.filesystem.plan import Mount, Operation, Plan
from stockade.filesystem.repository_inspection import RepositoryInspection

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    subprocess.run(["git", "init", "-q", str(made / "sub")], check=True)
    return made


def looked(root: Path, *closed: str, memo: Memo | None = None, spared: str = "nothing", since: int = 0) -> list[str]:
    mounts = [Mount(Operation.WRITABLE, str(root), "a root")]
    mounts += [Mount(Operation.READ_ONLY, f"{root}/{name}", "protected") for name in closed]
    covers = Covers([Cover(Plan(mounts=tuple(mounts)))])
    look = RepositoryInspection(covers, memo or Memo(), configs=False, spared=lambda path: spared in path, since=since)
    look.look_at([f"{root}/sub"])
    return [finding.path.removeprefix(f"{root}/") for finding in look.findings]


def test_a_new_repository_is_left(root: Path) -> None:
    assert looked(root) == []


def test_what_was_harmless_is_not_read_again_until_it_changes(root: Path) -> None:
    memo = Memo()
    assert looked(root, memo=memo) == []
    assert f"{root}/sub/.git/config" in memo.harmless
    (root / "sub/.git/config").write_text("[alias]\nx = y\n")

    assert looked(root, memo=memo) == ["sub/.git/config"]


def test_what_was_covered_or_is_spared_is_left(root: Path) -> None:
    (root / "sub/.git/config").write_text("[alias]\nx = y\n")

    assert looked(root, "sub/.git/config") == []
    assert looked(root, spared="/sub/") == []


def test_hooks_beyond_number_go_with_their_directory(root: Path) -> None:
    for number in range(50):
        (root / f"sub/.git/hooks/x{number}").touch()

    assert looked(root) == ["sub/.git/hooks"]


def test_repositories_that_lead_to_each_other_are_looked_at_once(root: Path) -> None:
    (root / "sub/.git/config").write_text(f'[remote "a"]\nurl = {root}/sub\n[remote "b"]\nurl = {root}/\n')

    assert looked(root) == []


def test_an_index_that_no_git_writes_is_set_aside(root: Path) -> None:
    (root / "sub/.git/index").write_bytes(b"DIRC" + bytes(40))

    assert looked(root) == ["sub/.git/index"]


def test_names_that_are_not_there_use_up_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_inspection, "_MOST", 3)
    link(root / "sub", *(f"missing{number}" for number in range(10)), "sub2")
    subprocess.run(["git", "init", "-q", str(root / "sub/sub2")], check=True)
    (root / "sub/sub2/.git/config").write_text("[alias]\nx = y\n")

    assert looked(root) == ["sub/sub2/.git/config"]


def test_repositories_beyond_number_are_none_any_more(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_inspection, "_MOST", 3)
    names = [f"sub{number}" for number in range(5)]
    link(root / "sub", *names)
    for name in names:
        subprocess.run(["git", "init", "-q", str(root / "sub" / name)], check=True)

    assert looked(root, since=time.time_ns() + 10**9) == []  # they are older than the commands
    set_aside = looked(root)
    assert len(set_aside) == 3
    assert set(set_aside) < {f"sub/{name}/.git/HEAD" for name in names}
    assert looked(root) == []


def test_an_index_with_too_many_links_in_all_is_set_aside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository_inspection, "_MOST_LINKS_OF_ALL", 5)
    link(root / "sub", *(f"sub{number}" for number in range(5)))
    assert looked(root) == []
    link(root / "sub", "one-more")

    assert looked(root) == ["sub/.git/index"]


def test_stores_of_submodules_beyond_number_go_with_their_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository_inspection, "_MOST_MODULES", 5)
    modules = root / "sub/.git/modules"
    for number in range(5):
        (modules / f"x{number}").mkdir(parents=True)
    assert looked(root) == []
    (modules / "one-more").mkdir()
    assert looked(root) == ["sub/.git/modules"]
    for number in range(6):
        (modules / f"deep/x{number}").mkdir(parents=True)

    assert looked(root) == ["sub/.git/modules/deep"]


def test_a_repository_below_the_store_of_a_submodule_is_looked_at(root: Path) -> None:
    """What stays open after a look fails every test here: see ``conftest``."""
    module = root / "sub/.git/modules/lib"
    subprocess.run(["git", "init", "-q", "--bare", str(module)], check=True)
    (module / "logs").mkdir()
    assert looked(root) == []
    subprocess.run(["git", "init", "-q", "--bare", str(module / "below")], check=True)
    (module / "below/config").write_text("[alias]\nx = y\n")

    assert looked(root) == ["sub/.git/modules/lib/below/config"]


def link(repository: Path, *names: str) -> None:
    entries = "".join(f"160000 {'1' * 40}\t{name}\n" for name in names)
    subprocess.run(["git", "update-index", "--index-info"], input=entries, text=True, cwd=repository, check=True)
