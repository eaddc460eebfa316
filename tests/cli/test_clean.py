from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stockade.platforms.kept_caches import caches_of
from stockade.platforms.private_cache import PrivateCache

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def _keep(here: Here, project: str = "") -> str:
    held = PrivateCache.hold(project or str(here.project), str(here.home), {})
    Path(held.path, "kept").write_bytes(b"x" * 10_000)
    held.release()
    return held.path


def _left(here: Here) -> set[str]:
    return {cache.path for cache in caches_of(str(here.home), {})}


def test_the_projects_own_cache_is_removed(here: Here) -> None:
    own, other = _keep(here), _keep(here, "/nonexistent/other")
    assert here("clean", "--dry-run").out.startswith("would remove 12.0 KiB of ")
    assert _left(here) == {own, other}
    done = here("clean")
    assert done.status == 0
    assert done.out.startswith("removed 12.0 KiB of ")
    assert _left(here) == {other}
    assert here("clean").out == "there is nothing to remove\n"


def test_stale_ones_and_all(here: Here) -> None:
    own, gone = _keep(here), _keep(here, "/nonexistent/other")
    facts = here("clean", "--stale", "--json").facts
    assert [one["path"] for one in facts["removed"]] == [gone]
    assert facts["removed"][0]["project"] == "/nonexistent/other"
    assert _left(here) == {own}
    here("clean", "--all")
    assert _left(here) == set()
    assert os.listdir(here.home / ".cache") == []


def test_one_in_use_is_refused_and_the_others_go(here: Here) -> None:
    own, other = _keep(here), _keep(here, "/nonexistent/other")
    held = PrivateCache.hold(str(here.project), str(here.home), {})
    done = here("clean", "--all")
    assert done.status != 0
    assert "in use by a running sandbox" in done.err
    assert _left(here) == {own}
    held.release()
    assert other not in _left(here)
