from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here, Outside

NO_PROGRAM = """\
stockade: the command could not be started: exec: no-such-program: No such file or directory
  hint: check the name of the program and the working directory
"""
NOT_RUNNABLE = """\
stockade: the command could not be started: exec: /etc/passwd: Permission denied
  hint: check that the program can be run and the directory can be entered, under this policy
"""
NO_DIRECTORY = """\
stockade: cannot work in 'nowhere': No such file or directory
  hint: give --directory a directory that exists
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(("-c", "echo out; echo err >&2"), (0, "out\n", "err\n"), id="a line"),
        pytest.param(("-c", "exit 3"), (3, "", ""), id="the command's status"),
        pytest.param(("-c", "kill -TERM $$"), (143, "", ""), id="a signal"),
        pytest.param(("-c", "kill -SEGV $$"), (139, "", ""), id="a signal with a core"),
        pytest.param(("-c", "no-such-program 2>/dev/null"), (127, "", ""), id="a shell that finds no program"),
        pytest.param(("--", "printf", "%s,", "a  b", "$HOME"), (0, "a  b,$HOME,", ""), id="words"),
        pytest.param(
            ("--", "echo", "-c", "--help", "--", "-t"), (0, "-c --help -- -t\n", ""), id="flags of the command"
        ),
        pytest.param(("echo", "-c", "--help", "--", "-t"), (0, "-c --help -- -t\n", ""), id="without --"),
        pytest.param(("--timeout", "60", "printf", "%s", "-l"), (0, "-l", ""), id="options of ours before it"),
        pytest.param(("-C.", "--timeout=60", "basename", "a/b"), (0, "b\n", ""), id="options with their values"),
        pytest.param(
            ("--", "no-such-program"),
            (127, "", NO_PROGRAM),
            id="no such program",
        ),
        pytest.param(
            ("--", "/etc/passwd"),
            (126, "", NOT_RUNNABLE),
            id="no program",
        ),
        pytest.param(
            ("-C", "nowhere", "--", "true"),
            (125, "", NO_DIRECTORY),
            id="no such directory",
        ),
        pytest.param(
            ("--timeout", "0.3", "-c", "sleep 60"),
            (137, "", "stockade: warning: the command was ended: it reached the limit of time\n"),
            id="time is over",
        ),
        pytest.param(("-t", "--", "tty"), (0, "/dev/pts/0\r\n", ""), id="a terminal of its own"),
        pytest.param(
            ("-t", "--timeout", "0.3", "-c", "sleep 60"),
            (137, "", "stockade: warning: the command was ended: it reached the limit of time\n"),
            id="time is over on a terminal",
        ),
        pytest.param(
            ("-t", "--", "no-such-program"),
            (127, "", NO_PROGRAM),
            id="no such program on a terminal",
        ),
    ],
)
def test_status_and_output(outside: Outside, arguments: tuple[str, ...], expected: tuple[int, str, str]) -> None:
    assert outside.run("run", *arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        pytest.param((), "give one command", "for example: stockade run npm test", id="nothing"),
        pytest.param(("-c", "a", "--", "b"), "give one command", "for example: stockade run", id="both"),
        pytest.param(("-c", " "), "the command line is empty", "for example", id="an empty line"),
        pytest.param(
            ("--tiemout", "3", "--", "x"), "unknown option: --tiemout", "did you mean --timeout?", id="a slip"
        ),
        pytest.param(
            ("--tiemout", "3", "npm"), "unknown option: --tiemout", "did you mean --timeout?", id="a slip without --"
        ),
        pytest.param(("-c", "a", "b"), "give one command", "for example: stockade run", id="a line and words"),
        pytest.param(("-t", "-T", "x"), "-t gives the command a terminal", "give one of them", id="both terminals"),
        pytest.param(("--memory", "lots", "--", "x"), "not a size: 'lots'", "512M", id="a bad size"),
        pytest.param(
            ("--processes", "0", "--", "x"), "processes must be a whole number above 0", "leave it out", id="no process"
        ),
        pytest.param(
            ("--timeout", "soon", "--", "x"), "argument --timeout: invalid float value: 'soon'", "", id="a bad time"
        ),
        pytest.param(("--timeout", "nan", "x"), "--timeout must be more than 0 seconds", "leave it out", id="no time"),
        pytest.param(("--timeout", "-1", "x"), "--timeout must be more than 0 seconds", "leave it out", id="less"),
        pytest.param(("", "x"), "the command has no name", "for example", id="no name"),
    ],
)
def test_mistakes_on_the_command_line(here: Here, arguments: tuple[str, ...], message: str, hint: str) -> None:
    result = here("run", *arguments)
    assert (result.status, result.out) == (125, "")
    first, second = result.err.splitlines()
    assert message in first
    assert hint in second


@pytest.mark.parametrize("flags", [pytest.param((), id="streams"), pytest.param(("-t",), id="terminal")])
def test_much_output_arrives_whole(outside: Outside, flags: tuple[str, ...]) -> None:
    status, out, err = outside.run("run", *flags, "-c", "seq 300000")
    assert (status, out.split() == [str(number) for number in range(1, 300001)], err) == (0, True, "")


def test_much_input_arrives_whole(outside: Outside) -> None:
    given = "".join(f"{number}\n" for number in range(200000))
    assert outside.run("run", "-c", "wc -lc", given=given)[1].split() == ["200000", str(len(given))]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("line\n", "line\r\nline\r\n", id="whole lines"),
        pytest.param("part", "partpart", id="the end within a line"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_input_that_ends_is_a_terminal_s_end_of_input(outside: Outside, given: str, expected: str) -> None:
    assert outside.run("run", "-t", "--", "cat", given=given) == (0, expected, "")


@pytest.mark.parametrize(
    ("redirection", "line", "expected"),
    [
        pytest.param("<&-", "cat", (1, "", "cat: -: Bad file descriptor"), id="no input"),
        pytest.param(">&-", "echo x", (1, "", "write error: Bad file descriptor"), id="no output"),
        pytest.param("2>&-", "echo x; echo y >&2", (1, "x\n", ""), id="no errors"),
        pytest.param("<&- >&- 2>&-", "exit 4", (4, "", ""), id="nothing at all"),
        pytest.param(">/dev/full", "echo x", (1, "", "write error: No space left on device"), id="a full disk"),
    ],
)
def test_closed_streams_fail_as_they_do_outside(
    outside: Outside, redirection: str, line: str, expected: tuple[int, str, str]
) -> None:
    words = [*outside.words, "run", "-c", line]
    ran = subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", *words],
        cwd=outside.project,
        env=outside.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    status, out, err = expected
    assert (ran.returncode, ran.stdout) == (status, out)
    assert err in ran.stderr


@pytest.mark.parametrize(
    ("flags", "expected"),
    [pytest.param((), 141, id="a pipe breaks"), pytest.param(("-t",), 129, id="a terminal hangs up")],
)
def test_a_reader_that_leaves_ends_the_command(outside: Outside, flags: tuple[str, ...], expected: int) -> None:
    reader, writer = os.pipe()
    process = outside.start("run", *flags, "--", "yes", stdout=writer)
    os.close(writer)
    assert os.read(reader, 1) == b"y"
    os.close(reader)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (expected, b"")


def test_without_a_home(outside: Outside) -> None:
    outside.environment = {"PATH": os.environ["PATH"]}
    assert outside.run("run", "-c", "echo $SANDBOX_RUNTIME") == (0, "1\n", "")


def test_the_directory_that_was_named_is_the_project(outside: Outside) -> None:
    other = outside.project.parent / "other"
    other.mkdir()
    assert outside.run("run", "-C", str(other), "-c", "pwd; touch made") == (0, f"{other}\n", "")
    assert (other / "made").exists()


def test_debug_tells_the_time(outside: Outside) -> None:
    status, out, err = outside.run("run", "-d", "--", "true")
    assert (status, out) == (0, "")
    assert err.endswith(" s of processor time\n")


def test_settings_hold_whatever_enabled_says(outside: Outside, here: Here) -> None:
    settings: dict[str, Any] = {"sandbox": {"enabled": False, "filesystem": {"denyRead": [str(here.home / "secret")]}}}
    here.user(settings)
    (here.home / "secret").write_text("secret")
    status, out, err = outside.run("run", "--", "cat", str(here.home / "secret"))
    assert (status, out) == (1, "")
    assert err.endswith("Permission denied\n")
