"""Attacks on real walls: each is made outside as the control, then inside, and the host is compared before and after.

A table maps the name of an attack to ``(script, end)`` or ``(script, end, end of the control)``; ``"*"`` as the last
means that kernels differ in what they offer without walls. A script is Python; it
gets a directory of its own in the writable project (``here``, which is also its working directory) and one outside
(``there``), and what the host offers (``facts``). It ends with ``"ok"``, with the name of an error number, or with
that of the signal that killed it. One process makes all attacks of a table, each in a child of its own.

Everything runs as whoever runs the tests: what only root can do stands in a table that only root collects, so that
nothing here is ever skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from stockade.platforms.linux.syscalls import arch_of
from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stockade.platforms.backend import Observe
    from stockade.policy.model import SandboxPolicy

collect_ignore_glob = [] if sys.platform == "linux" else ["*"]

CANARY = "what-nobody-inside-may-read"
PATIENCE = 60.0
#: Numbers that no process inside a fresh pid namespace will have by chance.
_HIGH_PID = 2000

PRELUDE = r"""
import ctypes, errno, fcntl, json, os, signal, socket, stat, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
task = json.load(sys.stdin)
facts, calls = task["facts"], task["calls"]

def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def word(value):
    if isinstance(value, int):
        return ctypes.c_long(value)
    return value.encode() if isinstance(value, str) else value

def kernel(name, *arguments):
    return call(libc.syscall(ctypes.c_long(calls[name]), *map(word, arguments)))

def write(path, text="changed", flags=os.O_WRONLY, dir_fd=None):
    file = os.open(path, flags, 0o644, dir_fd=dir_fd)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)

