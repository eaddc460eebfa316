from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Outside


def test_job_control(outside: Outside) -> None:
    """Jobs run behind, stop by Ctrl-Z, come to the front and end by Ctrl-C; the shell survives."""
    seat = outside.seat(*outside.words, "shell")
    seat.sees("[$#] ")
    seat.type("bind 'set enable-bracketed-paste off' 2>/dev/null; PS1='inner> '\r")
    seat.sees(r"\n\(stockade\) inner> ")
    seat.type("tty; echo $SANDBOX_RUNTIME\r")
    seat.sees(r"/dev/pts/\d+\r\n1\r\n")
    seat.sees("inner> ")
    seat.type("sleep 100 &\r")
    seat.sees(r"\[1\] \d+.*inner> ")
    seat.type("jobs\r")
    seat.sees(r"Running +sleep 100.*inner> ")
    seat.type("sleep 200\r")
    seat.sees("sleep 200\r\n")
    seat.until(lambda: is_in_front("sleep 200"))
    seat.type("\x1a")
    seat.sees(r"Stopped +sleep 200.*inner> ")
    seat.type("fg\r")
    seat.sees("sleep 200\r\n")
    seat.until(lambda: is_in_front("sleep 200"))
    seat.type("\x03")
    seat.sees("inner> ")
    seat.type("echo status $?; exit 6\r")
    seat.sees("status 130")
    assert seat.status() == 6


def is_in_front(command: str) -> bool:
    """Tell whether it runs, in front of its terminal."""
    listed = subprocess.run(["ps", "ax", "-o", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return any("+" in line.split()[0] and line.endswith(f" {command}") for line in listed.splitlines())


def test_without_a_terminal_the_shell_reads_its_input(outside: Outside) -> None:
    given = "echo $SANDBOX_RUNTIME; touch made\nexit 5\n"
    assert outside.run("shell", given=given) == (5, "1\n", "")
    assert (outside.project / "made").exists()


def test_the_shell_is_the_user_s(outside: Outside) -> None:
    outside.environment["SHELL"] = "/bin/no-shell"
    assert outside.run("shell", given="echo $BASH_VERSION | wc -l\n") == (0, "1\n", "")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_within_tmux(outside: Outside) -> None:
    """A window of tmux: its size, a change of it, Ctrl-C, and the end of the shell."""
    socket = str(outside.project.parent / "tmux")
    shell = shlex.join([*outside.words, "shell"])

    def tmux(*words: str) -> str:
        environment = outside.environment | {"TERM": "screen"}
        ran = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", socket, *words],
            cwd=outside.project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return ran.stdout

    def shows(text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in (screen := tmux("capture-pane", "-p", "-t", "it")):
            assert time.monotonic() < deadline, f"{text!r} is not on the screen: {screen}"
            time.sleep(0.05)

    tmux("new-session", "-d", "-s", "it", "-x", "90", "-y", "30", f"{shell}; echo left $? >left; sleep 60")
    try:
        tmux("send-keys", "-t", "it", "stty size; echo in=$SANDBOX_RUNTIME", "Enter")
        shows("in=1")
        shows("30 90")
        tmux("resize-window", "-t", "it", "-x", "70", "-y", "20")
        tmux("send-keys", "-t", "it", "clear; stty size", "Enter")
        shows("20 70")
        tmux("send-keys", "-t", "it", "sleep 300", "Enter")
        while not is_in_front("sleep 300"):
            time.sleep(0.05)
        tmux("send-keys", "-t", "it", "C-c")
        tmux("send-keys", "-t", "it", "echo awake=$?", "Enter")
        shows("awake=130")
        tmux("send-keys", "-t", "it", "exit 7", "Enter")
        assert outside.appears("left").read_text() in {"left 7\n", ""}
    finally:
        tmux("kill-server")
