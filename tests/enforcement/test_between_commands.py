"""What passes between the commands of a session while the host changes files: attacks that got through once.

Each test is the smallest form of a hole that was seen.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import StockadeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.sandbox.blocking import BlockingSandbox

PATIENCE = 30.0
REFUSED = {"EACCES", "EROFS", "ENOENT", "ENOTDIR", "EPERM", "ENXIO", "EBUSY", "EISDIR"}

AGENT = r"""
import ctypes, errno, json, os, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
given = {}

def read(path, base=None):
    return os.read(os.open(path, os.O_RDONLY, dir_fd=given.get(base)), 100).decode()

def write(path, base=None, text=b"planted", flags=os.O_WRONLY):
    file = os.open(path, flags, 0o755, dir_fd=given.get(base))
    os.write(file, text)
    os.close(file)
    return "written"

def make(path, base=None, text=b"planted"):
    return write(path, base, text, os.O_WRONLY | os.O_CREAT)

def near(path):
    # An address has room for a hundred characters.
    os.chdir(os.path.dirname(path))
    return os.path.basename(path)

def send(path, name):
    end = socket.socket(socket.AF_UNIX); end.connect(near(path))
    socket.send_fds(end, [b"x"], [given[name]])
    return end.recv(1).decode()

def listen(path):
    given["server"] = socket.socket(socket.AF_UNIX); given["server"].bind(near(path)); given["server"].listen(1)

def take(name):
    end, _ = given["server"].accept()
    _, (given[name],), _, _ = socket.recv_fds(end, 10, 1)
    end.send(b"x")

def until(act, seconds=20):
    # Try again and again, in a thread of its own.
    def work():
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                act()
            except OSError:
                continue
            return
    threading.Thread(target=work, daemon=True).start()

print("ready", flush=True)
for line in sys.stdin:
    line, said = json.loads(line), None
    try:
        try:
            said = eval(line)
        except SyntaxError:
            exec(line)
    except OSError as error:
        said = errno.errorcode[error.errno]
    print(json.dumps(said), flush=True)
"""
WORDS = [sys.executable, "-I", "-S", "-c", AGENT]


class Agent:
    """A command that does what it is told, one line of Python at a time."""

    def __init__(self, process: Any) -> None:
        self.process = process
        assert process.stdout.readline() == b"ready\n"

    def __call__(self, line: str) -> Any:
        self.say(line)
        return self.heard()

    def say(self, line: str) -> None:
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def heard(self) -> Any:
        line = self.process.stdout.readline()
        return json.loads(line) if line else "EOF"

    def refused(self, line: str) -> str:
        """Do something until it is refused, or the command is ended; return how."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                answer = self(line)
            except BrokenPipeError:
                return "EOF"
            if answer in REFUSED or answer == "EOF":
                return str(answer)
            time.sleep(0.005)
        pytest.fail(f"{line} is not refused: {answer}")

    def end(self) -> None:
        self.process.kill()
        self.process.wait(timeout=PATIENCE)


class Scene:
    """A project with a repository and secrets, and commands in it."""

    def __init__(self, ground: Any) -> None:
        self.ground = ground
        self.project: Path = ground.project
        self.git("init", "-q")
        (self.project / "secret").write_text("old")
        self.settings: dict[str, Any] = {"filesystem__denyRead": (f"{self.project}/secret",)}
        self.stack = ExitStack()
        self._others = set(_children())
        self._sandbox: BlockingSandbox | None = None

    def keepers(self) -> set[int]:
        """Return the helpers of the sandbox that are children of this process."""
        return set(_children()) - self._others

    @property
    def sandbox(self) -> BlockingSandbox:
        if self._sandbox is None:
            self._sandbox = self.ground.sandbox(**self.settings)
        return self._sandbox

    def command(self, sandbox: BlockingSandbox | None = None) -> Agent:
        process = (sandbox or self.sandbox).spawn(WORDS, stdin=subprocess.PIPE)
        return Agent(self.stack.enter_context(process))

    def visitor(self) -> Agent:
        words = self.sandbox.wrap(WORDS).argv
        process = self.stack.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        self.stack.callback(process.kill)
        return Agent(process)

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.project), *words], check=True, capture_output=True)

    def replace(self, path: Path, text: str = "new") -> None:
        """Save as editors do; the new file is made where no command can write."""
        new = self.ground.root / "new"
        new.write_text(text)
        new.replace(path)

    def pass_project(self, sender: Agent, receiver: Agent) -> None:
        """Have the receiver get the sender's project directory, by the name ``there``."""
        meeting = f"{self.project}/meeting"
        sender(f"given.update(there=os.open({str(self.project)!r}, os.O_PATH))")
        receiver(f"listen({meeting!r})")
        receiver.say("take('there')")
        assert sender(f"send({meeting!r}, 'there')") == "x"
        receiver.heard()


