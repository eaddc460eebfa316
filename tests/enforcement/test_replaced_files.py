"""Protected and denied places that the host replaces while a command runs: they are covered again at once.

A rename over a mount point, or its removal, takes the mount away in every namespace but that of the one who did it.
Each test replaces something on the host as real programs do, and waits until the running command is refused again.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.blocking_process import BlockingProcess

PATIENCE = 30.0
SECRET = "what-the-rules-deny"  # noqa: S105 - no password

ASKED = r"""
import errno, json, os, socket, sys
print("ready", flush=True)
given = {}
def near(path):
    # An address has room for a hundred characters.
    os.chdir(os.path.dirname(path))
    return os.path.basename(path)
def do(what, path, base=None):
    if what == "hold":
        given[path] = os.open(path, os.O_PATH)
        return "held"
    if what == "send":
        end = socket.socket(socket.AF_UNIX); end.connect(near(path))
        socket.send_fds(end, [" ".join(given).encode()], list(given.values()))
        return end.recv(1).decode()
    if what == "take":
        server = socket.socket(socket.AF_UNIX); server.bind(near(path)); server.listen(1)
        print(json.dumps("listening"), flush=True)
        end, _ = server.accept()
        names, descriptors, _, _ = socket.recv_fds(end, 4000, 50)
        given.update(zip(names.decode().split(), descriptors))
        end.send(b"x")
        return "taken"
    directory = given[base] if base else None
    if what == "read":
        return os.read(os.open(path, os.O_RDONLY, dir_fd=directory), 100).decode()
    flags = os.O_WRONLY | (os.O_CREAT if what == "make" else 0)
    os.close(os.open(path, flags, 0o644, dir_fd=directory))
    return "opened"
for line in sys.stdin:
    try:
        answer = do(*json.loads(line))
    except OSError as error:
        answer = errno.errorcode[error.errno]
    print(json.dumps(answer), flush=True)
"""


class Asked:
    """A command that does what it is asked, line by line."""

    def __init__(self, process: BlockingProcess) -> None:
        self.process = process
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"

    def ask(self, what: str, path: Path | str, base: Path | str | None = None) -> str:
        """Have it do something; return how that ended."""
        self.say(what, path, base)
        return self.heard()

    def say(self, what: str, path: Path | str, base: Path | str | None = None) -> None:
        assert self.process.stdin is not None
        words = [what, str(path), *([str(base)] if base else [])]
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def heard(self) -> str:
        assert self.process.stdout is not None
        answer: str = json.loads(self.process.stdout.readline())
        return answer


class Scene:
    """A project, and commands that run in it while the host works there, too."""

    def __init__(self, ground: Any) -> None:
        self.project: Path = ground.project
        self.git("init", "-q")
        (self.project / ".mcp.json").write_text("{}")
        (self.project / "secret").write_text(SECRET)
        self._others = set(_children(os.getpid()))
        self.sandbox: BlockingSandbox = ground.sandbox(filesystem__denyRead=(f"{self.project}/secret",))
        self.stack = ExitStack()

    def keepers(self) -> set[int]:
        """Return the helpers of the sandbox that are children of this process, one for each jail."""
        return set(_children(os.getpid())) - self._others

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.project), *words], check=True)

    def command(self) -> Asked:
        words = [sys.executable, "-I", "-S", "-c", ASKED]
        return Asked(self.stack.enter_context(self.sandbox.spawn(words, stdin=subprocess.PIPE)))

    def replace(self, name: str, text: str = "replaced\n") -> None:
        """Save a file as editors do."""
        new = self.project / f"{name}.new"
        new.write_text(text)
        new.replace(self.project / name)


@pytest.fixture
def scene(ground: Any) -> Iterator[Scene]:
    scene = Scene(ground)
    yield scene
    scene.stack.close()


def _refused(answer: Callable[[], str]) -> str:
    """Ask until it is refused."""
    deadline = time.monotonic() + PATIENCE
    while (last := answer()) not in errno.errorcode.values():
        assert time.monotonic() < deadline, last
        time.sleep(0.005)
    return last


def _remote(scene: Scene) -> None:
    scene.git("remote", "add", "origin", "../elsewhere")


def _atomic_save(scene: Scene) -> None:
    scene.replace(".mcp.json")


def _new_hooks(scene: Scene) -> None:
    shutil.rmtree(scene.project / ".git/hooks")
    (scene.project / ".git/hooks").mkdir()


def _new_repository(scene: Scene) -> None:
    shutil.rmtree(scene.project / ".git")
    scene.git("init", "-q")


REPLACED = [
    pytest.param(_remote, "open", ".git/config", "EROFS", id="git remote add"),
    pytest.param(_atomic_save, "open", ".mcp.json", "EROFS", id="an editor's save"),
    pytest.param(_new_hooks, "make", ".git/hooks/pre-commit", "EROFS", id="a new directory of hooks"),
    pytest.param(_new_repository, "open", ".git/config", "EROFS", id="a new repository, its config"),
    pytest.param(_new_repository, "make", ".git/hooks/pre-commit", "EROFS", id="a new repository, its hooks"),
    pytest.param(lambda scene: scene.replace("secret", SECRET), "read", "secret", "EACCES", id="a denied file"),
]


@pytest.mark.parametrize(("act", "what", "name", "expected"), REPLACED)
def test_what_the_host_replaces_is_covered_again(scene: Scene, act: Any, what: str, name: str, expected: str) -> None:
    first, second = scene.command(), scene.command()
    place = scene.project / name
    for command in (first, second):
        assert command.ask(what, place) == expected
    for _ in range(3):
        if act is _remote:
            subprocess.run(
                ["git", "-C", str(scene.project), "remote", "rm", "origin"], check=False, capture_output=True
            )
        act(scene)
        for command in (first, second):
            assert _refused(lambda command=command: command.ask(what, place)) == expected  # type: ignore[misc]


def test_a_cover_that_was_laid_again_holds_when_its_command_is_gone(scene: Scene) -> None:
    """The receiver keeps a descriptor of the sender's mounts; the new cover is not locked there, and stays."""
    sender, receiver = scene.command(), scene.command()
    config = scene.project / ".git/config"
    scene.git("remote", "add", "origin", "../elsewhere")
    _refused(lambda: sender.ask("open", config))
    _pass_on(scene, sender, receiver)
    sender.process.kill()
    sender.process.wait(timeout=PATIENCE)
    assert scene.sandbox.run("true").exit_code == 0
    assert receiver.ask("open", ".git/config", base=scene.project) == "EROFS"