def make(path, text="changed"):
    write(path, text, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

def link(descriptor, path):
    # Give a name to an open file; os.link cannot, since it does not follow /proc's links.
    kernel("linkat", -100, f"/proc/self/fd/{descriptor}", -100, path, 0x400)

def read(path):
    with open(path) as file:
        return file.read()

def in_child(act):
    # Return what a forked child meets, as an exception of our own: an errno cannot be more than a byte.
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
        finally:
            os._exit(255)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:
        raise RuntimeError(signal.Signals(-code).name)
    if code:
        raise OSError(code, os.strerror(code))

def attempt(each):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = []
        signal.alarm(30)
        try:
            os.chdir(each["here"])
            names = dict(globals(), say=lambda *words: said.append(" ".join(map(str, words))), **each)
            exec(compile(each["script"], each["name"], "exec"), names)
            end = "ok"
        except OSError as error:
            end = errno.errorcode.get(error.errno, str(error))
        except BaseException as error:
            end = f"{type(error).__name__}: {error}"
        os.write(writer, json.dumps([end, "\n".join(said)]).encode())
        os._exit(0)
    os.close(writer)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        answer = [signal.Signals(os.WTERMSIG(status)).name, ""]
    else:
        answer = json.loads(os.read(reader, 65536))
    os.close(reader)
    return answer
"""
DRIVER = PRELUDE + "\nprint(json.dumps({each['name']: attempt(each) for each in task['attempts']}))\n"


class Ending(Value):
    """How an attack ended, what it said, and what it changed outside."""

    end: str
    said: str
    changed: tuple[str, ...]


class Furnish(Protocol):
    """Prepares the two directories of an attack."""

    def __call__(self, here: Path, there: Path) -> None: ...


class Run(Value):
    """All attacks of a table, made in one place, and the host's services that heard of them."""

    endings: Mapping[str, Ending]
    reached: tuple[str, ...]

    def and_then(self, other: Run) -> Run:
        """Add attacks that were made later."""
        return Run({**self.endings, **other.endings}, (*self.reached, *other.reached))


class Trial(Value):
    """All attacks of a table: outside, and behind walls."""

    control: Run
    inside: Run

    def judge(self, name: str, attack: tuple[str, ...]) -> None:
        """Demand of an attack that it works outside, ends inside as its row says, and changes nothing there."""
        _, end, control = (*attack, "ok")[:3]
        outside, inside = self.control.endings[name], self.inside.endings[name]
        if control != "*":
            assert outside.end == control, "an attack that does not work outside proves nothing"
        assert (inside.end, inside.changed) == (end, ())


class MakeTrial(Protocol):
    """Makes all attacks of a table, outside and inside."""

    def __call__(
        self,
        attacks: Mapping[str, tuple[str, ...]],
        *,
        furnish: Furnish | None = None,
        at_once: int = 1000,
        **settings: Any,
    ) -> Trial: ...


class Facts:
    """What of the host the attacks aim at: a process with a secret, and services of every kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.services: dict[str, socket.socket] = {}
        self.process = _high_process()

    def start(self) -> dict[str, object]:
        abstract = f"stockade-{os.getpid()}-{os.urandom(4).hex()}"
        self._serve("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._serve("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._serve("unix", socket.AF_UNIX, socket.SOCK_STREAM, f"{self.folder}/stream")
        self._serve("unix_datagram", socket.AF_UNIX, socket.SOCK_DGRAM, f"{self.folder}/datagram")
        self._serve("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}")
        return {
            "pid": self.process.pid,
            "address": _first_address(self.process.pid),
            "tcp": self.services["tcp"].getsockname()[1],
            "udp": self.services["udp"].getsockname()[1],
            "unix": f"{self.folder}/stream",
            "unix_datagram": f"{self.folder}/datagram",
            "abstract": abstract,
            "uid": os.geteuid(),
            "python": sys.executable,
            "folder": str(self.folder),
        }

    def _serve(self, name: str, family: int, kind: int, address: object) -> None:
        service = socket.socket(family, kind)
        service.bind(address)  # type: ignore[arg-type] # its type depends on the family
        if kind == socket.SOCK_STREAM:
            service.listen(50)
        service.setblocking(False)
        self.services[name] = service

    def reached(self) -> list[str]:
        """Return the services to which somebody came since the last call."""
        return [name for name, service in self.services.items() if _was_reached(service)]

    def close(self) -> None:
        for service in self.services.values():
            service.close()
        self.process.kill()
        self.process.communicate()


def _first_address(pid: int) -> int:
    """Return where a process has memory that can be read."""
    return int(Path(f"/proc/{pid}/maps").read_text().partition("-")[0], 16)


def _high_process() -> subprocess.Popen[bytes]:
    while True:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "print(flush=True); import sys; sys.stdin.read()"],
            env={"SECRET": CANARY},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if process.pid > _HIGH_PID:
            assert process.stdout is not None
            process.stdout.readline()
            return process
        process.kill()
        process.communicate()


def _was_reached(service: socket.socket) -> bool:
    came = False
    try:
        while True:
            if service.type == socket.SOCK_DGRAM:
                service.recv(1)
            else:
                service.accept()[0].close()
            came = True
    except BlockingIOError:
        return came


def policy_for(project: Path, home: Path, **settings: Any) -> SandboxPolicy:
    """A policy with settings given as ``filesystem__allowWrite=("/x",)``."""
    named = {f"sandbox.{name.replace('__', '.')}": value for name, value in settings.items()}
    merged = merge([Document(Layer.USER, "settings.json", named)])
    return compile_policy(merged, cwd=str(project), home=str(home))


def snapshot_of(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return all that can be known about a tree, but when it was last read and how its directories were used.

    A placeholder that comes and goes with a command leaves a directory with the same names and another time.
    """
    paths = [folder, *sorted(folder.rglob("*"))]
    return {str(path.relative_to(folder)): _facts_of(path) for path in paths}


def _facts_of(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    kind = stat.S_IFMT(status.st_mode)
    content: object = None
    if kind == stat.S_IFREG:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif kind == stat.S_IFLNK:
        content = os.readlink(path)
    marks = {name: os.getxattr(path, name, follow_symlinks=False) for name in _marks_of(path)}
    identity = (status.st_mode, status.st_uid, status.st_gid, status.st_ino, content, marks)
    if kind == stat.S_IFDIR:
        return identity
    return (*identity, status.st_nlink, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _marks_of(path: Path) -> list[str]:
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:
        return []


def _furnish(here: Path, there: Path) -> None:
    """Give each attack something of its own and something of others, to begin with."""
    (here / "mine").write_text("mine")
    (here / "link").symlink_to(there)
    (there / "victim").write_text("unchanged")
    (there / "folder").mkdir()
    (there / "folder" / "kept").write_text("unchanged")


class _Arena:
    """One project and the world around it."""

    def __init__(self, root: Path, names: list[str], furnish: Furnish) -> None:
        self.project, self.outside, self.home = root / "project", root / "outside", root / "home"
        for folder in (self.project, self.outside, self.home):
            folder.mkdir(parents=True)
        self.places = {
            name: (self.project / f"{index:03}", self.outside / f"{index:03}") for index, name in enumerate(names)
        }
        for here, there in self.places.values():
            here.mkdir()
            there.mkdir()
            _furnish(here, there)
            furnish(here, there)

    def task(self, attacks: Mapping[str, tuple[str, ...]], facts: Mapping[str, object]) -> bytes:
        attempts = [
            {
                "name": name,
                "script": attacks[name][0],
                "here": str(here),
                "there": str(there),
                "project": str(self.project),
                "home": str(self.home),
            }
            for name, (here, there) in self.places.items()
        ]
        calls = arch_of(platform.machine()).numbers()
        return json.dumps({"attempts": attempts, "facts": dict(facts), "calls": calls}).encode()

    def attack(self, host: Facts, run: Callable[[], bytes]) -> Run:
        before = {name: snapshot_of(there) for name, (_, there) in self.places.items()}
        host.reached()
        answers: dict[str, tuple[str, str]] = json.loads(run())
        endings = {}
        for name, (_, there) in self.places.items():
            after = snapshot_of(there)
            both = before[name].keys() | after.keys()
            changed = tuple(sorted(path for path in both if before[name].get(path) != after.get(path)))
            end, said = answers[name]
            endings[name] = Ending(end, said, changed)
        return Run(endings, tuple(host.reached()))


def _words() -> list[str]:
    return [sys.executable, "-I", "-S", "-c", DRIVER]


def _outside(task: bytes, folder: Path) -> bytes:
    # A session of its own, so that what signals its own group does not signal the tests.
    done = subprocess.run(
        _words(), input=task, capture_output=True, timeout=PATIENCE, check=False, cwd=folder, start_new_session=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def _inside(task: bytes, policy: SandboxPolicy) -> bytes:
    with BlockingSandbox(policy) as sandbox:
        done = sandbox.run(_words(), stdin=task, timeout=PATIENCE)
    assert (done.exit_code, done.stderr) == (0, b"")
    return done.stdout


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facts]:
    """What of the host there is to reach."""
    facts = Facts(tmp_path_factory.mktemp("host").resolve())
    try:
        yield facts
    finally:
        facts.close()


@pytest.fixture(scope="session")
def facts(host: Facts) -> dict[str, object]:
    """Where it is, in words for the attacks."""
    return host.start()


@pytest.fixture(scope="session")
def make_trial(tmp_path_factory: pytest.TempPathFactory, host: Facts, facts: dict[str, object]) -> MakeTrial:
    """Make all attacks of a table in two arenas. ``{project}`` and ``{outside}`` in settings mean those places."""

    def make(
        attacks: Mapping[str, tuple[str, ...]],
        *,
        furnish: Furnish | None = None,
        at_once: int = 1000,
        **settings: Any,
    ) -> Trial:
        names = list(attacks)
        control, inside = Run({}, ()), Run({}, ())
        for first in range(0, len(names), at_once):
            root = tmp_path_factory.mktemp("trial").resolve()
            some = names[first : first + at_once]
            bare, walled = (_Arena(root / name, some, furnish or _nothing) for name in ("control", "inside"))
            control = control.and_then(_bare(bare, attacks, host, facts))
            inside = inside.and_then(_walled(walled, attacks, host, facts, settings))
        return Trial(control, inside)

    return make


@pytest.fixture(scope="session")
def inside_only(tmp_path_factory: pytest.TempPathFactory, host: Facts, facts: dict[str, object]) -> MakeTrial:
    """Make all attacks of a table behind walls alone, where a control would leave this machine."""

    def make(
        attacks: Mapping[str, tuple[str, ...]],
        *,
        furnish: Furnish | None = None,
        at_once: int = 1000,
        **settings: Any,
    ) -> Trial:
        assert at_once >= len(attacks)
        arena = _Arena(tmp_path_factory.mktemp("trial").resolve(), list(attacks), furnish or _nothing)
        return Trial(Run({}, ()), _walled(arena, attacks, host, facts, settings))

    return make


def _bare(arena: _Arena, attacks: Mapping[str, tuple[str, ...]], host: Facts, facts: Mapping[str, object]) -> Run:
    return arena.attack(host, lambda: _outside(arena.task(attacks, facts), arena.project))


def _walled(
    arena: _Arena,
    attacks: Mapping[str, tuple[str, ...]],
    host: Facts,
    facts: Mapping[str, object],
    settings: Mapping[str, Any],
) -> Run:
    return arena.attack(host, lambda: _inside(arena.task(attacks, facts), _policy(arena, settings)))


def _nothing(here: Path, there: Path) -> None:
    """Add nothing."""


def _policy(arena: _Arena, settings: Mapping[str, Any]) -> SandboxPolicy:
    words = {"{project}": str(arena.project), "{outside}": str(arena.outside), "{home}": str(arena.home)}

    def fill(text: str) -> str:
        for word, path in words.items():
            text = text.replace(word, path)
        return text

    filled = {name: tuple(map(fill, value)) if isinstance(value, tuple) else value for name, value in settings.items()}
    return policy_for(arena.project, arena.home, **filled)


class Ground:
    """A project, a home and what lies outside, for tests that run commands one by one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project, self.outside, self.home = root / "project", root / "outside", root / "home"
        for folder in (self.project, self.outside, self.home):
            folder.mkdir(parents=True)
        self._stack = ExitStack()

    def policy(self, **settings: Any) -> SandboxPolicy:
        return policy_for(self.project, self.home, **settings)

    def sandbox(self, *, observe: Observe = "auto", **settings: Any) -> BlockingSandbox:
        """An open sandbox, closed with the test."""
        return self._stack.enter_context(BlockingSandbox(self.policy(**settings), observe=observe))

    def snapshot(self, folder: Path | None = None) -> dict[str, tuple[object, ...]]:
        return snapshot_of(folder or self.outside)

    def bare(self, line: str, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run a line without walls: the control."""
        return subprocess.run(
            ["sh", "-c", line], cwd=cwd or self.project, capture_output=True, timeout=PATIENCE, check=False
        )

    def close(self) -> None:
        self._stack.close()
        shutil.rmtree(self.root, ignore_errors=True)


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    """A place for one test."""
    ground = Ground(tmp_path.resolve())
    try:
        yield ground
    finally:
        ground.close()


@pytest.fixture(autouse=True)
def _nothing_stays_open(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test after which this process has something open in the place of that test: sessions live for days."""
    place = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if place is not None:
        opened = []
        for number in os.listdir("/proc/self/fd"):
            with suppress(OSError):  # the one of the listing
                opened.append(os.readlink(f"/proc/self/fd/{number}"))
        assert [path for path in opened if path.startswith(f"{place.resolve()}/")] == []


@pytest.fixture(scope="module")
def make_ground() -> Iterator[Callable[[Path], Ground]]:
    """Make places that several tests share."""
    made: list[Ground] = []

    def make(root: Path) -> Ground:
        made.append(Ground(root))
        return made[-1]

    yield make
    for ground in made:
        ground.close()


def alive_with(mark: str) -> list[int]:
    """Return the host's processes that have a text in their arguments."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        try:
            arguments = Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in arguments:
            found.append(int(name))
    return found


@pytest.fixture
def processes_with() -> Iterator[Callable[[str], list[int]]]:
    """Find processes of the host by a text in their arguments; what is left of them is ended with the test."""
    marks: list[str] = []

    def find(mark: str) -> list[int]:
        marks.append(mark)
        return alive_with(mark)

    yield find
    # Some start others as they go, or are between two programs when they are looked for.
    for _ in range(3):
        for pid in {pid for mark in marks for pid in alive_with(mark)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