def _children() -> list[int]:
    threads = Path("/proc/self/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


@pytest.fixture
def scene(ground: Any) -> Iterator[Scene]:
    scene = Scene(ground)
    yield scene
    scene.stack.close()


# 1. The tree of a dead command gets no new covers.


@pytest.mark.parametrize("kind", ["command", "visitor"])
def test_what_the_host_replaces_stays_closed_in_the_tree_of_a_dead_command(scene: Scene, kind: str) -> None:
    """The sender is dead when the host saves: its mounts take part in no propagation any more."""
    assert scene.sandbox.run("true").exit_code == 0
    receiver = scene.command() if kind == "command" else scene.visitor()
    sender = scene.command()
    scene.pass_project(sender, receiver)
    sender.end()
    assert scene.sandbox.run("true").exit_code == 0
    assert receiver("write('.git/config', 'there')") == "EROFS"
    assert receiver("read('secret', 'there')") == "EACCES"
    scene.git("remote", "add", "origin", "../elsewhere")
    scene.replace(scene.project / "secret", "new secret")
    assert receiver.refused(f"write('{scene.project}/.git/config')") == "EROFS"
    assert receiver.refused("write('.git/config', 'there')") == "EROFS"
    assert receiver.refused("read('secret', 'there')") == "EACCES"


def test_a_placeholder_that_gives_way_stays_closed_in_the_tree_of_a_dead_command(scene: Scene) -> None:
    receiver, sender = scene.command(), scene.command()
    scene.pass_project(sender, receiver)
    sender.end()
    assert scene.sandbox.run("true").exit_code == 0
    place = scene.project / ".vscode"
    place.rmdir()
    place.mkdir()
    assert receiver.refused(f"make('{place}/tasks.json')") == "EROFS"
    assert receiver.refused("make('.vscode/tasks.json', 'there')") == "EROFS"


# 2. A descriptor of an older jail carries the older plan into a newer command: what it leaves is inspected.


def test_what_is_written_by_a_descriptor_of_an_older_plan_is_inspected(scene: Scene) -> None:
    sender = scene.command()
    assert scene.sandbox.run("mkdir -p sub/.git/hooks && touch sub/.git/config").exit_code == 0
    receiver = scene.command()
    scene.pass_project(sender, receiver)
    sender.end()
    assert receiver("write('sub/.git/config')") == "EROFS"
    assert receiver("make('sub/.git/hooks/pre-commit', 'there')") == "written"
    receiver.end()
    assert not (scene.project / "sub/.git/hooks/pre-commit").exists()


# 3. Directories above a cover are not watched, unless they are pinned themselves.


def test_a_denied_file_whose_directory_the_host_replaces_is_covered_again(scene: Scene) -> None:
    folder = scene.ground.outside / "credentials"
    folder.mkdir()
    (folder / "key").write_text("old")
    scene.settings = {"filesystem__denyRead": (f"{folder}/key",)}
    command = scene.command()
    time.sleep(0.1)
    assert command(f"read('{folder}/key')") == "EACCES"
    folder.rename(scene.ground.outside / "backup")
    folder.mkdir()
    (folder / "key").write_text("new")
    assert command.refused(f"read('{folder}/key')") == "EACCES"


def test_what_the_host_replaces_while_the_project_has_another_name_is_covered_again(scene: Scene) -> None:
    command = scene.command()
    time.sleep(0.1)
    moved = scene.ground.root / "moved"
    scene.project.rename(moved)
    scene.replace(moved / ".git" / "config")
    scene.replace(moved / "secret")
    moved.rename(scene.project)
    assert command.refused(f"write('{scene.project}/.git/config')") == "EROFS"
    assert command.refused(f"read('{scene.project}/secret')") == "EACCES"


# 5. The new file is open, or has a second name, before it gets the protected one: the command is ended.


@pytest.mark.parametrize("how", ["open", "link"])
def test_who_holds_the_lock_file_of_git_does_not_keep_the_config(scene: Scene, how: str) -> None:
    command = scene.command()
    command(f"os.chdir('{scene.project}/.git')")
    if how == "open":
        command("until(lambda: given.update(lock=os.open('config.lock', os.O_WRONLY)))")
    else:
        command("until(lambda: (os.link('config.lock', 'twin'), given.update(lock=0)))")
    for number in range(1000):
        scene.git("config", "some.number", str(number))
        try:
            if command("'lock' in given") in {True, "EOF"}:
                break
        except BrokenPipeError:
            break
    with pytest.raises(StockadeError, match="no wall can cover"):
        command.process.wait(timeout=PATIENCE)


# 6. A cover is laid again as it was, whatever lies there now: what cannot be covered ends the commands.


def test_a_repository_that_becomes_a_file_is_protected_as_that(scene: Scene) -> None:
    """``.git`` is a writable pin with covers in it; as a file it says where the repository is, and is one itself."""
    command = scene.command()
    scene.git("init", "-q", "--separate-git-dir", str(scene.ground.outside / "repository"))
    assert (scene.project / ".git").is_file()
    assert command.refused(f"os.close(os.open('{scene.project}/.git', os.O_WRONLY))")


@pytest.mark.parametrize("name", [".git", ".git/hooks", ".git/config"])
def test_what_a_link_in_a_protected_place_leads_to_is_protected(scene: Scene, name: str) -> None:
    command = scene.command()
    place, real = scene.project / name, scene.project / "real"
    (shutil.copytree if place.is_dir() else shutil.copy)(place, real)
    (shutil.rmtree if place.is_dir() else os.unlink)(place)
    place.symlink_to(real)
    what = {".git": ".git/config", ".git/hooks": ".git/hooks", ".git/config": ".git/config"}[name]
    flags = "os.O_RDONLY" if name == ".git/hooks" else "os.O_WRONLY"
    assert command.refused(f"os.close(os.open('{scene.project}/{what}', {flags}))") == "EOF"
    with pytest.raises(StockadeError, match="no wall can cover"):
        command.process.wait(timeout=PATIENCE)
    assert scene.sandbox.run("true").exit_code == 0


# 7. What the host removes can be made by a command: it is inspected.


def test_hooks_that_the_host_removes_are_not_left_by_a_command(scene: Scene) -> None:
    command = scene.command()
    command(f"os.chdir('{scene.project}/.git')")
    command("os.mkdir('prepared'); make('prepared/post-commit', None, b'#!/bin/sh\\ntouch ../pwned\\n')")
    command("until(lambda: os.rename('prepared', 'hooks'))")
    shutil.rmtree(scene.project / ".git/hooks")
    _until((scene.project / ".git/hooks").exists)
    command.refused("make('hooks/pre-push')")
    command.end()
    assert not (scene.project / ".git/hooks/post-commit").exists()
    assert not (scene.project / ".git/hooks/pre-push").exists()


def test_a_repository_of_a_commands_making_is_not_left_in_the_place_of_the_hosts(scene: Scene) -> None:
    """``rm -rf .git``: what a command puts there then is inspected like a new repository."""
    mark = scene.ground.outside / "pwned"
    command = scene.command()
    command(f"os.chdir('{scene.project}')")
    command("[os.makedirs('g/' + name) for name in ('objects', 'refs', 'hooks')]")
    command("make('g/HEAD', None, b'ref: refs/heads/main\\n')")
    command(
        f"make('g/config', None, b'[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {mark};false\\n')"
    )
    command("until(lambda: os.rename('g', '.git'))")
    shutil.rmtree(scene.project / ".git")
    _until((scene.project / ".git/HEAD").exists)
    command.refused("os.close(os.open('.git/config', os.O_WRONLY))")
    command.end()
    scene.git("init", "-q")
    scene.git("status")
    assert not mark.exists()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# 8. A jail with new covers is lost: visitors are ended, too.


def test_no_visitor_reaches_through_a_lost_jail_whose_covers_were_laid_again(scene: Scene) -> None:
    sender = scene.command()
    (keeper,) = scene.keepers()
    scene.git("remote", "add", "origin", "../elsewhere")
    sender.refused(f"write('{scene.project}/.git/config')")
    assert scene.sandbox.run("true").exit_code == 0
    receiver = scene.visitor()
    scene.pass_project(sender, receiver)
    assert receiver("write('.git/config', 'there')") == "EROFS"
    os.kill(keeper, signal.SIGKILL)
    with pytest.raises(StockadeError, match="helpers were killed"):
        sender.process.wait(timeout=PATIENCE)
    assert scene.sandbox.run("true").exit_code == 0
    assert receiver.process.wait(timeout=PATIENCE) != 0


# 9. A flood of names holds the owner for as long as it lasts, of every sandbox that watches the directory.

FLOOD = r"""
given['end'] = time.monotonic() + 10
for number in range(2):
    if os.fork() == 0:
        os.close(os.open('a%d' % number, os.O_CREAT | os.O_WRONLY))
        while time.monotonic() < given['end']:
            for _ in range(500):
                os.rename('a%d' % number, 'b%d' % number); os.rename('b%d' % number, 'a%d' % number)
        os._exit(0)
"""


def test_a_flood_of_names_keeps_no_other_sandbox_waiting(scene: Scene) -> None:
    assert scene.sandbox.run("true").exit_code == 0
    flooder = scene.command(scene.ground.sandbox(observe="off"))
    flooder(f"os.chdir('{scene.project}')")
    flooder(FLOOD)
    time.sleep(0.5)
    assert scene.sandbox.run("true").exit_code == 0
    # The flood lasts ten seconds: it is still under way, or this command waited for its end.
    assert flooder("time.monotonic() < given['end']") is True


# 10. Jails whose covers were laid again stay until no command runs: one that stays makes them pile up.


def test_jails_do_not_pile_up_beside_a_command_that_stays(scene: Scene) -> None:
    """The command that stays belongs to an older plan, and replaces what only the newer one protects."""
    staying = scene.command()
    assert scene.sandbox.run("mkdir -p sub/.git/hooks && touch sub/.git/config").exit_code == 0
    staying(f"os.chdir('{scene.project}/sub/.git')")
    staying(
        "threading.Thread(target=lambda: [(make('c'), os.rename('c', 'config'), time.sleep(.01))"
        " for _ in range(3000)], daemon=True).start()"
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        for _ in range(40):
            assert scene.sandbox.run("sleep 0.1").exit_code == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# 11. A copy of the mounts is used again although a descriptor of it waits in a socket that the host keeps.


def test_a_descriptor_that_waits_in_a_stream_shows_no_later_command(scene: Scene) -> None:
    mine, theirs = socket.socketpair()
    give = "import socket, os; socket.send_fds(socket.socket(fileno=1), [b'x'], [os.open('/', os.O_PATH)])"
    with mine, theirs:
        with scene.sandbox.spawn([sys.executable, "-I", "-S", "-c", give], stdout=mine.fileno()) as sender:
            assert sender.wait(timeout=PATIENCE).exit_code == 0
        for _ in range(2):
            assert scene.sandbox.run("true").exit_code == 0
        look = (
            "import socket, os, sys, time; _, (root,), _, _ = socket.recv_fds(socket.socket(fileno=0), 1, 1);"
            "print(flush=True); time.sleep(2);"
            "print([n for n in os.listdir(os.open('proc', 0, dir_fd=root)) if n.isdecimal()])"
        )
        with scene.sandbox.spawn([sys.executable, "-I", "-S", "-c", look], stdin=theirs.fileno()) as receiver:
            assert receiver.stdout is not None
            receiver.stdout.readline()
            for _ in range(4):
                scene.command()
            assert receiver.stdout.read().strip() == b"[]"


# 12. A visitor comes to a jail whose covers fell while nobody was there: it is looked at 20 ms later.


def test_what_the_host_replaced_before_a_visitor_came_is_closed_from_its_first_moment(scene: Scene) -> None:
    """No race with the host: the file was replaced long ago. What the visitor opens now it can write later."""
    config = scene.project / ".git/config"
    reached = []
    for _ in range(5):
        scene.replace(config, "[core]\n")
        assert scene.sandbox.run("true").exit_code == 0
        line = f"cat secret; exec 9>>{config} && sleep 0.3 && echo >&9 && echo written"
        words = scene.sandbox.wrap(line).argv
        scene.replace(config, "[core]\n")
        scene.replace(scene.project / "secret", "new secret")
        time.sleep(0.2)
        reached.append(subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).stdout)
    assert set(reached) == {b""}
