from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Outside, Seat


def relayed(outside: Outside, line: str, size: tuple[int, int] = (24, 80)) -> Seat:
    return outside.seat(*outside.words, "run", "-t", "-c", line, size=size)


def test_the_window_has_the_user_s_size_and_follows_it(outside: Outside) -> None:
    line = "trap 'stty size' WINCH; stty size; while ! test -e stop; do sleep 0.01; done; exit 4"
    seat = relayed(outside, line, size=(31, 97))
    seat.sees(r"31 97\r\n")
    seat.resize(40, 120)
    seat.sees(r"40 120\r\n")
    (outside.project / "stop").touch()
    assert seat.status() == 4


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("stty -echo; echo now; exit 3", 3, id="ends"),
        pytest.param("stty raw; echo now; kill -9 $$", 137, id="is killed"),
    ],
)
def test_the_user_s_terminal_is_as_it_was(outside: Outside, line: str, expected: int) -> None:
    before = outside.seat("true").modes()
    seat = relayed(outside, line)
    seat.sees("now")
    assert seat.status() == expected
    assert seat.modes() == before


def test_a_command_killed_from_outside_gives_the_terminal_back(outside: Outside) -> None:
    seat = relayed(outside, "echo pid $$; stty raw -echo; touch up; exec sleep 3601")
    before = outside.seat("true").modes()
    outside.appears("up")
    assert seat.is_raw()
    deadline = time.monotonic() + 30
    while not (found := [int(p) for p in os.listdir("/proc") if p.isdigit() and _command(p) == b"sleep\x003601\x00"]):
        assert time.monotonic() < deadline  # the shell is about to become it
    (pid,) = found
    os.kill(pid, signal.SIGKILL)
    assert seat.status() == 137
    assert seat.modes() == before


def _command(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_more_than_the_command_takes_now_blocks_nobody(outside: Outside) -> None:
    """Much is pasted while the command only writes, and its words still reach the screen; then it reads."""
    size = 300_000
    seat = relayed(
        outside, f"stty raw -echo; echo go; while ! test -e read; do seq 200; done; echo reads; head -c {size} | wc -c"
    )
    seat.sees("go")
    left = seat.paste(b"x" * size)
    assert left
    (outside.project / "read").touch()
    assert seat.paste(left) == b""
    seat.sees(rf"reads.*\b{size}\b")
    assert seat.status() == 0


def test_a_closed_window_ends_the_command(outside: Outside) -> None:
    seat = relayed(outside, "trap 'touch hung-up; exit' HUP; touch up; while :; do sleep 0.01; done")
    outside.appears("up")
    seat.hang_up()
    outside.appears("hung-up")
    assert seat.process.wait(30) == 129 or seat.process.returncode == 0


def test_stopped_from_outside_the_terminal_is_the_user_s_again(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -t -c 'echo pid; read word; echo got $word'\n")
    seat.sees(r"\npid\r\n")
    assert seat.is_raw()
    (us,) = _children(seat.process.pid)
    os.kill(us, signal.SIGTSTP)
    seat.sees(r"Stopped.*ready\$ ")
    assert not seat.is_raw()
    seat.type("fg\n")
    seat.until(seat.is_raw)
    seat.type("again\r")
    seat.sees("got again")
    seat.sees(r"ready\$ ")


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in re.findall(r"\d+", file.read())]


def test_a_terminal_that_nobody_has_open_for_a_while_is_no_end(outside: Outside) -> None:
    seat = relayed(outside, "exec 3>&1; (exec </dev/null >/dev/null 2>&1 3>&-; sleep 0.3; echo back >/dev/tty)")
    seat.sees("back")
    assert seat.status() == 0


def started(outside: Outside, *words: str) -> Seat:
    return outside.seat(*outside.words, "run", *words)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [pytest.param((), "/dev/pts/0", id="by itself"), pytest.param(("-T",), "not a tty", id="not if it is not wanted")],
)
def test_on_a_terminal_a_command_has_one_of_its_own(outside: Outside, flags: tuple[str, ...], expected: str) -> None:
    seat = started(outside, *flags, "-c", "ls /dev/pts/0 2>/dev/null; (exec 3<>/dev/tty) 2>/dev/null || echo not a tty")
    seat.sees(expected)
    assert seat.status() == 0


