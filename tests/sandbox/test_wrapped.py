from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.blocking import BlockingSandbox
from stockade.sandbox.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sandbox.conftest import Ground

    from stockade.sandbox.wrapped import Wrapped

WAITING = "touch up; while :; do sleep 0.01; done"


@pytest.fixture
def sandbox(ground: Ground) -> Iterator[BlockingSandbox]:
    host = {"PATH": os.environ["PATH"], "TOKEN": "hunter2"}
    with BlockingSandbox(ground.policy(), environment=host, limits=Limits(open_files=77)) as opened:
        yield opened


def run(wrapped: Wrapped, given: bytes = b"", **options: Any) -> tuple[int, bytes, bytes]:
    ran = subprocess.run(wrapped.argv, input=given, capture_output=True, timeout=60, check=False, **options)
    return ran.returncode, ran.stdout, ran.stderr


def start(wrapped: Wrapped) -> subprocess.Popen[bytes]:
    return subprocess.Popen(wrapped.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def appears(path: Path) -> None:
    for _ in range(2000):
        if path.exists():
            return
        time.sleep(0.01)
    pytest.fail(f"{path} did not appear")


NOT_STARTED = b"stockade: the command could not be started: "


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("cat; echo err >&2; exit 5", (5, b"given", b"err\n"), id="streams and status"),
        pytest.param(["printf", "%s,", "a b", "$TOKEN"], (0, b"a b,$TOKEN,", b""), id="words"),
        pytest.param("echo $TOKEN $SANDBOX_RUNTIME $EXTRA", (0, b"hunter2 1 more\n", b""), id="environment"),
        pytest.param("echo $OUTER", (0, b"\n", b""), id="nothing of the caller's environment"),
        pytest.param("ulimit -n", (0, b"77\n", b""), id="limits of the session"),
        pytest.param("kill -TERM $$", (143, b"", b""), id="a signal"),
        pytest.param(["nothing"], (127, b"", NOT_STARTED + b"exec: nothing: No such file or directory\n"), id="127"),
        pytest.param(["/etc/passwd"], (126, b"", NOT_STARTED + b"exec: /etc/passwd: Permission denied\n"), id="126"),
    ],
)
def test_any_program_can_run_it(
    sandbox: BlockingSandbox, command: str | list[str], expected: tuple[int, bytes, bytes]
) -> None:
    wrapped = sandbox.wrap(command, env={"EXTRA": "more"})
    assert run(wrapped, b"given", env={"OUTER": "x"}, cwd="/") == expected
    line = subprocess.run(wrapped.line, shell=True, input=b"given", capture_output=True, check=False)  # noqa: S602 - a line for a shell
    assert (line.returncode, line.stdout, line.stderr) == expected
    assert not [word for word in wrapped.argv if "hunter2" in word or "more" in word]


def test_it_works_in_the_directory_asked_for(sandbox: BlockingSandbox, ground: Ground) -> None:
    (ground.project / "sub").mkdir()
    assert run(sandbox.wrap("pwd"), cwd="/")[1] == f"{ground.project}\n".encode()
    assert run(sandbox.wrap("pwd", cwd="sub"), cwd="/")[1] == f"{ground.project}/sub\n".encode()
    status, _, err = run(sandbox.wrap("pwd", cwd="nowhere"))
    assert (status, err) == (
        125,
        NOT_STARTED + f"working directory: {ground.project}/nowhere: No such file or directory\n".encode(),
    )


def test_closed_streams_fail_as_they_do_outside(sandbox: BlockingSandbox) -> None:
    line = sandbox.wrap("echo x").line
    ran = subprocess.run(["sh", "-c", f"{line} >&-"], capture_output=True, check=False)
    assert ran.returncode == 1
    assert b"Bad file descriptor" in ran.stderr


def test_it_is_within_the_walls_of_the_session(sandbox: BlockingSandbox, ground: Ground) -> None:
    """One private localhost, the same writable places, and nothing of the door to be seen."""
    server = (
        "import socket; s = socket.create_server(('127.0.0.1', 4321)); open('up', 'w'); s.accept()[0].send(b'hello')"
    )
    client = "import socket; print(socket.create_connection(('127.0.0.1', 4321)).recv(9))"
    with sandbox.spawn(["python3", "-c", server]):
        appears(ground.project / "up")
        assert run(sandbox.wrap(["python3", "-c", client]))[1] == b"b'hello'\n"
    assert run(sandbox.wrap(f"touch {ground.home}/x"))[0] == 1
    door = sandbox.wrap("true").argv[-2]
    assert run(sandbox.wrap(["ls", door]))[0] == 2
    assert sandbox.run(["ls", door]).exit_code == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1], ids=lambda n: n.name)
