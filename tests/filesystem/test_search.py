from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.filesystem.search import find_protected
from stockade.filesystem.terrain import Land
from stockade.policy.places import Disk
from stockade.policy.protected import Search, find

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from stockade.filesystem.terrain import Terrain

names = st.sampled_from(["a", "b", ".git", ".GIT", "hooks", "config", "modules", "worktrees", ".bashrc", ".Vscode"])
others = st.sampled_from(["node_modules", ".claude", "agents", "commondir", "w"])
paths = st.lists(names | others, min_size=1, max_size=6).map(lambda some: "/" + "/".join(some))
entries = st.dictionaries(paths, st.none() | paths, min_size=1, max_size=15)
homes = st.lists(st.sampled_from(["/", "/a", "/w", "/a/b"]), max_size=2).map(tuple)
searches = st.builds(Search, st.integers(0, 4), homes=homes, bare=st.booleans())


@given(entries, searches, st.sampled_from(["/", "/a", "/a/.git", "/.git", "/w", "/a/.bashrc"]))
@settings(max_examples=300, deadline=None)
def test_the_answers_are_those_of_the_meaning(
    tree: Callable[[Mapping[str, str | None]], Terrain], entries: dict[str, str | None], search: Search, root: str
) -> None:
    disk = tree(entries)
    assert set(find_protected(root, search, disk)) == set(find(root, search, disk))


def test_on_a_real_disk(tmp_path: Path) -> None:
    top = tmp_path.resolve()
    for path in (".git/hooks", "a/.git/modules/m/hooks", "a/b/.vscode", "node_modules/.vscode", "odd \n*/.idea"):
        (top / path).mkdir(parents=True)
    (top / "a" / ".bashrc").symlink_to("rc")
    found = set(find_protected(str(top), Search(3), Land()))
    assert found == set(find(str(top), Search(3), Disk()))
    assert {f"{top}/a/rc", f"{top}/odd \n*/.idea"} <= {each.place for each in found}