def test_a_cover_that_was_laid_again_holds_when_its_jail_is_replaced(scene: Scene) -> None:
    """The host's change gives the next command another jail, and the receiver lives there."""
    sender = scene.command()
    config = scene.project / ".git/config"
    scene.git("remote", "add", "origin", "../elsewhere")
    _refused(lambda: sender.ask("open", config))
    receiver = scene.command()
    _pass_on(scene, sender, receiver)
    sender.process.kill()
    sender.process.wait(timeout=PATIENCE)
    assert scene.sandbox.run("true").exit_code == 0
    assert receiver.ask("open", ".git/config", base=scene.project) == "EROFS"


def test_when_the_jail_of_such_a_cover_is_lost_every_command_ends(scene: Scene) -> None:
    sender = scene.command()
    (keeper,) = scene.keepers()
    scene.git("remote", "add", "origin", "../elsewhere")
    _refused(lambda: sender.ask("open", scene.project / ".git/config"))
    receiver = scene.command()
    _pass_on(scene, sender, receiver)
    os.kill(keeper, signal.SIGKILL)
    with pytest.raises(UnavailableError, match="helpers were killed"):
        sender.process.wait(timeout=PATIENCE)
    with pytest.raises(UnavailableError, match="helpers were killed"):
        receiver.process.wait(timeout=PATIENCE)
    assert scene.sandbox.run("true").exit_code == 0


def test_what_takes_the_place_of_a_placeholder_becomes_read_only(scene: Scene) -> None:
    """The host removes what keeps a name missing; a command that makes it cannot change it any more."""
    command = scene.command()
    place = scene.project / ".vscode"
    assert command.ask("make", place / "tasks.json") == "EACCES"
    place.rmdir()
    place.mkdir()
    assert _refused(lambda: command.ask("make", place / "tasks.json")) == "EROFS"


def _pass_on(scene: Scene, sender: Asked, receiver: Asked) -> None:
    meeting = scene.project / "meeting"
    assert sender.ask("hold", scene.project) == "held"
    receiver.say("take", meeting)
    assert receiver.heard() == "listening"
    assert sender.ask("send", meeting) == "x"
    assert receiver.heard() == "taken"


def _children(pid: int) -> list[int]:
    return [
        int(child)
        for thread in os.listdir(f"/proc/{pid}/task")
        for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
    ]
