"""Disks in memory for the tests of plans."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stockade.filesystem.terrain import Entries, Interest, Terrain


class Tree:
    """A disk in memory: ``None`` is a file, a text the target of a link; what is above an entry is a directory.

    A path that ends in a slash is an empty directory. Every config has the same content, and every index two gitlinks.
    """

    def __init__(self, entries: Mapping[str, str | None], *, config: bytes | None = None) -> None:
        self.content = config
        self.directories = {"/"}
        for path in entries:
            parts = path.split("/")[1:-1]
            self.directories |= {"/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))}
        solid = {path: target for path, target in entries.items() if path not in self.directories and path[-1] != "/"}
        self.links = {path: target for path, target in solid.items() if target is not None}
        self.files = {path for path, target in solid.items() if target is None}
        self.children: dict[str, set[str]] = {path: set() for path in self.directories}
        for path in (*self.directories, *solid):
            if path != "/":
                parent, _, name = path.rpartition("/")
                self.children[parent or "/"].add(name)

    def __repr__(self) -> str:
        return f"Tree({self.directories}, {self.files}, {self.links})"

    def link(self, path: str) -> str | None:
        return self.links.get(path)

    def exists(self, path: str) -> bool:
        return path in self.directories or path in self.files or path in self.links

    def is_directory(self, path: str) -> bool:
        return path in self.directories

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(self.children.get(path, ())))

    def text(self, _path: str) -> str | None:
        return None

    def config(self, path: str) -> bytes | None:
        return self.content if path in self.files and path.endswith("/config") else None

    def gitlinks(self, path: str, _hash_size: int) -> tuple[str, ...]:
        return ("a", "b/w") if path in self.files and self.content is not None else ()

    def entries(self, path: str, interest: Interest) -> Entries:
        above = path.rstrip("/")
        kinds: Entries = tuple(
            (
                name,
                "directory"
                if self.is_directory(f"{above}/{name}")
                else "link"
                if self.link(f"{above}/{name}")
                else "other",
            )
            for name in self.names(path)
        )
        return tuple((name, kind) for name, kind in kinds if interest.covers(name, directory=kind == "directory"))


@pytest.fixture(scope="session")
def tree() -> Callable[..., Terrain]:
    """Return what makes a disk in memory."""
    return Tree


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    """Fail a test after which this process has more descriptors open than before: a session looks for days."""
    before = set(os.listdir("/dev/fd"))
    yield
    assert set(os.listdir("/dev/fd")) <= before
