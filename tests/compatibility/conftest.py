"""The compatibility run takes minutes, and programs that no other test needs: scripts/test-compatibility starts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from loopback_host import LoopbackHost
from place import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

collect_ignore = [] if os.environ.get("STOCKADE_COMPATIBILITY") and sys.platform == "linux" else ["test_workflows.py"]


def _named(variable: str) -> Path:
    value = os.environ.get(variable)
    assert value, f"{variable} is not set: start this by scripts/test-compatibility"
    return Path(value)


@pytest.fixture(scope="session")
def tools() -> Path:
    return _named("STOCKADE_COMPATIBILITY_TOOLS")


@pytest.fixture
def place(tools: Path) -> Iterator[Place]:
    """A home with a project, and a host on loopback, for one workflow."""
    # A short name: the path of a socket may have 107 bytes, and tools put sockets deep.
    folder = _named("STOCKADE_COMPATIBILITY_PLACE") / os.urandom(3).hex()
    folder.mkdir()
    repositories = folder / "repositories"
    repositories.mkdir()
    with LoopbackHost(tools / "wheels", tools / "packages", repositories) as host:
        made = Place(folder, tools, host)
        yield made
        made.close()
