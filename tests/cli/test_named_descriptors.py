from __future__ import annotations

import os
import shlex
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from stockade.cli.named_descriptors import named_pipes
from stockade.errors import StockadeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Outside


@pytest.fixture
def pipe() -> Iterator[int]:
    """A pipe that was left open for us."""
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    yield reader
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    "name", ["/dev/fd/{}", "/proc/self/fd/{}", "--file=/dev/fd/{}", "of=/dev/fd/{}", "@/dev/fd/{}"]
)
def test_what_a_word_names_is_passed(pipe: int, name: str) -> None:
    word = name.format(pipe)
    assert named_pipes(["cat", word, word]) == (pipe,)
    assert not os.get_inheritable(pipe), "programs of ours do not get it"


@pytest.mark.parametrize("word", ["cat /dev/fd/{}", "/dev/fd/{}/x", "x/dev/fd/{}", "/dev/fd/{} ", "{}", "/dev/fd/"])
def test_what_stands_in_a_text_is_the_text_s_own(pipe: int, word: str) -> None:
    assert named_pipes([word.format(pipe)]) == ()


def test_what_is_not_open_or_is_our_own_is_not_passed(pipe: int) -> None:
    own = os.dup(pipe)  # as everything that Python opens
    closed = os.dup(pipe)
    os.close(closed)
    assert named_pipes([f"/dev/fd/{own}", f"/dev/fd/{closed}", "/dev/fd/0", "/dev/fd/2", "/dev/fd/999999999"]) == ()
    os.close(own)


def _refused(descriptor: int) -> str:
    os.set_inheritable(descriptor, True)
    with pytest.raises(StockadeError) as caught:
        named_pipes([f"/dev/fd/{descriptor}"])
    os.close(descriptor)
    assert f"descriptor {descriptor}, which the command names as /dev/fd/{descriptor}, is " in caught.value.message
    assert "<(cat FILE)" in caught.value.hint
    return caught.value.message.partition(" is ")[2].partition(":")[0]


def test_anything_else_is_refused_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").touch()
    one, other = socket.socketpair()
    found = {
        _refused(os.open(tmp_path, os.O_RDONLY)),
        _refused(os.open(tmp_path, os.O_PATH)),
        _refused(os.open(tmp_path / "file", os.O_RDONLY)),
        _refused(os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)),
        _refused(os.open(tmp_path / "fifo", os.O_PATH)),
        _refused(os.open("/dev/null", os.O_RDONLY)),
        _refused(os.dup(one.fileno())),
    }
    one.close()
    other.close()
    assert found == {"a directory", "a file", "a pipe with a name", "a device or a terminal", "a socket"}


@pytest.mark.parametrize("flag", ["", "-t", "--processes=50"])
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("{run} cat <(echo one) <(echo two)", "one\ntwo\n", id="two to read"),
        pytest.param("{run} sh -c 'echo in >$1; cat $2' x >(cat; echo end) <(echo out)", "out in end", id="both ways"),
        pytest.param("{run} cat /dev/fd/4 4< <(echo four)", "four\n", id="a low number"),
        pytest.param("{run} diff <(seq 100000) <(seq 100000) && echo same", "same\n", id="more than a pipe holds"),
        pytest.param("{run} sh -c 'ls /proc/$$/fd' 7</etc/passwd 8< <(sleep 0) | grep -c '[78]'", "0\n", id="unnamed"),
    ],
)
def test_a_shell_s_pipes_go_inside(outside: Outside, flag: str, line: str, expected: str) -> None:
    run = f"{shlex.join(outside.words)} run {flag} --"
    done = subprocess.run(
        ["bash", "-c", line.format(run=run)],
        cwd=outside.project,
        env=outside.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert sorted(done.stdout.split()) == sorted(expected.split())


def test_a_directory_that_a_word_names_stays_outside_and_nothing_runs(outside: Outside) -> None:
    run = f"{shlex.join(outside.words)} run -- touch ran /dev/fd/9"
    done = subprocess.run(
        ["bash", "-c", f"{run} 9</etc"],
        cwd=outside.project,
        env=outside.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("stockade: descriptor 9, which the command names as /dev/fd/9, is a directory: ")
    assert not (outside.project / "ran").exists()
