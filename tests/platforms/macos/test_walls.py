"""The walls of macOS with a program in place of sandbox-exec: everything but what the kernel of a Mac would do."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.backend import Launch, Outcome
from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.evaluator import Evaluator
from stockade.platforms.macos.tag import decode
from stockade.platforms.macos.walls import MacWalls
from stockade.policy.compile import compile_policy
from stockade.sandbox.session import Session
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.policy.model import SandboxPolicy

PATIENCE = 30.0
PATH = {"PATH": os.environ["PATH"]}


def _policy(root: Path, **values: object) -> SandboxPolicy:
    settings = {f"sandbox.{name.replace('_', '.')}": value for name, value in values.items()}
    cwd = root / "w"
    cwd.mkdir(exist_ok=True)
    return compile_policy(merge([Document(Layer.USER, "s.json", settings)]), cwd=str(cwd), home=str(root / "home"))


@pytest.fixture
def walls(tmp_path: Path, fake_sandbox: str) -> Iterator[MacWalls]:
    (tmp_path / "private" / "tmp-1").mkdir(parents=True)
    made = MacWalls(str(tmp_path / "private" / "tmp-1"), sandbox=fake_sandbox)
    yield made
    made.close()


def _outcomes(walls: MacWalls, count: int) -> list[Outcome]:
    found: list[Outcome] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        assert select.select([walls], [], [], max(0.0, deadline - time.monotonic()))[0], "nothing was said"
        found += walls.receive()
    return found


def _launch(walls: MacWalls, root: Path, line: str, *, terminal: bool = False, out: int | None = None) -> int:
    with open(os.devnull, "r+b") as nothing:
        stream = nothing.fileno() if out is None else out
        streams = (stream if terminal else nothing.fileno(), stream, stream)
        return walls.launch(Launch(("/bin/sh", "-c", line), PATH, str(root / "w"), terminal=terminal), streams)


def _output(walls: MacWalls, root: Path, line: str) -> tuple[Outcome, str]:
    reader, writer = os.pipe()
    _launch(walls, root, line, out=writer)
    os.close(writer)
    (outcome,) = _outcomes(walls, 1)
    with open(reader, "rb") as file:
        return outcome, file.read().decode()


def test_a_command_runs_behind_its_profile(walls: MacWalls, tmp_path: Path, fake_sandbox: str) -> None:
    walls.renew(_policy(tmp_path, filesystem_denyRead=["~/secret"]))
    outcome, text = _output(walls, tmp_path, "echo hello; pwd; exit 3")
    assert text == f"hello\n{tmp_path}/w\n"
    assert (outcome.ticket, outcome.status, outcome.failure) == (1, 3 << 8, "")
    assert outcome.peak_memory > 100_000
    profile = Path(fake_sandbox).with_name("profiles").read_text()
    seen = Evaluator(profile)
    assert seen.allows_file("file-write-create", f"{tmp_path}/w/x")
    assert seen.allows_file("file-write-create", f"{tmp_path}/private/tmp-1/x")
    assert not seen.allows_file("file-read-data", f"{tmp_path}/private/order-x")
    verdict = seen.judge(Attempt("file-read-data", f"{tmp_path}/home/secret"))
    assert not verdict.allowed
    tag = decode(verdict.message, walls.suffix)
    assert tag is not None
    assert (tag.ticket, tag.line) == (1, "echo hello; pwd; exit 3")
    for port in walls.ports():
        assert seen.allows(Attempt("network-outbound", remote=f"127.0.0.1:{port}"))


def test_another_policy_holds_for_the_next_command(walls: MacWalls, tmp_path: Path, fake_sandbox: str) -> None:
    for names in (["a"], ["b"]):
        walls.renew(_policy(tmp_path, filesystem_denyRead=names))
        _output(walls, tmp_path, "true")
    first, second = Path(fake_sandbox).with_name("profiles").read_text().split("(version 1)")[1:]
    assert f"{tmp_path}/w/a" in first
    assert f"{tmp_path}/w/b" in second
    assert f"{tmp_path}/w/a" not in second


def test_all_that_a_command_started_ends_with_it(walls: MacWalls, tmp_path: Path) -> None:
    walls.renew(_policy(tmp_path))
    _, text = _output(walls, tmp_path, "sleep 300 >/dev/null 2>&1 & echo $!")
    _wait_for_end(int(text))


def test_ending_and_signalling(walls: MacWalls, tmp_path: Path) -> None:
    walls.renew(_policy(tmp_path))
    first = _launch(walls, tmp_path, "sleep 300")
    second = _launch(walls, tmp_path, "trap 'exit 9' USR1; echo > ready; while :; do sleep 0.05; done")
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "w" / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    walls.end(first)
    walls.signal(second, signal.SIGUSR1)
    outcomes = {outcome.ticket: outcome.status for outcome in _outcomes(walls, 2)}
    assert outcomes[first] == signal.SIGKILL
    walls.end(first)
    assert outcomes[second] in (9 << 8, signal.SIGUSR1)  # the shell, or the sleep in front of it


@pytest.mark.parametrize(
    ("words", "directory", "status", "failure"),
    [
        pytest.param(("no-such",), "w", 127 << 8, "no-such: no such program", id="program"),
        pytest.param(("/etc/passwd",), "w", 126 << 8, "/etc/passwd: not to be executed", id="no-program"),
        pytest.param(("true",), "none", 127 << 8, "cannot enter ", id="directory"),
    ],
)
def test_what_cannot_be_started(
    walls: MacWalls, tmp_path: Path, words: tuple[str, ...], directory: str, status: int, failure: str
) -> None:
    walls.renew(_policy(tmp_path))
    walls.launch(Launch(words, PATH, str(tmp_path / directory)), (0, 1, 2))
    (outcome,) = _outcomes(walls, 1)
    assert outcome.status == status
    assert outcome.failure.startswith(failure)


def test_a_terminal_controls_the_command(walls: MacWalls, tmp_path: Path) -> None:
    walls.renew(_policy(tmp_path))
    ours, theirs = walls.open_terminal()
    _launch(walls, tmp_path, "test -t 0 && echo yes > /dev/tty", terminal=True, out=theirs)
    _outcomes(walls, 1)
    assert b"yes" in os.read(ours, 100)
    os.close(ours)
    os.close(theirs)


def test_a_wrapped_command_is_run_by_anybody(walls: MacWalls, tmp_path: Path) -> None:
    walls.renew(_policy(tmp_path))
    words = walls.wrap(Launch(("/bin/sh", "-c", "echo $SECRET"), {**PATH, "SECRET": "s3"}, str(tmp_path / "w")))
    assert "s3" not in " ".join(words)
    assert os.stat(words[-1]).st_mode & 0o777 == 0o600
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "s3\n"
    walls.close()
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 125
    assert "closed" in ran.stderr


def test_the_proxies_listen_on_localhost(walls: MacWalls) -> None:
    entrances = walls.take_entrances()
    assert [(each.kind, each.port) for each in entrances] == [("http", 0), ("socks", 0)]
    assert walls.take_entrances() == ()
    for entrance, port in zip(entrances, walls.ports(), strict=True):
        with socket.socket(fileno=entrance.descriptor) as listener:
            assert listener.getsockname() == ("127.0.0.1", port)


def test_what_macos_has_not(walls: MacWalls) -> None:
    assert walls.unrouted()
    walls.rest()
    with pytest.raises(UnavailableError, match="localhost of this machine"):
        walls.open_way_in()


def test_nothing_runs_without_walls(walls: MacWalls, tmp_path: Path, fake_sandbox: str) -> None:
    launch = Launch(("true",), PATH, str(tmp_path))
    with pytest.raises(UnavailableError, match="not built"):
        walls.launch(launch, (0, 1, 2))
    with pytest.raises(UnavailableError, match="cannot be enforced"):
        walls.renew(_policy(tmp_path, filesystem_denyRead=["/"]))
    os.unlink(fake_sandbox)
    with pytest.raises(UnavailableError, match="is not there"):
        walls.renew(_policy(tmp_path))


def test_a_keeper_that_was_killed_is_replaced(walls: MacWalls, tmp_path: Path) -> None:
    policy = _policy(tmp_path)
    walls.renew(policy)
    ticket = _launch(walls, tmp_path, "sleep 1")
    assert walls._keeper is not None
    os.kill(walls._keeper.pid, signal.SIGKILL)
    (lost,) = _outcomes(walls, 1)
    assert (lost.ticket, lost.status) == (ticket, 0)
    assert "killed" in lost.failure
    walls.renew(policy)
    assert _output(walls, tmp_path, "echo again")[1] == "again\n"


OWNER = """
import os, sys, time
sys.path += {path!r}
from stockade.platforms.backend import Launch
from stockade.platforms.macos.walls import MacWalls
from stockade.policy.compile import compile_policy
from stockade.settings.merge import merge
walls = MacWalls({temporary!r}, sandbox={sandbox!r})
walls.renew(compile_policy(merge([]), cwd={cwd!r}, home="/nonexistent"))
walls.launch(Launch(("/bin/sh", "-c", "echo $$ > pid; exec sleep 300"), dict(os.environ), {cwd!r}), (0, 1, 2))
time.sleep(300)
"""


def test_everything_ends_with_its_owner(tmp_path: Path, fake_sandbox: str) -> None:
    (tmp_path / "private" / "tmp-1").mkdir(parents=True)
    text = OWNER.format(
        path=sys.path, temporary=str(tmp_path / "private" / "tmp-1"), sandbox=fake_sandbox, cwd=str(tmp_path)
    )
    owner = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    owner.kill()
    owner.wait()
    _wait_for_end(int((tmp_path / "pid").read_text()))


def _wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return  # ended, and only not yet buried by whoever adopts orphans here
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.02)
    pytest.fail(f"{pid} still runs")


FETCH = """
import os, urllib.request, urllib.error
try:
    urllib.request.urlopen("http://other.example/", timeout=20)
