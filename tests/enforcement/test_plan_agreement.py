"""The real walls against the verdicts: random trees and rules, every path tried in every way by one program inside.

The trees come from fixed seeds, so that a failure can be run again. What the pure property test already
compares with a model of the kernel (tests/filesystem/test_planning.py) is compared here with the kernel itself.
"""

from __future__ import annotations

import errno
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from stockade.filesystem.inspection import Inspection
from stockade.filesystem.scan import plan_now
from stockade.policy.compile import compile_policy
from stockade.policy.files import Access, survey
from stockade.policy.path_pattern import PathPattern, is_at_or_below
from stockade.policy.places import Disk, follow
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from stockade.policy.files import FileVerdict, Ground
    from stockade.policy.model import SandboxPolicy

NAMES: Final = ("a", "b", "w", ".git", "hooks", "config", ".bashrc", "x y\n", "[*\\", "node_modules", ".claude", ".ssh")
MISSING: Final = ("new", ".zshrc", "hooks", "a", ".config")
#: The home may be in the tree, and open.
HOMES: Final = ("home", "a", "b", "w/a")
LIFTED: Final = 0.2
#: Every config of git names hooks, a further config and a program.
CONFIG: Final = '[core]\nhooksPath = a/hooks\n[include]\npath = ../../b\n[diff "d"]\ncommand = ./w/new\n'
#: What the kernel answers where the path itself is no good, walls or not.
NO_WALL: Final = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY, errno.EINVAL}
DISK: Final = Disk()

