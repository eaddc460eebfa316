"""A refused read is told: which place, which rule, what would allow it, to which command; an allowed one never is.

Where ``/dev/fuse`` cannot be opened the same reads are refused all the same, and nothing is told of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.warden import DEVICE
from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.value import Value
from stockade.violations.store import KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.sandbox.result import Result

SECRET = "what-nobody-inside-may-read"  # noqa: S105 - the bait
MASKED = os.access(DEVICE, os.R_OK | os.W_OK)
PATIENCE = 60.0
DENIED = ("~/keys", "~/file", "~/around/hidden", "~/mixed", "~/mixed/way/open/closed", "~/tree/den")
SHOWN = ("~/mixed/way/open", "~/mixed/single")
OPEN_AT = "import os; os.open('id', os.O_RDONLY, dir_fd=os.open('{home}/keys', os.O_PATH))"
OPEN_AGAIN = "import os; os.open('/proc/self/fd/%d' % os.open('{home}/file', os.O_PATH), os.O_RDONLY)"
EXECUTE = "import os; os.execv('{home}/file', ['x'])"
THREAD = """
import threading
def read(): print(open('{home}/keys/id').read())
thread = threading.Thread(target=read)
thread.start()
thread.join()
"""
ORPHAN = "sh -c '(sleep 0.1; cat ~/keys/id; echo > out) & exit'; until test -e out; do :; done; rm out"

#: A line, the place below the home that it is refused, and how it ends without walls.
REFUSED: dict[str, tuple[str, str, int]] = {
    "cat": ("cat ~/keys/id", "keys/id", 0),
    "a denied file": ("cat ~/file", "file", 0),
    "a redirection": ("read line < ~/keys/id", "keys/id", 0),
    "ls of a directory": ("ls ~/keys", "keys", 0),
    "ls of what is in it": ("ls ~/keys/id", "keys/id", 0),
    "ls with everything": ("ls -la ~/keys/", "keys", 0),
    "stat of what is in it": ("stat ~/keys/id", "keys/id", 0),
    "test -e": ("test -e ~/keys/id", "keys/id", 0),
    "test -r": ("test -r ~/file", "file", 0),
    "python": ("python3 -c \"print(open('{home}/keys/id').read())\"", "keys/id", 0),
    "a thread": (f'python3 -c "{THREAD}"', "keys/id", 0),
    "find over a parent": ("find ~/tree", "tree/den", 0),
    "grep over a parent": (f"grep -r {SECRET[:8]} ~/around", "around/hidden", 0),
    "a copy of a parent": ("cp -r ~/tree copy; chmod -R u+rwx copy; rm -r copy", "tree/den", 0),
    "an archive of a parent": ("tar -cf /dev/null -C ~ tree", "tree/den", 0),
    "a program": ("~/file", "file", 0),
    "a program by exec": (f'python3 -c "{EXECUTE}"', "file", 0),
    "a program in it": ("~/keys/id", "keys/id", 0),
    "a script": ("sh ~/keys/id", "keys/id", 0),
    "a link into it": ("cat ~/link", "keys/id", 0),
    "a link to the directory": ("cat ~/alias/id", "keys/id", 0),
    "cd": ("cd ~/keys", "keys", 0),
    "a hard link of what is in it": ("ln ~/keys/id here && rm here", "keys/id", 0),
    "a descriptor of its directory": (f'python3 -c "{OPEN_AT}"', "keys/id", 0),
    "a descriptor of a denied file": (f'python3 -c "{OPEN_AGAIN}"', "file", 0),
    "the root of a process": ("cat /proc/self/root{home}/keys/id", "keys/id", 0),
    "a relative path": ("cd ~ && cat keys/id", "keys/id", 0),
    "a way back": ("cat ~/around/../keys/id", "keys/id", 0),
    "beside what is shown again": ("cat ~/mixed/secret", "mixed/secret", 0),
    "around what is shown again": ("ls ~/mixed", "mixed", 0),
    "on the way to what is shown again": ("ls ~/mixed/way", "mixed/way", 0),
    "a deny in what is shown again": ("cat ~/mixed/way/open/closed/id", "mixed/way/open/closed/id", 0),
    "what is not there": ("cat ~/keys/nothing", "keys/nothing", 1),
    "deep in it": ("cat ~/keys/nothing/deeper", "keys/nothing", 1),
    "an odd name": ("cat ~/keys/'<odd>'", "keys/<odd>", 1),
    "a background process": ("(sleep 0.01; cat ~/keys/id) & wait $!", "keys/id", 0),
    "an orphan": (ORPHAN, "keys/id", 0),
}
ALLOWED = {
    "a neighbour": "cat ~/around/open",
    "what is shown again": "cat ~/mixed/way/open/shown ~/mixed/single && ls ~/mixed/way/open",
    "the mask itself": "stat ~/keys ~/file ~/mixed ~/mixed/way && test -e ~/keys && test -d ~/keys",
    "the name in its parent": "ls -la ~ | grep keys",
    "the room": "stat -f ~/keys",
    "work in the project": "echo a > a && mkdir b && mv a b && cat b/a && rm -r b",
}


class Yard(Value):
    """A sandbox, and where its home is."""

    sandbox: BlockingSandbox
    home: Path
    processes: tuple[int, ...]

    def run(self, line: str, command_id: str = "") -> Result:
        """Run a line inside."""
        told = line.replace("{home}", str(self.home))
        return self.sandbox.run(told, env={"HOME": str(self.home)}, command_id=command_id)

    def bare(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line without walls: the control."""
        words = ["bash", "-c", line.replace("{home}", str(self.home))]
        environment = os.environ | {"HOME": str(self.home)}
        folder = self.sandbox.session.policy.cwd
        return subprocess.run(
            words, env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def refused(self, result: Result) -> dict[str, int]:
        """Return what was told of a command: places below the home, and how often."""
        return {violation.target.removeprefix(f"{self.home}/"): violation.times for violation in result.violations}


def _family(parent: int) -> Iterator[int]:
    """Yield the processes below one."""
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            pid = int(name)
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent:
                yield pid
                yield from _family(pid)


def _furnish(home: Path) -> None:
    for place in ("keys", "around", "mixed/way/open/closed", "tree/den", "tree/open"):
        (home / place).mkdir(parents=True)
    for place in ("keys/id", "file", "around/hidden", "mixed/secret", "mixed/way/open/closed/id", "tree/den/id"):
        (home / place).write_text(f"#!/bin/sh\n# {SECRET}\n")
        (home / place).chmod(0o755)
    for place in ("around/open", "mixed/way/open/shown", "mixed/single", "tree/open/file"):
        (home / place).write_text("open")
    (home / "link").symlink_to("keys/id")
    (home / "alias").symlink_to("keys")


def _open(root: Path) -> Yard:
    home, project = root / "home", root / "project"
    _furnish(home)
    project.mkdir()
    settings = {"sandbox.filesystem.denyRead": DENIED, "sandbox.filesystem.allowRead": SHOWN}
    policy = compile_policy(merge([Document(Layer.USER, "settings.json", settings)]), cwd=str(project), home=str(home))
    before = set(_family(os.getpid()))
    sandbox = BlockingSandbox(policy)
    sandbox.open()
    return Yard(sandbox, home, tuple(pid for pid in _family(os.getpid()) if pid not in before))


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """One sandbox for a whole table."""
    yard = _open(tmp_path_factory.mktemp("observed").resolve())
    yield yard
    yard.sandbox.close()


@pytest.fixture
def own_yard(tmp_path: Path) -> Iterator[Yard]:
    """A sandbox that a test may break."""
    yard = _open(tmp_path.resolve())
    yield yard
    yard.sandbox.close()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_read_is_told_once(yard: Yard, name: str) -> None:
    line, place, status = REFUSED[name]
    outside = yard.bare(line)
    assert outside.returncode == status, outside.stderr
    done = yard.run(line, command_id=f"the-{name}")
    assert SECRET not in done.output
    assert set(yard.refused(done)) == ({_escaped(place)} if MASKED else set())
    for violation in done.violations:
        assert (violation.operation.value, violation.command) == ("read", f"the-{name}")
        assert violation.rule.startswith("~/")
        assert violation.remedy.count("sandbox.filesystem.allowRead") + violation.remedy.count("denyRead") == 1
    assert done.output.count("Permission denied") >= ("denied" in done.output)


def _escaped(place: str) -> str:
    return place.replace("<", "\\x3c").replace(">", "\\x3e")


@pytest.mark.parametrize("name", ALLOWED)
def test_an_allowed_read_is_not_told(yard: Yard, name: str) -> None:
    outside = yard.bare(ALLOWED[name])
    done = yard.run(ALLOWED[name])
    assert (outside.returncode, done.exit_code, done.violations) == (0, 0, ())


COUNTED = {
    "one open": ("cat ~/keys/id", {"keys/id": 1}),
    "one listing": ("ls ~/keys", {"keys": 1}),
    "one question": ("test -e ~/keys/id", {"keys/id": 1}),
    "each time": ("cat ~/keys/id ~/keys/id ~/file", {"keys/id": 2, "file": 1}),
    "many": ("python3 -c \"import os; [os.access('{home}/keys/id', 0) for _ in range(5000)]\"", {"keys/id": 5000}),
    "at once": ("for i in $(seq 100); do cat ~/keys/$((i % 10)) & done; wait", {f"keys/{i}": 10 for i in range(10)}),
}


@pytest.mark.parametrize("name", COUNTED)
def test_every_refusal_is_counted(yard: Yard, name: str) -> None:
    line, expected = COUNTED[name]
    assert yard.refused(yard.run(line)) == (expected if MASKED else {})


def test_a_flood_of_places_stays_bounded_and_is_counted_whole(yard: Yard) -> None:
    before = yard.sandbox.violations.total
    done = yard.run("python3 -c \"import os; [os.access('{home}/keys/%d' % i, 0) for i in range(20_000)]\"")
    assert (done.exit_code, len(done.violations) <= KEPT) == (0, True)
    assert yard.sandbox.violations.total - before == (20_000 if MASKED else 0)


def test_commands_that_run_at_once_are_told_apart(own_yard: Yard) -> None:
    session = own_yard.sandbox.session
    nothing = os.open(os.devnull, os.O_RDWR)
    environment = {"HOME": str(own_yard.home)}
    line = "for i in 1 2 3 4 5; do cat ~/keys/$ME$i; sleep 0.01; done"
    try:
        commands = [
            session.start(line, (nothing,) * 3, env=environment | {"ME": f"{number}-"}, command_id=str(number))
            for number in range(20)
        ]
        limit = time.monotonic() + PATIENCE
        while any(command.outcome is None for command in commands) and time.monotonic() < limit:
            session.pump()
    finally:
        os.close(nothing)
    for number, command in enumerate(commands):
        targets = {violation.target: violation.times for violation in command.violations}
        expected = {f"{own_yard.home}/keys/{number}-{i}": 1 for i in range(1, 6)}
        assert targets == (expected if MASKED else {})


def _status(pid: int, name: str) -> list[str]:
    """Return a field of what the kernel says of a process, nothing if that is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return []
    return next(line.split()[1:] for line in lines if line.startswith(f"{name}:"))


def _warden(yard: Yard) -> int:
    """Return the process that answers for the masks: the only one of the keeper's that is in no jail; 0 if none."""
    keeper = next(pid for pid in yard.processes if _status(pid, "PPid") == [str(os.getpid())])
    below = [pid for pid in yard.processes if _status(pid, "PPid") == [str(keeper)]]
    return next((pid for pid in below if len(_status(pid, "NSpid")) == 1), 0)


def test_without_its_warden_a_jail_refuses_and_goes_on(own_yard: Yard) -> None:
    warden = _warden(own_yard)
    if not MASKED:
        assert warden == 0
        return
    assert own_yard.refused(own_yard.run("cat ~/keys/id")) == {"keys/id": 1}
    os.kill(warden, signal.SIGKILL)
    done = own_yard.run(
        "cat ~/keys/id; ls ~/keys; cat ~/file; cat ~/mixed/way/open/shown; cat ~/around/open; ls ~/mixed"
    )
    assert (done.stdout, SECRET in done.output, done.violations) == (b"openopen", False, ())
    assert own_yard.run("echo fine").output == "fine\n"


def test_a_warden_that_dies_while_it_is_asked_keeps_nobody_waiting(own_yard: Yard) -> None:
    warden = _warden(own_yard)
    if not MASKED:
        assert warden == 0
        return
    os.kill(warden, signal.SIGSTOP)
    session = own_yard.sandbox.session
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        running = session.start("cat ~/keys/id", (nothing,) * 3, env={"HOME": str(own_yard.home)})
        time.sleep(0.2)
        os.kill(warden, signal.SIGKILL)
        limit = time.monotonic() + PATIENCE
        while running.outcome is None and time.monotonic() < limit:
            session.pump()
    finally:
        os.close(nothing)
    assert running.outcome is not None
    assert os.waitstatus_to_exitcode(running.outcome.status) == 1


@pytest.mark.parametrize("victim", ["keeper", "launcher", "warden", "nobody"])
def test_whoever_is_killed_nothing_hangs_and_nothing_stays(own_yard: Yard, victim: str) -> None:
    warden = _warden(own_yard)
    if not MASKED:
        assert warden == 0
        return
    keeper = int(_status(warden, "PPid")[0])
    launcher = next(pid for pid in own_yard.processes if pid not in {keeper, warden})
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        own_yard.sandbox.session.start(
            "while true; do cat ~/keys/id; done", (nothing,) * 3, env={"HOME": str(own_yard.home)}
        )
        time.sleep(0.2)
        if victim == "nobody":
            os.kill(warden, signal.SIGSTOP)
        else:
            os.kill({"keeper": keeper, "launcher": launcher, "warden": warden}[victim], signal.SIGKILL)
        own_yard.sandbox.close()
    finally:
        os.close(nothing)
    limit = time.monotonic() + PATIENCE
    while os.path.exists(f"/proc/{warden}") and time.monotonic() < limit:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{warden}")


def test_there_is_a_warden_where_there_are_masks_alone(own_yard: Yard) -> None:
    assert bool(_warden(own_yard)) is MASKED


def test_a_closed_sandbox_leaves_no_warden(own_yard: Yard) -> None:
    own_yard.run("cat ~/keys/id")
    own_yard.sandbox.close()
    assert [pid for pid in own_yard.processes if os.path.exists(f"/proc/{pid}")] == []


def test_the_remedy_allows_it(own_yard: Yard) -> None:
    done = own_yard.run("cat ~/keys/id")
    assert [violation.remedy for violation in done.violations] == (
        [f'add "{own_yard.home}/keys/id" to sandbox.filesystem.allowRead'] if MASKED else []
    )
