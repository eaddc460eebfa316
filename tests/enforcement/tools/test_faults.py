"""What the machine lacks is worked around or named in one line; nothing runs with weaker walls because of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.tools.conftest import Bench

SOURCE = Path(__file__).parents[3] / "src"
OWN_FAILURE = 125


class Machine:
    """Runs ``stockade run`` with an environment of its own, after a preparation in mount namespaces of its own."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.environment = {"PATH": bench.environment["PATH"], "HOME": str(bench.home), "ME": str(os.geteuid())}
        # Settings are looked for up to the root of a repository: not in what surrounds the test.
        (bench.root / ".git").mkdir()

    def run(
        self, line: str, *, prepare: str = "", without: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in self.environment.items() if name != without} | variables
        words = [sys.executable, "-m", "stockade", "run", "-c", line]
        return subprocess.run(
            _prepared(prepare, words) if prepare else words,
            cwd=self.bench.project,
            env=environment | {"PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    def names(self) -> list[str]:
        return sorted(os.listdir(self.bench.project))


def _prepared(prepare: str, words: list[str]) -> list[str]:
    """Return words that change what the disk looks like for ``words`` alone, and run them as this very user."""
    if os.geteuid() == 0:
        return ["unshare", "-m", "/bin/bash", "-ec", f"{prepare}\nexec {shlex.join(words)}"]
    again = ["unshare", "--user", f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}", "--", *words]
    return ["unshare", "-rm", "/bin/bash", "-ec", f"{prepare}\nexec {shlex.join(again)}"]


@pytest.fixture
def tools_machine(tools_bench: Bench) -> Iterator[Machine]:
    machine = Machine(tools_bench)
    yield machine
    assert machine.names() == []


@pytest.mark.parametrize(
    ("without", "variables"),
    [
        pytest.param("HOME", {}, id="no HOME"),
        pytest.param("", {"HOME": ""}, id="HOME is empty"),
        pytest.param("", {"HOME": "/nonexistent"}, id="HOME does not exist"),
        pytest.param("", {"TMPDIR": "/nonexistent"}, id="TMPDIR does not exist"),
        pytest.param("", {"TMPDIR": "relative"}, id="TMPDIR is relative"),
        pytest.param("", {"SHELL": "/nonexistent/bash"}, id="SHELL does not exist"),
        pytest.param("", {"LANG": "xx_YY.nonsense", "LC_ALL": "xx"}, id="a locale that is not there"),
        pytest.param("", {"TERM": "nonsense"}, id="a terminal that is not known"),
        pytest.param("PATH", {}, id="no PATH"),
    ],
)
def test_what_is_not_set_is_not_needed(tools_machine: Machine, without: str, variables: dict[str, str]) -> None:
    line = 'echo ok && touch "$TMPDIR/x" && { echo evil >.mcp.json || echo refused; } 2>/dev/null'
    done = tools_machine.run(line, without=without, **variables)
    assert (done.returncode, done.stdout) == (0, "ok\nrefused\n"), done.stderr


@pytest.mark.parametrize(
    ("prepare", "variables", "message"),
    [
        pytest.param("", {"PATH": ""}, "there is no shell: neither bash nor sh is on PATH", id="PATH is empty"),
        pytest.param("", {"HOME": "relative"}, "HOME: is not an absolute path", id="HOME is relative"),
        pytest.param(
            'mount -t tmpfs -o nr_inodes=2 none "$HOME"; mkdir -m 700 "$HOME/stockade-$ME"; export TMPDIR=$HOME',
            {},
            "No space left on device",
            id="the disk of TMPDIR is full",
        ),
        pytest.param(
            "for d in /tmp /var/tmp /dev/shm; do mount --rbind $d $d; mount -o remount,bind,ro $d; done",
            {},
            "no private directory can be had in",
            id="no place for temporary files",
        ),
        pytest.param("ulimit -n 10", {}, "no file descriptor left", id="ten descriptors"),
        pytest.param("ulimit -n 14", {}, "no file descriptor left", id="fourteen descriptors"),
        pytest.param("ulimit -n 20", {}, "no file descriptor left", id="twenty descriptors"),
        pytest.param("cd ..; mkdir gone; cd gone; rmdir ../gone", {}, "does not exist any more", id="no directory"),
    ],
)
def test_what_cannot_be_done_without_is_named_in_one_line_with_a_hint(
    tools_machine: Machine, prepare: str, variables: dict[str, str], message: str
) -> None:
    done = tools_machine.run("echo ran", prepare=prepare, **variables)
    assert (done.returncode, done.stdout) == (OWN_FAILURE, "")
    first, hint = done.stderr.splitlines()
    assert first.startswith("stockade: ")
    assert message in first
    assert hint.startswith("  hint: ")


@pytest.mark.parametrize(
    ("prepare", "line", "said"),
    [
        pytest.param(
            'mount --bind "$HOME" "$HOME"; mount -o remount,bind,ro "$HOME"', "echo ok", "ok\n", id="HOME is read-only"
        ),
        pytest.param("ulimit -n 256", "ulimit -n", "256\n", id="256 descriptors"),
        pytest.param(
            'mount -t tmpfs -o nr_inodes=1 none "$PWD"; cd "$PWD"', "echo ok; touch x", "ok\n", id="the project is full"
        ),
        pytest.param(
            'mount --bind "$PWD" "$PWD"; mount -o remount,bind,ro "$PWD"; cd "$PWD"',
            "echo ok; touch x",
            "ok\n",
            id="the project is read-only",
        ),
        pytest.param("umask 077", 'echo ok; cd "$TMPDIR"', "ok\n", id="a strict umask"),
        pytest.param("exec <&-", "cat; echo ok", "ok\n", id="no standard input"),
    ],
)
def test_what_can_be_worked_around_is(tools_machine: Machine, prepare: str, line: str, said: str) -> None:
    done = tools_machine.run(line, prepare=prepare)
    assert done.stdout == said, done.stderr
    assert done.returncode == (1 if "touch" in line else 0)


#: Forty commands at the same time with room for 256 descriptors; each prints whether it ran, or why not.
CROWD = textwrap.dedent("""
    import asyncio, os, resource, sys
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
    from stockade.errors import StockadeError
    from stockade.policy.compile import compile_policy
    from stockade.sandbox.asynchronous import Sandbox
    from stockade.settings.document import Document
    from stockade.settings.layer import Layer
    from stockade.settings.merge import merge
    policy = compile_policy(merge([Document(Layer.USER, "s", {})]), cwd=sys.argv[1], home="/nonexistent")

    async def one(sandbox, number):
        try:
            return (await sandbox.run(f"sleep 0.5; echo {number}", timeout=60)).stdout.decode().strip() == str(number)
        except StockadeError as error:
            assert str(error) and error.hint is not None
            return str(error)

    async def main():
        async with Sandbox(policy) as sandbox:
            before = len(os.listdir("/proc/self/fd"))
            said = await asyncio.gather(*(one(sandbox, number) for number in range(40)))
            assert len(os.listdir("/proc/self/fd")) <= before, "descriptors are left open"
            assert await one(sandbox, 1) is True, "the sandbox is of no use afterwards"
        print(said.count(True), sorted(set(map(str, said)) - {"True"}))

    asyncio.run(main())
""")


def test_forty_commands_at_once_with_256_descriptors(tools_machine: Machine) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CROWD, str(tools_machine.bench.project), "256"],
        cwd=tools_machine.bench.project,
        env=tools_machine.environment | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "40 []\n"