except urllib.error.HTTPError as error:
    print(error.code, error.reason)
"""


def test_a_session_with_its_proxies(tmp_path: Path, fake_sandbox: str) -> None:
    policy = _policy(tmp_path, network_allowedDomains=("example.com",))
    session = Session(policy, lambda temporary: MacWalls(temporary, sandbox=fake_sandbox))
    session.open()
    try:
        reader, writer = os.pipe()
        with open(os.devnull, "rb") as nothing:
            running = session.start([sys.executable, "-c", FETCH], (nothing.fileno(), writer, writer))
        os.close(writer)
        deadline = time.monotonic() + PATIENCE
        while running.outcome is None:
            assert select.select([session], [], [], max(0.0, deadline - time.monotonic()))[0], "nothing was said"
            session.pump()
        with open(reader, "rb") as file:
            assert file.read().decode().startswith("403 ")
        (violation,) = session.violations
        assert violation.target == "other.example:80"
    finally:
        session.close()


LOG = """#!{python}
import json, os, sys, time
suffix = sys.argv[-1].split('"')[1]
sys.path += {path!r}
from stockade.platforms.macos.tag import encode
while not os.path.exists({ready!r}):
    time.sleep(0.01)
message = "Sandbox: sh(9) deny(1) file-write-create {target}" + chr(10) + encode(1, "x", suffix)
print(json.dumps(dict(eventMessage=message)), flush=True)
time.sleep(300)
"""


def test_what_the_log_tells_becomes_a_violation(tmp_path: Path, fake_sandbox: str) -> None:
    target, ready, log = "/opt/forbidden", tmp_path / "w" / "ready", tmp_path / "log"
    log.write_text(LOG.format(python=sys.executable, path=sys.path, ready=str(ready), target=target))
    log.chmod(0o755)
    session = Session(_policy(tmp_path), lambda temporary: MacWalls(temporary, sandbox=fake_sandbox, log=str(log)))
    session.open()
    try:
        with open(os.devnull, "r+b") as nothing:
            running = session.start("echo > ready; sleep 300", (nothing.fileno(),) * 3)
        deadline = time.monotonic() + PATIENCE
        while not len(session.violations):
            assert select.select([session], [], [], max(0.0, deadline - time.monotonic()))[0], "nothing was said"
            session.pump()
        (violation,) = session.violations
        assert (violation.command, violation.operation.value, violation.target) == (
            running.command_id,
            "create",
            target,
        )
        assert "sandbox.filesystem.allowWrite" in violation.remedy
    finally:
        session.close()