@pytest.mark.parametrize("redirection", ["</dev/null", "| cat", ">/dev/null", "2>/dev/null", ">/dev/null 2>&1"])
def test_with_a_stream_redirected_the_others_are_a_terminal_of_its_own(outside: Outside, redirection: str) -> None:
    run = " ".join(outside.words) + " run -c 'test -e /dev/pts/0 && echo its own >/dev/tty; exit 5'"
    seat = outside.seat("sh", "-c", f"{run} {redirection}")
    seat.sees("its own")
    assert seat.status() == (0 if "|" in redirection else 5)


@pytest.mark.parametrize("line", ["stockade run {} > out &", "(stockade run {} > out &)", "stockade run {} | cat &"])
def test_in_the_background_no_key_is_for_the_command(outside: Outside, line: str) -> None:
    """It is in another session, where the kernel would let it read the terminal whoever is in front."""
    seat = outside.shell()
    thief = "cat <&2 >stolen & touch up; while ! test -e stop; do sleep 0.01; done; kill $!; touch ended"
    seat.type(line.format(f"-c '{thief}'") + "\n")
    outside.appears("up")
    for word in ("one", "two", "three", "four", "five", "six"):
        seat.type(f"echo {word}-se''cret\n")
        seat.sees(f"{word}-secret")
    (outside.project / "stop").touch()
    outside.appears("ended")
    assert (outside.project / "stolen").read_text() == ""


def test_in_a_pipeline_keys_are_for_the_program_that_reads_them(outside: Outside) -> None:
    seat = outside.shell()
    other = "sh -c 'read x </dev/tty; echo \"other: $x\"; touch stop; cat'"
    seat.type(
        f"stockade run -c 'touch up; while ! test -e stop; do sleep 0.01; done; read x; echo ours: $x' | {other}\n"
    )
    outside.appears("up")
    seat.type("first\n")
    seat.sees("\nother: first\r\n")
    seat.type("second\n")
    seat.sees("\nours: second\r\n")
    seat.sees(r"ready\$ ")
    assert not seat.is_raw()


