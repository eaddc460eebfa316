"""What every script takes for granted: identity, devices, processes, names, locales, and clean refusals."""

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.tools.conftest import Bench

ME = pwd.getpwuid(os.geteuid()).pw_name


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("id -un", f"{ME}\n", id="the user is the same"),
        pytest.param("id -u; id -g", f"{os.geteuid()}\n{os.getegid()}\n", id="and the numbers"),
        pytest.param("touch f; stat -c %u f", f"{os.geteuid()}\n", id="files are that user's"),
        pytest.param("pwd | xargs basename", "project\n", id="the working directory"),
        pytest.param("locale charmap", "UTF-8\n", id="locale"),
        pytest.param("python3 -c 'print(\"\\u00e4\")'", "\u00e4\n", id="text beyond ASCII"),
        pytest.param("touch \u00e4; ls ?", "\u00e4\n", id="a name beyond ASCII"),
        pytest.param("cat /etc/resolv.conf >/dev/null && echo yes", "yes\n", id="resolv.conf can be read"),
        pytest.param("getent hosts localhost >/dev/null && echo yes", "yes\n", id="localhost has an address"),
        pytest.param("ls -l /dev >/dev/null && echo yes", "yes\n", id="/dev can be listed"),
        pytest.param("ls -l . /tmp / ~ >/dev/null && echo yes", "yes\n", id="directories can be listed"),
        pytest.param("df . >/dev/null && df -h >/dev/null && echo yes", "yes\n", id="df"),
        pytest.param(
            "head -c 3 /dev/zero | wc -c; echo x >/dev/null; head -c 2 /dev/urandom | wc -c", "3\n2\n", id="dev"
        ),
        pytest.param("echo out >/dev/stdout; echo err >/dev/stderr", "out\n", id="standard streams by name"),
        pytest.param("cat <(echo one) <(echo two)", "one\ntwo\n", id="process substitution"),
        pytest.param("cat <<<here", "here\n", id="a here-string"),
        pytest.param("(echo a; echo b) | tee >(cat >copy) | wc -l; sleep 0.1; cat copy", "2\na\nb\n", id="tee"),
        pytest.param("cd $TMPDIR && touch x && stat -c %a . && ls", "700\nx\n", id="TMPDIR is there and private"),
        pytest.param('test -n "$(mktemp)" && test -d "$(mktemp -d)" && echo yes', "yes\n", id="mktemp"),
        pytest.param("python3 -c 'import tempfile; tempfile.TemporaryFile()' && echo yes", "yes\n", id="tempfile"),
        pytest.param("python3 -c 'import ssl; print(bool(ssl.create_default_context()))'", "True\n", id="ssl"),
        pytest.param("nproc | grep -c .", "1\n", id="nproc"),
        pytest.param("ulimit -n >/dev/null && echo yes", "yes\n", id="ulimit"),
        pytest.param("sleep 100 & kill %1; wait %1 || echo $?", "143\n", id="job control"),
        pytest.param("trap 'echo trapped' TERM; kill $$; echo after", "trapped\nafter\n", id="a trap"),
        pytest.param("timeout 0.1 sleep 100 || echo $?", "124\n", id="timeout"),
        pytest.param("nice -n 5 nice", "5\n", id="nice"),
        pytest.param("nohup echo x 2>/dev/null", "x\n", id="nohup"),
        pytest.param("setsid -w echo x", "x\n", id="setsid"),
        pytest.param("flock lock echo x", "x\n", id="flock"),
        pytest.param("mkfifo pipe && (echo x >pipe &) && cat pipe", "x\n", id="a named pipe"),
        pytest.param("ln -s a b && readlink b && echo x >c && ln c d && cat d", "a\nx\n", id="links"),
        pytest.param("script -qec 'tty >/dev/null && echo yes' /dev/null | tr -d '\\r'", "yes\n", id="a new terminal"),
        pytest.param("echo $SANDBOX_RUNTIME", "1\n", id="a command can tell where it is"),
        pytest.param("seq 4 | xargs -P 4 -n 1 echo | sort", "1\n2\n3\n4\n", id="xargs"),
        pytest.param("seq 100000 | sort -S 1M -n | tail -1", "100000\n", id="sort with temporary files"),
        pytest.param("env -i /bin/bash --norc -c 'echo $PATH' >/dev/null && echo yes", "yes\n", id="no environment"),
    ],
)
def test_everyday_lines(tools_bench: Bench, line: str, expected: str) -> None:
    assert tools_bench.good(line) == expected


def test_ps_shows_the_processes_of_the_command_alone(tools_bench: Bench) -> None:
    rows = tools_bench.good(
        "sleep 50 & until pidof -q sleep; do :; done; ps -eo args= --no-headers; kill $!"
    ).splitlines()
    assert [row for row in rows if row.startswith("sleep")] == ["sleep 50"]
    assert len(rows) <= 4
    assert not any("pytest" in row for row in rows)


@pytest.mark.parametrize("program", ["sudo -n id", "su -c id", "mount -t tmpfs none .", "chroot . true"])
def test_becoming_somebody_else_fails_at_once_and_cleanly(tools_bench: Bench, program: str) -> None:
    done = tools_bench.run(program, timeout=30)
    assert done.limit is None
    if os.geteuid() == 0 and done.exit_code == 0:
        # Root is root already; whether these two are installed, or let root be itself, is the machine's affair.
        assert program in ("sudo -n id", "su -c id")
        assert done.stdout == tools_bench.run("id").stdout
        return
    assert done.exit_code not in (0, None)
    assert done.stderr


def test_a_stack_of_signals_and_statuses(tools_bench: Bench) -> None:
    assert tools_bench.run("exit 7").exit_code == 7
    assert tools_bench.run("kill -SEGV $$").signal == 11
    assert tools_bench.run("no-such-program").exit_code == 127
