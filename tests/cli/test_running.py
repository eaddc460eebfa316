from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import Mock, call

import pytest

from stockade.cli import running
from stockade.cli.running import Forwarding, Interrupted
from stockade.errors import UnavailableError
from stockade.platforms import walls

if TYPE_CHECKING:
    import subprocess

    from tests.cli.conftest import Here, Outside

    from stockade.sandbox.session import Running

WAITING = "touch up; while :; do sleep 0.01; done"


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGHUP, id="HUP"),
        pytest.param(signal.SIGINT, id="INT"),
        pytest.param(signal.SIGQUIT, id="QUIT"),
        pytest.param(signal.SIGTERM, id="TERM"),
        pytest.param(signal.SIGUSR1, id="USR1"),
    ],
)
@pytest.mark.parametrize("flags", [pytest.param((), id="streams"), pytest.param(("-t",), id="terminal")])
def test_a_signal_ends_the_command_and_is_our_status(
    outside: Outside, number: signal.Signals, flags: tuple[str, ...]
) -> None:
    process = outside.start("run", *flags, "--", "sh", "-c", WAITING)
    outside.appears("up")
    process.send_signal(number)
    assert ended(process) == (128 + number, b"", b"")


def test_the_command_may_make_of_a_signal_what_it_likes(outside: Outside) -> None:
    process = outside.start("run", "-c", f"trap 'echo bye; exit 9' TERM; trap '' HUP; {WAITING}")
    outside.appears("up")
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[:2] == (9, b"bye\n")


def test_the_tree_dies_with_us(outside: Outside) -> None:
    process = outside.start("run", "-c", f"echo $$ >pid; setsid sleep 3600 & {WAITING}")
    outside.appears("up")
    started = {pid for pid in _processes() if b"sleep\x003600" in _command(pid)}
    process.kill()
    ended(process)
    for pid in started:
        _until_gone(pid)


def test_before_the_command_runs_a_signal_ends_us() -> None:
    forwarding = Forwarding()
    try:
        signal.raise_signal(signal.SIGCONT)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted) as caught:
            forwarding.hold()
        assert caught.value.number == signal.SIGTERM
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0), "taking down is not to be interrupted"
        assert forwarding.unrunnable() is None
    finally:
        forwarding.end()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_who_insists_ends_us_where_we_are() -> None:
    forwarding = Forwarding()
    try:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted) as caught:
            signal.raise_signal(signal.SIGTERM)
        assert caught.value.number == signal.SIGTERM
    finally:
        forwarding.end()


def test_what_never_comes_to_an_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.cli.running._PATIENCE", 0.05)
    forwarding = Forwarding()
    try:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Interrupted) as caught:
            time.sleep(30)
        assert caught.value.number == signal.SIGTERM
    finally:
        forwarding.end()
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@pytest.mark.parametrize("point", ["hold", "started"])
def test_a_signal_that_python_dropped_ends_us_soon_without_a_word(
    point: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Falling:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

    forwarding = Forwarding()
    try:
        Falling()
        with pytest.raises(Interrupted) as caught:
            forwarding.hold() if point == "hold" else forwarding.to(Mock())(Mock())
        assert caught.value.number == signal.SIGTERM
    finally:
        forwarding.end()
    assert capsys.readouterr().err == ""


def test_what_else_python_drops_is_still_told(capsys: pytest.CaptureFixture[str]) -> None:
    class Falling:
        def __del__(self) -> None:
            raise ValueError

    before, sys.unraisablehook = sys.unraisablehook, sys.__unraisablehook__
    forwarding = Forwarding()
    try:
        Falling()
    finally:
        forwarding.end()
        sys.unraisablehook = before
    assert "ValueError" in capsys.readouterr().err


def test_while_the_command_is_launched_signals_wait_for_it() -> None:
    sandbox, running = Mock(), Mock()
    forwarding = Forwarding()
    try:
        forwarding.hold()
        signal.raise_signal(signal.SIGUSR1)
        signal.raise_signal(signal.SIGTERM)
        assert sandbox.session.signal.mock_calls == []
        forwarding.to(sandbox)(running)
        assert sandbox.session.signal.mock_calls == [call(running, signal.SIGUSR1), call(running, signal.SIGTERM)]
    finally:
        forwarding.end()


def test_who_insists_while_the_command_is_launched_ends_us() -> None:
    forwarding = Forwarding()
    try:
        forwarding.hold()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGINT)
    finally:
        forwarding.end()


def test_a_signal_in_the_midst_of_another_comes_after_it() -> None:
    sent: list[tuple[int, str]] = []

    def send(_running: Running, number: int) -> None:
        sent.append((number, "begun"))
        if number == signal.SIGHUP:
            signal.raise_signal(signal.SIGTERM)
        sent.append((number, "done"))

    sandbox = Mock()
    sandbox.session.signal = send
    forwarding = Forwarding()
    try:
        forwarding.hold()
        forwarding.to(sandbox)(Mock())
        signal.raise_signal(signal.SIGHUP)
    finally:
        forwarding.end()
    hangup, end = signal.SIGHUP, signal.SIGTERM
    assert sent == [(hangup, "begun"), (hangup, "done"), (end, "begun"), (end, "done")]


