"""Pipes that are passed to a command on purpose are there at their numbers, and nothing else ever is.

The session refuses anything but a pipe, and so does the process that starts the command, whoever asks it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError
from stockade.sandbox import session

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground

#: Opens a pipe at a number, leaves a directory of the host open, and passes the pipe on in one of several ways.
OWNER = """
import os, pty, sys
number, how, place = int(sys.argv[1]), sys.argv[2], sys.argv[3]
reader, writer = os.pipe()
os.write(writer, b"through the pipe")
os.close(writer)
if reader != number:
    os.dup2(reader, number)
    os.close(reader)
os.set_inheritable(os.open(place, os.O_RDONLY), True)
from stockade import BlockingSandbox, Limits, load_policy
streams = [0, 1, 2]
if how == "terminal":
    streams[0] = pty.openpty()[1]
limits = Limits(open_files=400) if how == "limits" else Limits()
with BlockingSandbox(load_policy()) as sandbox:
    for again in range(2):
        words = ["bash", "-c", f"cat /dev/fd/{number}; echo; ls /proc/self/fd; ls -l /proc/$$/fd"]
        done = sandbox.attach(words, streams, pass_fds=[number], limits=limits, terminal=how == "terminal")
        assert done.exit_code == 0, done
"""
PLAIN = [(number, "plain") for number in (3, 4, 5, 6, 7, 63, 300)]


@pytest.mark.parametrize(("number", "how"), [*PLAIN, (3, "limits"), (5, "limits"), (4, "terminal"), (63, "terminal")])
def test_a_pipe_is_at_its_number_and_nothing_else_is_open(ground: Ground, number: int, how: str) -> None:
    """Also at numbers that the helpers use themselves; ``ls`` has the directory open that it lists."""
    words = [sys.executable, "-c", OWNER, str(number), how, str(ground.outside)]
    done = subprocess.run(words, cwd=ground.project, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "through the pipe"
    listed = {line for line in lines if line.isdecimal()}
    own = "3" if number != 3 else "4"
    assert listed == {"0", "1", "2", own, str(number)}
    assert str(ground.outside) not in done.stdout


def _refusal(ground: Ground, descriptor: int) -> str:
    try:
        with pytest.raises(StockadeError) as caught:
            ground.sandbox().attach(["touch", "ran"], pass_fds=[descriptor])
    finally:
        os.close(descriptor)
    assert not (ground.project / "ran").exists()
    return caught.value.message


def _reaching_far(ground: Ground) -> dict[str, int]:
    """Open what would lead farther than a pipe."""
    one, other = socket.socketpair()
    other.close()
    return {
        "a directory": os.open(ground.outside, os.O_RDONLY),
        "a place": os.open(ground.outside, os.O_PATH),
        "a file": os.open(ground.outside / "canary", os.O_RDWR | os.O_CREAT),
        "a device": os.open("/dev/null", os.O_RDWR),
        "a socket": one.detach(),
        "memory": os.memfd_create("memory"),
    }


def test_anything_but_a_pipe_is_refused(ground: Ground) -> None:
    for descriptor in _reaching_far(ground).values():
        message = f"descriptor {descriptor} cannot be passed to the command: it is no pipe"
        assert _refusal(ground, descriptor) == message


def test_the_process_that_starts_the_command_refuses_it_too(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "require_pipe", lambda _: None)
    for descriptor in _reaching_far(ground).values():
        assert "passed descriptor: Operation not permitted" in _refusal(ground, descriptor)


@pytest.mark.parametrize("number", [0, 2, 999])
def test_a_stream_or_nothing_is_no_descriptor_to_pass(ground: Ground, number: int) -> None:
    with pytest.raises(StockadeError, match=f"descriptor {number} cannot be passed"):
        ground.sandbox().attach(["true"], pass_fds=[number])
