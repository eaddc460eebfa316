"""The kernel of macOS against the evaluator: random trees and rules, every path tried by one program inside.

The trees come from fixed seeds, so that a failure can be run again. What the evaluator says is held against the
verdicts by tests/platforms/macos/test_agreement.py, on any platform; so together the three must agree.
"""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from stockade.filesystem.terrain import Land
from stockade.platforms.macos.evaluator import Evaluator
from stockade.platforms.macos.explanation import profile_of
from stockade.policy.compile import compile_policy
from stockade.policy.path_pattern import PathPattern
from stockade.policy.places import follow
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy

NAMES: Final = ("a", "b", "w", ".git", "hooks", "config", ".bashrc", "x y\n", "[*\\", "node_modules", "caf\u00e9")
FRESH: Final = ("new", ".zshrc", "hooks", "A")
REFUSED: Final = (errno.EPERM, errno.EACCES)
DISK: Final = Land()

# Each attempt is undone at once, so that one does not change the next. Directories are written by what is made in them.
PROBE: Final = r"""
import json, os, sys

def read(path):
    if os.path.isdir(path):
        os.listdir(path)
    else:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))

def write(path):
    if os.path.lexists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(path)

def move(path):
    os.rename(path, path + ".moved")
    os.rename(path + ".moved", path)

def tried(way, path):
    try:
        way(path)
    except OSError as error:
        return error.errno
    return 0

paths = json.load(sys.stdin)
print(json.dumps({path: [tried(way, path) for way in (read, write, move)] for path in paths}))
"""


def _grow(top: Path, chance: random.Random) -> None:
    (top / "w").mkdir()
    for _ in range(14):
        names = [chance.choice(NAMES) for _ in range(chance.randint(1, 4))]
        path = top.joinpath(*(["w"] if chance.random() < 0.6 else []), *names)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = chance.random()
            if kind < 0.4:
                path.mkdir()
            elif kind < 0.85:
                path.touch(exist_ok=False)
            else:
                path.symlink_to(f"{top}/w/{chance.choice(NAMES)}")
        except OSError:
            continue  # something else stands there


def _everything(top: Path) -> list[str]:
    found = [
        os.path.join(directory, name)
        for directory, directories, files in os.walk(top)
        for name in (*directories, *files)
    ]
    return [str(top), *found]


def _policy(top: Path, chance: random.Random) -> SandboxPolicy:
    choices = _everything(top)

    def some(most: int) -> list[str]:
        return [PathPattern.literal(chance.choice(choices)).text for _ in range(chance.randint(0, most))]

    lists = {"allowWrite": some(2), "denyWrite": some(3), "denyRead": [*some(2), "**/*.b*"], "allowRead": some(2)}
    values: dict[str, object] = {f"sandbox.filesystem.{name}": texts for name, texts in lists.items()}
    settings = merge([Document(Layer.USER, "settings.json", values)])
    return compile_policy(settings, cwd=f"{top}/w", home=f"{top}/home")


def _expected(walls: Evaluator, path: str) -> list[bool]:
    """Return whether the evaluator lets the path be read, written or made, and moved."""
    trail = follow(path, DISK)
    place, real = trail.place, os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    kind = "DIRECTORY" if DISK.is_directory(place) else "REGULAR-FILE"
    seen = all(walls.allows_file("file-read-metadata", step.link, "SYMLINK") for step in trail.steps)
    write = "file-write-data" if DISK.exists(place) else "file-write-create"
    return [
        seen and walls.allows_file("file-read-data", place, kind),
        seen and walls.allows_file(write, place, kind),
        walls.allows_rename(real, f"{real}.moved", kind),
    ]


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_agrees_with_the_evaluator(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a tree, not a secret
    top = tmp_path.resolve() / "top"
    top.mkdir()
    _grow(top, chance)
    policy = _policy(top, chance)
    walls = Evaluator(profile_of(policy, DISK).text)
    if not walls.allows_file("file-read-data", f"{top}/w", "DIRECTORY"):
        return  # no command could start there
    known = _everything(top)
    paths = sorted({*known, *(f"{path}/{name}" for path in known if os.path.isdir(path) for name in FRESH)})
    expected = {path: _expected(walls, path) for path in paths}
    with BlockingSandbox(policy) as sandbox:
        ran = sandbox.run([sys.executable, "-I", "-S", "-c", PROBE], stdin=json.dumps(paths).encode(), timeout=60)
    assert ran.exit_code == 0, ran.stderr.decode()
    answers: dict[str, list[int]] = json.loads(ran.stdout)
    wrong = [
        (path, way, os.strerror(answer), may)
        for path in paths
        for way, answer, may in zip(("read", "write", "move"), answers[path], expected[path], strict=True)
        # Where the path itself is no good, the kernel says so first: only a success or a refusal is an answer.
        if (answer == 0 and not may) or (answer in REFUSED and may)
    ]
    assert wrong == []
    assert _everything(top) == known


def test_without_walls_everything_succeeds(tmp_path: Path) -> None:
    """The control: the program inside can do all of it where nothing stops it."""
    (tmp_path / "file").touch()
    (tmp_path / ".bashrc").touch()
    paths = [f"{tmp_path}/file", f"{tmp_path}/.bashrc"]
    words = [sys.executable, "-c", PROBE]
    ran = subprocess.run(words, input=json.dumps(paths), capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == {path: [0, 0, 0] for path in paths}