BOTH = pytest.mark.parametrize("flag", [pytest.param("-T", id="streams"), pytest.param("", id="a terminal of its own")])


@BOTH
def test_keys_of_a_terminal_reach_the_command(outside: Outside, flag: str) -> None:
    """Ctrl-C is the command's, Ctrl-Z stops it and us, and fg lets both go on."""
    seat = outside.shell()
    seat.type(f"stockade run {flag} -c 'trap \"echo caught\" INT; echo $$; while read word; do echo got $word; done'\n")
    seat.sees(r"\n\d+\r\n")
    seat.type("one\n")
    seat.sees("got one")
    seat.type("\x1a")
    seat.sees(r"Stopped.*ready\$ ")
    seat.type("fg\n")
    seat.sees("stockade run")
    seat.type("two\n")
    seat.sees("got two")
    seat.type("\x03")
    seat.sees("caught")
    seat.type("\x04")
    seat.sees(r"ready\$ ")
    seat.type("echo status $?\n")
    seat.sees(r"status 0\r\n")


@BOTH
def test_ctrl_z_stops_the_command_itself(outside: Outside, flag: str) -> None:
    seat = outside.shell()
    seat.type(f"stockade run {flag} -c 'trap \"exit 3\" INT; while :; do echo >>ticks; sleep 0.01; done'\n")
    ticks = outside.appears("ticks")
    seat.type("\x1a")
    seat.sees(r"Stopped.*ready\$ ")
    before = _settled(ticks)
    seat.type("fg\n")
    seat.until(lambda: ticks.stat().st_size > before)
    seat.type("\x03")
    seat.sees(r"ready\$ ")
    seat.type("echo status $?\n")
    seat.sees(r"status 3\r\n")


SERVE = "import socket; s = socket.create_server(('127.0.0.1', 8000)); open('up', 'w'); s.accept()[0].send(b'inside')"


def test_a_published_port_is_told_and_leads_inside(outside: Outside) -> None:
    process = outside.start("run", "--publish", "0:8000", "--", "python3", "-c", SERVE)
    outside.appears("up")
    assert process.stderr is not None
    told = re.fullmatch(rb"stockade: localhost:([0-9]+) leads to port 8000 inside\n", process.stderr.readline())
    assert told
    with socket.create_connection(("127.0.0.1", int(told[1])), 30) as connection:
        assert connection.recv(100) == b"inside"
    assert ended(process) == (0, b"", b"")


@pytest.mark.parametrize(
    ("settings", "pair", "message"),
    [
        pytest.param({}, "here:there", "stockade: not a pair of ports: 'here:there'\n", id="no ports"),
        pytest.param(
            {"sandbox": {"enabled": True}},
            "0:8000",
            "stockade: the command line would loosen sandbox.network.allowLocalBinding, but sandbox settings are",
            id="a lock",
        ),
    ],
)
def test_what_cannot_be_published_runs_nothing(here: Here, settings: object, pair: str, message: str) -> None:
    here.manage(settings)
    said = here("run", "--publish", pair, "-c", "touch ran")
    assert (said.status, said.out, (here.project / "ran").exists()) == (125, "", False)
    assert said.err.startswith(message)


REFUSED = "curl -s -m 20 -o /dev/null http://evil.test/; true"
REASON = "no rule allows it, and there is nobody to ask"
REMEDY = 'add "evil.test" to sandbox.network.allowedDomains (stockade allow-domain evil.test)'
SHORT = f"stockade: 1 refusal\n  connect to evil.test:80: {REASON}\n    to allow it: {REMEDY}\n"
FULL = f"stockade: 1 refusal\n  connect to evil.test:80\n    refused: {REASON}\n    to allow it: {REMEDY}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param((), "", id="nobody sits there"),
        pytest.param(("--violations", "off"), "", id="off"),
        pytest.param(("--violations=summary",), SHORT, id="in short"),
        pytest.param(("--violations=full",), FULL, id="in full"),
    ],
)
def test_refusals_are_told_at_the_end(outside: Outside, words: tuple[str, ...], expected: str) -> None:
    assert outside.run("run", *words, "-c", REFUSED) == (0, "", expected)


@pytest.mark.parametrize(
    ("line", "targets"),
    [pytest.param("true", [], id="none"), pytest.param(REFUSED, ["evil.test:80"], id="one")],
)
def test_refusals_for_programs(outside: Outside, line: str, targets: list[str]) -> None:
    status, out, err = outside.run("run", "--violations=json", "-c", line)
    assert (status, out) == (0, "")
    told = json.loads(err)
    assert [entry["target"] for entry in told["violations"]] == targets
    assert (told["total"], told["dropped"]) == (len(targets), 0)


@pytest.mark.parametrize("flags", [pytest.param(("-T",), id="streams"), pytest.param((), id="terminal")])
def test_at_a_terminal_refusals_are_told_unasked(outside: Outside, flags: tuple[str, ...]) -> None:
    seat = outside.seat(*outside.words, "run", *flags, "-c", REFUSED)
    seat.sees(r"1 refusal\r\n +connect to evil\.test:80: ")
    assert seat.status() == 0


