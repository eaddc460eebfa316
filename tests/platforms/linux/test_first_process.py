from __future__ import annotations

import os
import pty
import resource
import signal
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.file_limit import for_commands
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import Mount

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Outcome = Callable[..., tuple[int, str, str]]

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("true", (0, "", ""), id="success"),
        pytest.param("exit 3", (3, "", ""), id="exit-code"),
        pytest.param("kill -TERM $$", (-15, "", ""), id="signal"),
        pytest.param("kill -KILL $$", (-9, "", ""), id="kill"),
        pytest.param("echo out; echo err >&2", (0, "out\n", "err\n"), id="streams"),
        pytest.param("cat", (0, "given", ""), id="input"),
        pytest.param("pwd", (0, "{tmp}\n", ""), id="directory"),
        pytest.param("echo $COLOUR", (0, "red\n", ""), id="environment"),
        pytest.param(
            "env | sort | tr '\\n' ' '", (0, "COLOUR=red PATH=/usr/bin:/bin PWD={tmp} ", ""), id="nothing-else"
        ),
        pytest.param("ls /proc/self/fd", (0, "0\n1\n2\n3\n", ""), id="no-leaked-descriptor"),
        pytest.param("echo $$; set -- /proc/[0-9]*; echo $#", (0, "2\n2\n", ""), id="sees-only-its-own-processes"),
        pytest.param("trap 'echo got' PIPE; kill -PIPE $$", (0, "got\n", ""), id="sigpipe-is-not-ignored"),
        pytest.param("grep SigBlk /proc/self/status", (0, "SigBlk:\t0000000000000000\n", ""), id="no-signal-blocked"),
        pytest.param(
            "true < /dev/tty", (2, "", "sh: 1: cannot open /dev/tty: No such device or address\n"), id="no-terminal"
        ),
        pytest.param("for i in INT TERM KILL; do kill -$i 1; done; echo on", (0, "on\n", ""), id="process-1-stays"),
        pytest.param(
            "head -c1 /proc/1/mem /proc/1/environ 2>&1 | grep -c denied", (0, "2\n", ""), id="process-1-is-closed"
        ),
        pytest.param(
            "grep -h CapEff /proc/[12]/status | uniq | wc -l", (0, "1\n", ""), id="process-1-has-no-more-rights"
        ),
        pytest.param("(setsid sh -c 'sleep 60 & sleep 60' & ) ; echo gone", (0, "gone\n", ""), id="daemons-end"),
        pytest.param("mkdir a && cd a && touch b && ls", (0, "b\n", ""), id="writes"),
        pytest.param(
            "test -c /dev/null && echo x > /dev/null && head -c 2 /dev/zero | wc -c", (0, "2\n", ""), id="devices"
        ),
        pytest.param("echo x > /dev/shm/y && cat /dev/shm/y", (0, "x\n", ""), id="shared-memory"),
        pytest.param("script -qc tty /dev/null < /dev/null | tr -d '\\r'", (0, "/dev/pts/0\n", ""), id="own-terminals"),
    ],
)
def test_a_command_runs_as_it_would_outside(
    jail: Jail, outcome: Outcome, tmp_path: Path, line: str, expected: tuple[int, str, str]
) -> None:
    code, out, err = outcome(jail, "sh", "-c", line, text="given", environment=ENVIRONMENT | {"COLOUR": "red"})
    assert (code, out, err) == tuple(x.format(tmp=tmp_path) if isinstance(x, str) else x for x in expected)


@pytest.mark.parametrize(
    ("argv", "options", "text"),
    [
        pytest.param(("no-such-program",), {}, "exec: no-such-program: No such file or directory", id="unknown"),
        pytest.param(("/etc/passwd",), {}, "exec: /etc/passwd: Permission denied", id="not-a-program"),
        pytest.param(
            ("true",), {"directory": "/nowhere"}, "working directory: /nowhere: No such file or directory", id="cwd"
        ),
        pytest.param(
            ("no-such-program",),
            {"limits": ((resource.RLIMIT_CORE, 0),)},
            "exec: no-such-program: No such file or directory",
            id="unknown-with-limits",
        ),
    ],
)
def test_what_cannot_start_is_answered_with_the_step(
    jail: Jail, outcome: Outcome, argv: tuple[str, ...], options: dict[str, object], text: str
) -> None:
    assert outcome(jail, *argv, **options) == (-1, "", text)
    assert outcome(jail, "true") == (0, "", "")


def test_limits_hold_for_the_command(jail: Jail, outcome: Outcome) -> None:
    limits = ((resource.RLIMIT_NOFILE, 40), (resource.RLIMIT_FSIZE, 1024))
    code, out, _ = outcome(jail, "sh", "-c", "ulimit -n; head -c 5000 /dev/zero > big", limits=limits)
    assert (code, out) == (128 + signal.SIGXFSZ, "40\n")


def test_limits_without_asking_are_the_owners_but_for_a_lower_hard_one(jail: Jail, outcome: Outcome) -> None:
    soft, hard = for_commands(*resource.getrlimit(resource.RLIMIT_NOFILE))
    assert outcome(jail, "bash", "-c", "ulimit -Sn; ulimit -Hn") == (0, f"{soft}\n{hard}\n", "")


def test_a_terminal_becomes_the_controlling_one(jail: Jail, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    request = Request(("sh", "-c", "echo hi > /dev/tty; read x; echo $x"), ENVIRONMENT, str(tmp_path), terminal=True)
    jail.run(request, (slave, slave, slave))
    os.close(slave)
    shown = b""
    while b"hi" not in shown:
        shown += os.read(master, 1000)
    os.write(master, b"\x03")
    answer = jail.receive()
    os.close(master)
    assert isinstance(answer, Ended)
    assert os.waitstatus_to_exitcode(answer.status) == -signal.SIGINT


def test_times_and_memory_are_told(jail: Jail, tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    line = "x=$(head -c 30000000 /dev/zero | tr '\\0' a); : ${x}"
    jail.run(Request(("bash", "-c", line), ENVIRONMENT, str(tmp_path)), (nothing,) * 3)
    answer = jail.receive()
    os.close(nothing)
    assert isinstance(answer, Ended)
    assert answer.peak_memory > 30_000_000
    assert answer.user_time + answer.system_time > 0.005


def test_where_a_fresh_proc_can_be_had_it_is_taken_even_if_none_was_asked_for(
    open_jail: Callable[..., Jail], outcome: Outcome, tmp_path: Path
) -> None:
    jail = open_jail(Mount("writable", str(tmp_path)), fresh_processes=False)
    for _ in range(3):
        assert outcome(jail, "sh", "-c", "set -- /proc/[0-9]*; echo $#") == (0, "2\n", "")