def test_a_passphrase_is_not_shown_in_a_pipeline(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -c 'stty -echo; echo now >&2; read x; echo $x >got' | cat\n")
    seat.sees("now\r+\n")
    seat.until(seat.is_raw)
    seat.type("geheim\n")
    assert "geheim" not in seat.sees(r"ready\$ ")
    assert (outside.project / "got").read_text() == "geheim\n"
    assert not seat.is_raw()


def test_ctrl_z_stops_a_whole_pipeline(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -c 'touch up; read x; echo got $x' | cat\n")
    outside.appears("up")
    seat.until(seat.is_raw)
    seat.type("\x1a")
    seat.sees(r"Stopped.*ready\$ ")
    seat.type("fg\n")
    seat.until(seat.is_raw)
    seat.type("again\n")
    seat.sees("got again")


def test_keys_typed_while_a_command_on_the_user_s_own_terminal_is_stopped_are_not_for_it(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -T -c 'setsid sh -c \"exec 4>stolen; touch up; exec cat <&2 >&4\" & wait'\n")
    outside.appears("up")
    seat.type("\x1a")
    seat.sees(r"Stopped.*ready\$ ")
    for word in ("one", "two", "three", "four", "five", "six"):
        seat.type(f"echo {word}-se''cret\n")
        seat.sees(f"{word}-secret")
    assert (outside.project / "stolen").read_text() == ""


@pytest.mark.parametrize("way", ["its time is over", "somebody ends it"])
def test_a_screen_that_takes_nothing_keeps_nobody_from_the_end(outside: Outside, way: str) -> None:
    limit = ("--timeout", "0.5") if way == "its time is over" else ()
    process = outside.start("run", "-t", *limit, "-c", "touch up; exec yes")
    outside.appears("up")
    time.sleep(0.5)  # until the pipe is full
    if not limit:
        process.terminate()
    status = process.wait(30)
    process.communicate()
    assert status == (137 if limit else 143)


def test_a_passphrase_is_not_shown(outside: Outside) -> None:
    seat = started(outside, "ssh-keygen", "-q", "-t", "ed25519", "-f", "key")
    for _ in range(2):
        seat.sees("passphrase[^:]*: ")
        seat.type("open-sesame\r")
    assert seat.status() == 0
    assert "sesame" not in seat.screen()
    assert (outside.project / "key.pub").exists()


def test_a_shell_has_job_control(outside: Outside) -> None:
    """Keys act on the job in front; the shell that we run stays."""
    seat = started(outside, "bash", "--norc", "--noediting", "-i")
    seat.sees(r"ready\$ ")
    seat.type("sleep 411\r")
    seat.until(lambda: _is_in_front("sleep 411"))
    seat.type("\x1a")
    seat.sees(r"Stopped +sleep 411.*ready\$ ")
    seat.type("fg\r")
    seat.until(lambda: _is_in_front("sleep 411"))
    seat.type("\x03")
    seat.sees(r"ready\$ ")
    seat.type("echo status=$?; exit 6\r")
    seat.sees("status=130")
    assert seat.status() == 6


def test_git_opens_an_editor(outside: Outside) -> None:
    outside.environment |= {"GIT_EDITOR": "sh -c 'read word </dev/tty; echo $word >$0'", "GIT_PAGER": "cat"}
    init = "git init -q w && cd w && git -c user.name=n -c user.email=e commit -q --allow-empty && git log --format=%s"
    seat = started(outside, "-c", init)
    seat.type("from-the-editor\r")
    seat.sees(r"from-the-editor\r\n.*from-the-editor\r\n")
    assert seat.status() == 0


def test_a_whole_job_of_the_user_s_shell_is_suspended(outside: Outside) -> None:
    """A script that runs us is stopped with us, and goes on with us."""
    seat = outside.shell()
    (outside.project / "script").write_text("stockade run -c 'echo up; read word; echo got $word'; echo after\n")
    seat.type("sh script\n")
    seat.sees(r"\nup\r\n")
    seat.until(seat.is_raw)
    seat.type("\x1a")
    seat.sees(r"Stopped +sh script.*ready\$ ")
    seat.type("fg\n")
    seat.until(seat.is_raw)
    seat.type("again\r")
    seat.sees(r"got again\r\n.*after\r\n.*ready\$ ")


def test_a_program_that_stops_itself_gives_the_shell_back(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -c 'stty -echo raw; kill -STOP $$; stty sane; echo went on'\n")
    seat.sees(r"Stopped.*ready\$ ")
    assert not seat.is_raw()
    seat.type("fg\n")
    seat.sees(r"\nwent on")
    seat.sees(r"ready\$ ")


def test_where_nobody_could_continue_it_a_command_goes_on(outside: Outside) -> None:
    """A terminal without a shell, such as a window of tmux for one command: the kernel stops nobody there."""
    seat = started(outside, "-c", "trap 'echo continued' CONT; echo up; read word; echo got $word")
    seat.sees("up")
    seat.until(seat.is_raw)
    seat.type("\x1a")
    seat.sees("continued")
    seat.type("on\r")
    seat.sees("got on")
    assert seat.status() == 0


def test_in_the_background_it_leaves_the_terminal_alone_until_it_is_in_front(outside: Outside) -> None:
    seat = outside.shell()
    before = seat.modes()
    seat.type("stockade run -c 'echo out; read word; echo got $word' &\n")
    seat.sees(r"\nout|ready\$ out")
    assert seat.modes() == before
    seat.type("echo still the shell\n")
    seat.sees(r"\nstill the shell")
    seat.type("fg\n")
    seat.sees("stockade run")
    seat.until(seat.is_raw)
    seat.type("front\r")
    seat.sees("got front")
    seat.sees(r"ready\$ ")


def test_continued_in_the_background_it_goes_on_there(outside: Outside) -> None:
    seat = outside.shell()
    seat.type("stockade run -c 'while ! test -e go; do sleep 0.01; done; echo ended >ended'\n")
    seat.until(seat.is_raw)
    seat.type("\x1a")
    seat.sees(r"Stopped.*ready\$ ")
    seat.type("bg\n")
    seat.sees(r"ready\$ ")
    (outside.project / "go").touch()
    outside.appears("ended")
    seat.type("wait; echo all\n")
    seat.sees(r"\nall\r\n")
    assert not seat.is_raw()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_us_ends_the_command_and_the_modes_are_back(outside: Outside, number: signal.Signals) -> None:
    before = outside.seat("true").modes()
    seat = started(outside, "-c", "stty raw -echo; touch up; exec sleep 3602")
    outside.appears("up")
    seat.process.send_signal(number)
    assert seat.status() == 128 + number
    assert seat.modes() == before


def test_the_last_words_are_shown(outside: Outside) -> None:
    """Much is said just before the end, and read late."""
    for _ in range(5):
        seat = started(outside, "-c", "seq 40000; echo last words")
        seat.sees("last words")
        assert seat.status() == 0


def test_bytes_pass_as_they_are(outside: Outside) -> None:
    """Of all that is said, and of a question to the terminal and its answer."""
    line = "stty raw -echo; printf '\\033[6n'; head -c 6 | od -An -c; printf '\\000\\001\\200\\377\\033[0m'; stty sane"
    seat = started(outside, "-c", line)
    seat.sees(r"\x1b\[6n")
    seat.type("\x1b[9;9R")
    seat.sees(r"033 +\[ +9 +; +9 +R")
    seat.status()
    assert seat.seen.endswith(b"\x00\x01\x80\xff\x1b[0m")


def test_a_screen_that_does_not_wait_loses_nothing(outside: Outside) -> None:
    words = " ".join(outside.words)
    lazy = "import os, sys; os.set_blocking(1, False); os.execvp(sys.argv[1], sys.argv[1:])"
    seat = outside.seat("sh", "-c", f"python3 -c '{lazy}' {words} run -c 'seq 30000; echo end'")
    text = seat.sees(r"\nend\r\n")
    assert text.split()[:-1] == [str(number) for number in range(1, 30001)]
    assert seat.status() == 0


def test_a_storm_of_sizes_ends_with_the_last(outside: Outside) -> None:
    seat = started(outside, "-c", "echo up; while ! test -e stop; do sleep 0.01; done; sleep 0.3; stty size")
    seat.sees("up")
    for number in range(300):
        seat.resize(10 + number % 50, 20 + number)
    seat.resize(33, 77)
    (outside.project / "stop").touch()
    seat.sees("33 77")
    assert seat.status() == 0


def test_the_size_is_there_from_the_first_moment(outside: Outside) -> None:
    for _ in range(3):
        seat = outside.seat(*outside.words, "run", "stty", "size", size=(19, 61))
        seat.sees("19 61")
        assert seat.status() == 0


def _is_in_front(command: str) -> bool:
    listed = subprocess.run(["ps", "ax", "-o", "stat=,args="], capture_output=True, text=True, check=True).stdout
    return any("+" in line.split()[0] and line.endswith(f" {command}") for line in listed.splitlines())


@pytest.mark.parametrize("key", ["\x03", "\x1c"])
def test_a_key_is_never_lost_while_the_command_comes_up(outside: Outside, key: str) -> None:
    """Whoever gets it, at whatever moment, Python itself or a helper or the command: that is the end."""
    for wait in range(12):
        seat = outside.seat("sh", "-c", f"echo up; exec {' '.join(outside.words)} run sleep 3603")
        seat.sees("up")
        time.sleep(wait / 40)
        seat.type(key)
        assert seat.status() != 0
        assert not seat.is_raw()