@pytest.mark.parametrize(("flags", "expected"), [((), False), (("--violations=summary",), True)])
def test_unasked_nothing_is_said_of_a_history_in_the_home(
    outside: Outside, flags: tuple[str, ...], *, expected: bool
) -> None:
    seat = outside.seat(*outside.words, "run", *flags, "-c", "echo >~/.viminfo; echo over")
    assert seat.status() == 0
    assert "over" in seat.screen()
    assert ("1 refusal" in seat.screen()) == expected


@pytest.mark.parametrize("flags", [pytest.param((), id="streams"), pytest.param(("-t",), id="terminal")])
def test_settings_that_change_hold_for_a_command_that_runs(
    outside: Outside, here: Here, flags: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        hear = f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null"
        line = f"touch up; until {hear}; do sleep 0.05; done"
        process = outside.start("run", *flags, "-c", line)
        outside.appears("up")
        here.user({"sandbox": {"network": {"allowedDomains": [f"127.0.0.1:{port}"]}}})
        assert ended(process) == (0, b"", b"")


def test_settings_that_break_are_told_and_change_nothing(outside: Outside, here: Here) -> None:
    process = outside.start("run", "-c", "touch up; sleep 2")
    outside.appears("up")
    file = here.user("{")
    status, _, err = ended(process)
    assert status == 0
    assert err.startswith(f"stockade: warning: {file}:".encode())
    assert err.endswith(b"the settings before stay in force\n")


def _settled(ticks: Path) -> int:
    """Return the size once it has stayed the same for a while in which a running command would have written."""
    import time

    size = -1
    for _ in range(100):
        if ticks.stat().st_size == size:
            return size
        size = ticks.stat().st_size
        time.sleep(0.2)
    pytest.fail("the command was not stopped")


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _until_gone(pid: int) -> None:
    import time

    for _ in range(1000):
        if not _command(pid):
            return
        time.sleep(0.01)
    pytest.fail(f"{pid} still runs")


def test_the_command_learns_nothing_from_the_helper_that_it_sees(outside: Outside) -> None:
    line = "tr -d '\\0' </proc/1/cmdline; cat /proc/1/comm /proc/1/environ /proc/1/mem /proc/1/maps"
    status, out, err = ended(outside.start("run", "-c", f"{line} # hush"))
    assert (status, out) == (1, b"keeper of a sandboxkeeper\n")
    assert err.count(b"Permission denied") == 3


NESTED = """\
stockade: already inside a sandbox, where no second one can be built
  hint: run the command as it is, without stockade: it is behind the walls already
"""


@pytest.mark.parametrize("command", ["run -- touch ran", "shell </dev/null"])
@pytest.mark.parametrize("bare", ["", "env -u SANDBOX_RUNTIME "], ids=["told", "untold"])
def test_inside_a_sandbox_there_is_no_second_one_and_nothing_runs(outside: Outside, command: str, bare: str) -> None:
    inner = f"{bare}{' '.join(outside.words)} {command}"
    status, out, err = outside.run("run", "-c", f"{inner}; echo status $?")
    assert (status, out, err) == (0, "status 125\n", NESTED)
    assert not (outside.project / "ran").exists()


AUDITED = """
import os, sys
made = []
def note(event, arguments):
    writing = event == "open" and arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)
    if writing or event in ("os.mkdir", "os.fork", "os.chmod", "os.link", "os.rename", "os.utime", "os.remove"):
        made.append((event, arguments))
from stockade.cli.main import main
sys.addaudithook(note)
status = main(["run", "--", "touch", "ran"])
print(status, made)
"""


def test_inside_a_sandbox_a_second_one_makes_nothing_before_it_is_refused(outside: Outside) -> None:
    """Neither a cache nor a temporary directory, neither a helper nor a record of placeholders is tried."""
    (outside.project / "audited.py").write_text(AUDITED)
    status, out, err = outside.run("run", "--", sys.executable, "-B", "audited.py")
    assert (status, out, err) == (0, "125 []\n", NESTED)


def test_nobody_is_sent_past_the_walls_by_the_variable_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set on the host, where no walls can be built, it must not say that some are there."""
    monkeypatch.setenv("SANDBOX_RUNTIME", "1")
    error = UnavailableError("no walls", "do this")
    for confined, expected in ((False, "do this"), (True, "without stockade")):
        monkeypatch.setattr(walls, "is_confined", lambda confined=confined: confined)
        assert expected in running._nested(error).hint


def test_the_variable_alone_takes_no_wall_away(outside: Outside) -> None:
    """Whoever sets it on the host gets the same walls, and the same words for what is wrong there."""
    outside.environment["SANDBOX_RUNTIME"] = "1"
    status, out, _ = outside.run("run", "-c", "touch /usr/planted 2>/dev/null || echo walled; cat /proc/1/comm")
    assert (status, out) == (0, "walled\nkeeper\n")
    assert outside.run("run", "-C", "nowhere", "true")[2].startswith("stockade: cannot work in")