# Each attempt is undone at once, so that one does not change the next.
PROBE: Final = r"""
import json, os, stat, sys

def read(path):
    if stat.S_ISDIR(os.stat(path).st_mode):
        os.listdir(path)
    else:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))

def write(path):
    if os.path.isdir(path):
        made = os.path.join(path, "probe")
        os.mkdir(made)
        os.rmdir(made)
    elif os.path.lexists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.unlink(path)

def move(path):
    # By its place: the way to a link's target may lead through what is moved.
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
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
    """Make a random tree, half of it below the working directory ``w``."""
    (top / "w").mkdir()
    for _ in range(14):
        names = [chance.choice(NAMES) for _ in range(chance.randint(1, 4))]
        path = top.joinpath(*(["w"] if chance.random() < 0.6 else []), *names)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = chance.random()
            if kind < 0.3:
                path.mkdir()
            elif kind < 0.7:
                path.touch(exist_ok=False)
                path.write_text(CONFIG if path.name == "config" else "")
            else:
                other = "/".join(chance.choice(NAMES) for _ in range(chance.randint(1, 3)))
                path.symlink_to(chance.choice([other, f"../{other}", f"{top}/{other}", f"{top}/w/{other}"]))
        except OSError:
            continue  # something else stands there, or the way leads through a file or a circle


def _everything(top: Path) -> list[str]:
    found = []
    for directory, directories, files in os.walk(top):
        found += [os.path.join(directory, name) for name in (*directories, *files)]
    return [str(top), *found]


def _policy(top: Path, chance: random.Random) -> SandboxPolicy:
    known = _everything(top)
    choices = [*known, *known, *(f"{path}/{chance.choice(MISSING)}" for path in known)]

    def some(most: int) -> tuple[str, ...]:
        return tuple(PathPattern.literal(chance.choice(choices)).text for _ in range(chance.randint(0, most)))

    lists = {"allowWrite": some(2), "denyWrite": some(3), "denyRead": some(2), "allowRead": some(2)}
    values = {f"sandbox.filesystem.{name}": list(texts) for name, texts in lists.items()}
    names = (".bashrc", ".claude/commands", ".git/config", ".git/hooks", ".ssh")
    lifted = [*some(1), *(name for name in names if chance.random() < LIFTED)]
    values["sandbox.filesystem.allowProtected"] = lifted if chance.random() < 0.5 else []
    settings = merge([Document(Layer.USER, "settings.json", values)])
    return compile_policy(settings, cwd=f"{top}/w", home=f"{top}/{chance.choice(HOMES)}")


def _is_last_link(path: str) -> bool:
    return any(step.last for step in follow(path, DISK).steps)


class Case:
    """One tree with its rules, before anything ran in it."""

    def __init__(self, top: Path, policy: SandboxPolicy) -> None:
        self.top = top
        self.known = _everything(top)
        self.policy = policy
        self.ground: Ground = survey(policy.files, DISK)
        self.plan = plan_now(policy.files)

    def verdict(self, access: Access, path: str) -> FileVerdict:
        return self.ground.judge(access, path, DISK)

    def paths(self) -> list[str]:
        fresh = [f"{path}/{name}" for path in self.known if os.path.isdir(path) for name in MISSING]
        return sorted({*self.known, *fresh})

    def read(self, path: str, answer: int) -> str | None:
        verdict = self.verdict(Access.READ, path)
        if not answer and not verdict.allowed:
            return f"could be read: {verdict}"
        strict = answer in NO_WALL or not os.path.lexists(verdict.place)  # where nothing is, nothing can be read
        return f"errno {answer}: {verdict}" if verdict.allowed and answer and not strict else None

    def write(self, path: str, answer: int) -> str | None:
        # A directory is written by making something in it, and a link stands for what it leads to.
        place = follow(path, DISK).place
        asked = f"{place}/probe" if os.path.isdir(place) else place
        verdict = self.verdict(Access.WRITE, asked)
        if not answer and not verdict.allowed:
            return f"could be written: {verdict}"
        kept = any(
            is_at_or_below(place, each.path) and "is protected" in each.reason for each in self.plan.placeholders
        )
        hidden = not (
            self.verdict(Access.READ, path).allowed and self.verdict(Access.READ, os.path.dirname(place)).allowed
        )
        strict = kept or hidden or answer in NO_WALL or not os.path.lexists(self.ground.root_of(asked) or "")
        return f"errno {answer}: {verdict}" if verdict.allowed and answer and not strict else None

    def move(self, path: str, answer: int) -> str | None:
        if answer or path == str(self.top):
            return None
        name = os.path.join(follow(os.path.dirname(path), DISK).place, os.path.basename(path))
        moved = [
            each for each in self.known if is_at_or_below(each, name) and not (each == name and _is_last_link(each))
        ]
        for each in moved:
            verdict = self.verdict(Access.WRITE, each)
            if not verdict.allowed and not _is_last_link(each):
                return f"was moved by {path!r}: {verdict}"
        return None


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_agrees_with_the_verdicts(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _compare(tmp_path.resolve() / "top", seed, monkeypatch)


@pytest.mark.parametrize("seed", range(40, 60))
def test_it_does_so_in_a_private_place(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        _compare(Path(folder).resolve() / "top", seed, monkeypatch)


def _compare(top: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The program inside moves everything and back, and what moved is inspected. This is about the walls alone.
    monkeypatch.setattr(Inspection, "look", lambda *_: [])
    chance = random.Random(seed)  # noqa: S311 - a tree, not a secret
    top.mkdir()
    _grow(top, chance)
    case = Case(top, _policy(top, chance))
    if case.plan.refusals or not case.verdict(Access.READ, f"{top}/w").allowed:
        return  # no command could start there
    paths = case.paths()
    with BlockingSandbox(case.policy, environment={"PATH": "/usr/bin:/bin"}) as sandbox:
        python = os.path.realpath(sys.executable)
        done = sandbox.run([python, "-I", "-S", "-c", PROBE], stdin=json.dumps(paths).encode(), timeout=60)
    assert done.exit_code == 0, done.stderr.decode()
    answers: dict[str, list[int]] = json.loads(done.stdout)
    wrong = [
        f"{path!r} {problem}"
        for path, (read, write, move) in answers.items()
        for problem in (case.read(path, read), case.write(path, write), case.move(path, move))
        if problem
    ]
    assert wrong == [], str(case.plan)
    assert _everything(top) == case.known


def test_without_walls_everything_succeeds(tmp_path: Path) -> None:
    """The control: the program inside can do all of it where nothing stops it."""
    import subprocess

    paths = [f"{tmp_path}/{name}" for name in ("file", "directory", ".bashrc")]
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / ".bashrc").touch()
    ran = subprocess.run(
        [sys.executable, "-c", PROBE], input=json.dumps(paths), capture_output=True, text=True, check=True
    )
    assert json.loads(ran.stdout) == {path: [0, 0, 0] for path in paths}