def test_signals_are_passed_on(sandbox: BlockingSandbox, ground: Ground, number: signal.Signals) -> None:
    process = start(sandbox.wrap(["sh", "-c", f"trap 'exit 9' USR1; {WAITING}"]))
    appears(ground.project / "up")
    process.send_signal(number)
    assert ended(process)[:2] == (9 if number == signal.SIGUSR1 else 128 + number, b"")


def test_a_stopped_client_is_a_stopped_command(sandbox: BlockingSandbox, ground: Ground) -> None:
    process = start(sandbox.wrap("while ! test -e go; do echo >>ticks; sleep 0.01; done; exit 4"))
    ticks = ground.project / "ticks"
    appears(ticks)
    process.send_signal(signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    size, tries = -1, 0
    while ticks.stat().st_size != size:
        size, tries = ticks.stat().st_size, tries + 1
        assert tries < 100
        time.sleep(0.2)
    process.send_signal(signal.SIGCONT)
    (ground.project / "go").touch()
    assert ended(process)[0] == 4


def test_the_command_ends_when_its_client_is_killed(sandbox: BlockingSandbox, ground: Ground) -> None:
    process = start(sandbox.wrap(f"setsid sleep 66 & {WAITING}"))
    appears(ground.project / "up")
    process.kill()
    ended(process)
    for _ in range(1000):
        if sandbox.run("ps ax -o args | grep -c '[s]leep 66'").output == "0\n":
            return
        time.sleep(0.01)
    pytest.fail("the command still runs")


def test_the_client_ends_when_the_session_does(ground: Ground) -> None:
    with BlockingSandbox(ground.policy()) as sandbox:
        wrapped = sandbox.wrap(WAITING)
        process = start(wrapped)
        appears(ground.project / "up")
    said = b"stockade: the session of this command is over"
    assert ended(process) == (125, b"", said + b", and so the command was ended\n")
    hint = b"\n  hint: start a new session and wrap the command again\n"
    assert run(wrapped) == (125, b"", said + hint)
    assert not os.path.exists(wrapped.argv[-2])


def test_another_policy_holds_for_the_next_and_not_for_those_that_run(sandbox: BlockingSandbox, ground: Ground) -> None:
    secret = ground.home / "secret"
    secret.write_text("secret")
    (ground.project / "read").write_text("")
    wrapped = sandbox.wrap(f"touch up; while ! test -e go; do sleep 0.01; done; cat {secret}")
    process = start(wrapped)
    appears(ground.project / "up")
    sandbox.update(ground.policy(filesystem__denyRead=(str(secret),)))
    (ground.project / "go").touch()
    assert ended(process) == (0, b"secret", b"")
    assert run(wrapped) == (1, b"", f"cat: {secret}: Permission denied\n".encode())


def test_a_session_whose_helpers_were_killed_receives_again(sandbox: BlockingSandbox) -> None:
    wrapped = sandbox.wrap("echo x")
    assert run(wrapped) == (0, b"x\n", b"")
    helper = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text("ascii").split()
    os.kill(int(helper[-1]), signal.SIGKILL)
    time.sleep(0.1)
    for _ in range(5):
        sandbox.session.pump()
    assert run(wrapped) == (0, b"x\n", b"")


def test_what_one_has_made_is_protected_from_the_next(ground: Ground) -> None:
    import asyncio

    async def main() -> tuple[int, int]:
        async with Sandbox(ground.policy()) as sandbox:
            lines = ("git init -q sub && touch sub/.git/hooks/own", "touch sub/.git/hooks/foreign")
            making, breaking = [sandbox.wrap(line) for line in lines]
            first, _, _ = await asyncio.to_thread(run, making)
            await asyncio.sleep(1)
            second, _, _ = await asyncio.to_thread(run, breaking)
            return first, second

    assert asyncio.run(main()) == (0, 1)


def test_many_at_once(sandbox: BlockingSandbox) -> None:
    processes = [start(sandbox.wrap(f"sleep 0.1; exit {number}")) for number in range(20)]
    assert [ended(process)[0] for process in processes] == list(range(20))


def test_a_loop_that_is_busy_keeps_nobody_waiting(ground: Ground) -> None:
    import asyncio

    async def main() -> None:
        async with Sandbox(ground.policy()) as sandbox:
            wrapped = sandbox.wrap("exit 3")
            assert wrapped == sandbox.wrap("exit 3")
            # Deliberately without giving the loop a turn.
            assert run(wrapped)[0] == 3

    asyncio.run(main())
