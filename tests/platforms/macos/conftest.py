"""A disk in memory, and profiles for rules on it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import pytest

from stockade.filesystem.planning import make_plan
from stockade.platforms.macos.seatbelt import Own, make_profile
from stockade.policy.files import FileRules, survey
from stockade.policy.model import Sockets
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from stockade.filesystem.terrain import Entries, Interest, Kind

USER: Final = Origin(Layer.USER, "s.json")
POLICY: Final = Origin(Layer.POLICY, "m.json")
HOME: Final = "/Users/ann"
CWD: Final = f"{HOME}/w"


class Forest:
    """Entries by path: ``None`` is a file, ``""`` a directory, any other text the target of a link.

    What is above an entry is a directory.
    """

    def __init__(self, entries: Mapping[str, str | None]) -> None:
        self.kinds: dict[str, str | None] = {"/": ""}
        for path, what in entries.items():
            parts = path.split("/")[1:]
            above = ["/" + "/".join(parts[:depth]) for depth in range(1, len(parts))]
            if any(self.kinds.get(each, "") != "" for each in above) or path in self.kinds:
                continue
            self.kinds |= dict.fromkeys(above, "")
            self.kinds[path] = what
        self.listed: dict[str, list[str]] = {}
        for path in self.kinds:
            if path != "/":
                parent, _, name = path.rpartition("/")
                self.listed.setdefault(parent or "/", []).append(name)

    def link(self, path: str) -> str | None:
        return self.kinds.get(path) or None

    def exists(self, path: str) -> bool:
        return path in self.kinds

    def is_directory(self, path: str) -> bool:
        return self.kinds.get(path) == ""

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(self.listed.get(path, ())))

    def text(self, _path: str) -> str | None:
        return None

    def config(self, _path: str) -> bytes | None:
        return None

    def gitlinks(self, _path: str, _hash_size: int) -> tuple[str, ...]:
        return ()

    def entries(self, path: str, interest: Interest) -> Entries:
        above = path.rstrip("/")
        found = tuple((name, self._kind(f"{above}/{name}")) for name in self.names(path))
        return tuple((name, kind) for name, kind in found if interest.covers(name, directory=kind == "directory"))

    def _kind(self, path: str) -> Kind:
        return "directory" if self.is_directory(path) else "link" if self.link(path) else "other"


class Case:
    """Rules on a disk, written as in settings files; ``policy:`` before a text makes it the administrator's."""

    def __init__(  # noqa: PLR0913 - the four lists, and what goes with them
        self,
        entries: Mapping[str, str | None] | None = None,
        *,
        write: Iterable[str] = (".",),
        deny: Iterable[str] = (),
        hide: Iterable[str] = (),
        show: Iterable[str] = (),
        depth: int = 3,
        git_config: bool = False,
        lifted: Iterable[str] = (),
        spared: Iterable[str] = (),
        sockets: Sockets | None = None,
        ports: tuple[int, ...] = (),
        temporary: str = "",
        private: str = "",
        cache: str = "",
        caches: str = "",
    ) -> None:
        self.disk = Forest({CWD: ""} if entries is None else entries)
        write_allow, write_deny, read_deny, read_allow = (
            tuple(map(_sourced, texts)) for texts in (write, deny, hide, show)
        )
        self.rules = FileRules(
            CWD,
            HOME,
            write_allow,
            write_deny,
            read_deny,
            read_allow,
            depth,
            git_config,
            left_allow=tuple(map(_sourced, spared)),
            lifted=frozenset(lifted),
            staged=False,
        )
        self.plan = make_plan(self.rules, self.disk)
        self.profile = make_profile(
            survey(self.rules, self.disk),
            self.plan,
            self.disk,
            sockets=sockets or Sockets((), False, False, None, None),
            ports=ports,
            own=Own(temporary, private, cache, caches),
        )


def _sourced(text: str) -> Sourced[PathPattern]:
    pattern = PathPattern.parse(text.removeprefix("policy:"), cwd=CWD, home=HOME)
    return Sourced(pattern, POLICY if text.startswith("policy:") else USER)


@pytest.fixture(scope="session")
def case() -> Callable[..., Case]:
    """Return what makes a case."""
    return Case


@pytest.fixture(scope="session")
def forest() -> type[Forest]:
    """Return what makes a disk in memory."""
    return Forest


# Stands for sandbox-exec where there is none: reads the profile as the evaluator does, and becomes the rest.
FAKE: Final = """#!{python}
import os, sys
sys.path += {path!r}
from stockade.platforms.macos.evaluator import Evaluator
assert sys.argv[1] == "-p", sys.argv
Evaluator(sys.argv[2])
with open({record!r}, "a", encoding="utf-8", errors="surrogateescape") as file:
    file.write(sys.argv[2])
os.execvp(sys.argv[3], sys.argv[3:])
"""


@pytest.fixture
def fake_sandbox(tmp_path: Path) -> str:
    """Return a program that stands for sandbox-exec; the profiles that it was given are in ``profiles`` beside it."""
    program = tmp_path / "fake" / "sandbox-exec"
    program.parent.mkdir()
    (program.parent / "profiles").touch()
    text = FAKE.format(python=sys.executable, path=sys.path, record=str(program.parent / "profiles"))
    program.write_text(text, "utf-8")
    program.chmod(0o755)
    return str(program)
