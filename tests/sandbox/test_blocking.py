from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError
from stockade.sandbox.blocking import BlockingSandbox
from stockade.sandbox.group import Group
from stockade.sandbox.limits import Limit, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sandbox.conftest import Ground


@pytest.fixture
def sandbox(ground: Ground) -> Iterator[BlockingSandbox]:
    with BlockingSandbox(ground.policy()) as opened:
        yield opened


def test_output_status_and_input(sandbox: BlockingSandbox) -> None:
    done = sandbox.run("cat; echo err >&2; exit 3", stdin=b"hello")
    assert (done.exit_code, done.stdout, done.stderr, done.status) == (3, b"hello", b"err\n", 3)


def test_words_are_not_read_by_a_shell(sandbox: BlockingSandbox) -> None:
    assert sandbox.run(["echo", "$HOME", "a  b"]).output == "$HOME a  b\n"


def test_signals_are_told(sandbox: BlockingSandbox) -> None:
    done = sandbox.run("kill -TERM $$")
    assert (done.exit_code, done.signal, done.status) == (None, 15, 143)


def test_time_limit_ends_the_whole_tree(sandbox: BlockingSandbox) -> None:
    done = sandbox.run("setsid sleep 60 & sleep 60", timeout=0.2)
    assert done.limit is Limit.TIME
    assert done.signal == 9
    assert sandbox.run("ps ax -o args | grep -c '[s]leep 60'").output == "0\n"


def test_output_limit(sandbox: BlockingSandbox) -> None:
    done = sandbox.run("yes", limits=Limits(output_bytes=1 << 20))
    assert done.limit is Limit.OUTPUT
    assert len(done.stdout) > 1 << 20


def test_processor_limit(sandbox: BlockingSandbox) -> None:
    done = sandbox.run(["sh", "-c", "while :; do :; done"], limits=Limits(cpu_seconds=1))
    assert done.limit is Limit.CPU


def test_open_files_limit(sandbox: BlockingSandbox) -> None:
    assert sandbox.run("ulimit -n", limits=Limits(open_files=33)).output == "33\n"


def require_groups() -> None:
    group = Group.make(Limits(memory=1 << 30, processes=100))
    if group is None:
        pytest.skip("control groups are not writable here")
    group.close()


def test_memory_of_the_whole_tree(sandbox: BlockingSandbox) -> None:
    require_groups()
    line = "python3 -c 'bytearray(300 << 20)' & python3 -c 'bytearray(300 << 20)'; wait"
    assert sandbox.run(line, limits=Limits(memory=200 << 20)).limit is Limit.MEMORY
    assert sandbox.run("true", limits=Limits(memory=200 << 20)).limit is None


def test_processes_of_the_whole_tree(sandbox: BlockingSandbox) -> None:
    require_groups()
    done = sandbox.run("for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2 & done; wait", limits=Limits(processes=5))
    assert done.limit is Limit.PROCESSES


def test_big_output_is_whole(sandbox: BlockingSandbox) -> None:
    assert len(sandbox.run("head -c 5000000 /dev/zero").stdout) == 5_000_000


def test_output_is_told_as_it_comes(sandbox: BlockingSandbox) -> None:
    heard: list[bytes] = []
    sandbox.run("echo a; echo b", on_output=heard.append)
    assert b"".join(heard) == b"a\nb\n"


def test_what_cannot_be_started_says_why(sandbox: BlockingSandbox) -> None:
    with pytest.raises(StockadeError, match="No such file or directory") as caught:
        sandbox.run(["/nonexistent/program"])
    assert caught.value.hint
    with pytest.raises(StockadeError, match="No such file or directory"):
        sandbox.run("true", cwd="nowhere")
    assert sandbox.run("true").ok


def test_working_directory_and_environment(sandbox: BlockingSandbox, ground: Ground) -> None:
    (ground.project / "sub").mkdir()
    assert sandbox.run("pwd").output == f"{ground.project}\n"
    assert sandbox.run("pwd", cwd="sub").output == f"{ground.project}/sub\n"
    done = sandbox.run('echo "$A $SANDBOX_RUNTIME"; test -w "$TMPDIR" && stat -c %a "$TMPDIR"', env={"A": "b"})
    assert done.output == "b 1\n700\n"


def test_two_policies_in_one_process(ground: Ground) -> None:
    other = ground.home / "other"
    other.mkdir()
    line = f"touch {other}/made"
    with (
        BlockingSandbox(ground.policy()) as narrow,
        BlockingSandbox(ground.policy(filesystem__allowWrite=(str(other),))) as wide,
    ):
        assert not narrow.run(line).ok
        assert wide.run(line).ok
        assert narrow.temporary != wide.temporary


def test_update_counts_from_the_next_command(sandbox: BlockingSandbox, ground: Ground) -> None:
    other = ground.home / "other"
    other.mkdir()
    line = f"touch {other}/made"
    assert not sandbox.run(line).ok
    sandbox.update(ground.policy(filesystem__allowWrite=(str(other),)))
    assert sandbox.run(line).ok
    sandbox.update(ground.policy())
    assert not sandbox.run(f"{line}2").ok


def test_nothing_stays(ground: Ground) -> None:
    before = os.listdir("/proc/self/fd")
    with BlockingSandbox(ground.policy()) as opened:
        temporary = opened.temporary
        opened.run("echo x > $TMPDIR/file; setsid sleep 100 >/dev/null 2>&1 &")
    assert not os.path.exists(temporary)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert list(ground.project.iterdir()) == []
    with pytest.raises(StockadeError, match="not open"):
        opened.run("true")
    opened.close()


def test_an_interrupted_wait_ends_the_command(sandbox: BlockingSandbox) -> None:
    class Stop(Exception):  # noqa: N818 - stands for any exception of the host
        pass

    def stop(_piece: bytes) -> None:
        raise Stop

    with pytest.raises(Stop):
        sandbox.run("echo x; sleep 60", on_output=stop)
    assert sandbox.session.running == ()
    assert sandbox.run("true").ok


def test_a_sandbox_may_be_opened_in_another_thread(ground: Ground) -> None:
    sandbox = BlockingSandbox(ground.policy())
    thread = threading.Thread(target=sandbox.open)
    thread.start()
    thread.join()
    assert sandbox.run("echo alive").output == "alive\n"
    sandbox.close()


NESTED = """
import sys
from stockade import UnavailableError
from stockade.sandbox.blocking import BlockingSandbox
made = []
sys.addaudithook(lambda event, arguments: made.append(arguments) if event in ("os.mkdir", "os.fork") else None)
sandbox = BlockingSandbox(None)
try:
    sandbox.open()
except UnavailableError as error:
    print(error.message, made)
"""


def test_inside_a_sandbox_the_library_says_so_and_makes_nothing(sandbox: BlockingSandbox) -> None:
    done = sandbox.run([sys.executable, "-B", "-c", NESTED], env={"PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.output, done.stderr) == ("already inside a sandbox, where no second one can be built []\n", b"")
