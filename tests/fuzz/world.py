"""The small world in which lines of the fuzzer run: programs that only take notes, hostile files and variables.

Nothing here can harm the host. ``PATH`` holds stand-ins alone; the shells run as a user id that owns nothing else where
root starts them, with limits, in a session of their own that is killed at the end; and lines name no absolute path
(``$EVIL`` is the one way out of the working directory, and leads into this world).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vocabulary import FILES, NAMES, VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

# An id that no account has. Its processes are ours alone, should a line ever signal all that it may.
STRANGER = 64_217
SOURCE = Path(__file__).with_name("stand_in.c")
PROBE, MARK = "fuzz-probe", "mark"
#: What the probe says of a line that has left its directory.
MOVED = "the directory is another"


class Deed(NamedTuple):
    """A program that was started: for which line, from which file, with which words and environment."""

    line: str
    exe: str
    words: tuple[str, ...]
    environment: Mapping[str, str]


class World:
    """A tree below one temporary directory; ``close`` removes it."""

    def __init__(self) -> None:
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="stockade-fuzz."))
        self.user = _stranger(self.root)
        self.log = f"{self.root}/log"
        self.trace, self.script = f"{self.root}/trace", f"{self.root}/script"
        self.programs, self.evil = f"{self.root}/programs", f"{self.root}/evil"
        # So deep that no line climbs out of this world.
        self.top = f"{self.root}/a/a/a/a/a/a"
        self.here = f"{self.top}/here"
        self.feed = f"{self.root}/feed"
        self._make_programs()
        Path(self.feed).write_text(f"{self.evil}\n" * 4)
        self.environment = {
            "PATH": self.programs,
            "HOME": f"{self.root}/home",
            "ZDOTDIR": f"{self.root}/home",
            "LC_ALL": "C.UTF-8",
            "EVIL": self.evil,
            **VARIABLES,
        }
        self.reset()

    def _make_programs(self) -> None:
        built = f"{self.root}/stand-in"
        words = ["-O1", f'-DLOG="{self.log}"', "-o", built, str(SOURCE)]
        # A static program starts in half the time; not every system can link one.
        if subprocess.run(["gcc", "-static", *words], capture_output=True, check=False).returncode:
            subprocess.run(["gcc", *words], capture_output=True, check=True)
        for place in (self.programs, self.evil):
            os.mkdir(place)
            for name in (*NAMES, MARK, PROBE):
                os.link(built, f"{place}/{name}")
        # A stranger starts it, and no line changes it: all its names are one file (`ls > =mark` in zsh would empty it).
        os.chmod(built, 0o555)  # noqa: S103 -- as it says

    def reset(self) -> None:
        """Lay out what lines may change, as it was."""
        for place in (f"{self.root}/a", f"{self.root}/home"):
            shutil.rmtree(place, ignore_errors=True)
        os.mkdir(f"{self.root}/home")
        os.makedirs(self.here)
        for name, content in FILES.items():
            path = Path(self.here, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        for name in ("d/mark", "d/ls", "d/tool", "d/d/tool", "ls", "docker"):
            os.link(f"{self.root}/stand-in", f"{self.here}/{name}")
        self.forget()
        Path(self.script).write_bytes(b"")
        for place, directories, files in os.walk(self.root):
            self._give(place)
            for name in (*directories, *files):
                self._give(f"{place}/{name}")
        self._laid_out = self._snapshot()

    def _give(self, path: str) -> None:
        if self.user is not None and not os.path.samestat(os.lstat(path), os.stat(f"{self.root}/stand-in")):
            os.chown(path, self.user, self.user, follow_symlinks=False)

    def forget(self) -> None:
        """Empty the notes."""
        for path in (self.log, self.trace):
            Path(path).write_bytes(b"")

    def changes(self) -> list[str]:
        """Return what was made, removed or written since all was laid out; notes and directories' times aside."""
        changed = {path for path, _ in self._laid_out.items() ^ self._snapshot().items()}
        return sorted(os.path.relpath(path, self.here) for path in changed)

    def _snapshot(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for place, directories, files in os.walk(self.root):
            for name in directories:
                status = os.lstat(f"{place}/{name}")
                found[f"{place}/{name}"] = (status.st_ino, status.st_mode)
            for name in files:
                path = f"{place}/{name}"
                if path not in (self.log, self.trace, self.script):
                    status = os.lstat(path)
                    found[path] = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
        return found

    def deeds(self) -> list[Deed]:
        """Return what the stand-ins have noted."""
        fields = Path(self.log).read_bytes().decode("utf-8", "surrogateescape").split("\0")
        deeds: list[Deed] = []
        at = 0
        while at + 2 < len(fields):
            line, exe, count = fields[at], fields[at + 1], int(fields[at + 2])
            at += 3 + count
            words, size = tuple(fields[at - count : at]), int(fields[at])
            at += 1 + size
            environment = dict(item.partition("=")[::2] for item in fields[at - size : at])
            deeds.append(Deed(line, exe, words, environment))
        return deeds

    def close(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.root, ignore_errors=True)


def _stranger(root: str) -> int | None:
    """Give the tree to a user id of its own, if this process may; return the id."""
    if os.geteuid():
        return None
    try:
        os.chown(root, STRANGER, STRANGER)
        subprocess.run(["true"], user=STRANGER, group=STRANGER, extra_groups=[], cwd=root, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return STRANGER
