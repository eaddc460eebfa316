from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from stockade.tool.directory import WorkingDirectory, may_move, read_report, roots, shell_words

if TYPE_CHECKING:
    from pathlib import Path

    from tests.tool.conftest import Yard

SHELLS = [name for name in ("bash", "dash", "sh", "zsh") if shutil.which(name)]

#: Line, where it ends below the directory that it begins in, its status, what it prints.
LINES = {
    "nothing changes": ("echo x", "", 0, "x\n"),
    "cd": ("cd sub", "sub", 0, ""),
    "cd and exit": ("cd sub; exit 3", "sub", 3, ""),
    "cd in a subshell": ("(cd sub)", "", 0, ""),
    "cd and a failure": ("cd sub && false", "sub", 1, ""),
    "errors end it": ("set -e; cd sub; false; cd ..", "sub", 1, ""),
    "no clobbering": ("set -C; cd sub", "sub", 0, ""),
    "no arguments": ('cd sub; echo "$#" "$*"', "sub", 0, "0 \n"),
    "quotes": ("""echo 'a "b" $c'""", "", 0, 'a "b" $c\n'),
    "several lines": ("cd sub\necho x # comment", "sub", 0, "x\n"),
    "a here-document": ("cat <<E\n$((1+1))\nE", "", 0, "2\n"),
    "through a link": ("cd link", "sub", 0, ""),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("line", "below", "status", "printed"), LINES.values(), ids=LINES)
def test_every_shell_reports_where_it_ends(
    tmp_path: Path, shell: str, line: str, below: str, status: int, printed: str
) -> None:
    start = tmp_path.resolve() / "a 'b' \"c\" $d `e` \\f"
    (start / "sub").mkdir(parents=True)
    (start / "link").symlink_to("sub")
    report = f"{start}/report"
    words = shell_words(str(shutil.which(shell)), line, report)
    ran = subprocess.run(words, cwd=start, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (status, printed, "")
    assert read_report(report) == (str(start / below) if may_move(line) else None)
    assert not os.path.lexists(report)


MOVING = {
    "cd": "cd x",
    "in a list": "ls && cd x",
    "in a pipe": "cd x | ls",
    "by a variable": "$x y",
    "by another builtin": "builtin cd x",
    "by a file": ". ./x",
    "by a text": "eval 'cd x'",
    "in a function": "f() { cd x; }; f",
    "in braces": "{ cd x; }",
    "in a loop": "for x in a; do cd $x; done",
    "pushd": "pushd x",
}
STAYING = {
    "a command": "make all",
    "several": "make && git commit -m 'cd x'; ls | wc",
    "an argument": "echo cd x",
    "an assignment": "A=cd",
    "nothing": "",
}


@pytest.mark.parametrize("line", MOVING.values(), ids=MOVING)
def test_what_may_move(line: str) -> None:
    assert may_move(line)


@pytest.mark.parametrize("line", STAYING.values(), ids=STAYING)
def test_what_cannot_move_is_run_as_it_stands(line: str) -> None:
    assert not may_move(line)
    assert shell_words("/bin/bash", line, "/r") == ("/bin/bash", "-c", line)


def test_a_wrong_line_is_the_shells_affair(tmp_path: Path) -> None:
    words = shell_words(str(shutil.which("bash")), "echo ( x", f"{tmp_path}/report")
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "`echo ( x'" in ran.stderr


FORGED = {
    "not absolute": b"x\n",
    "no directory": b"/dev/null\n",
    "not there": b"/nonexistent-directory\n",
    "empty": b"",
    "NUL": b"/\0\n",
    "too long": b"/" * 5000,
}


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_a_report_that_names_no_directory_is_not_believed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "report").write_bytes(content)
    assert read_report(str(tmp_path / "report")) is None
    assert [*tmp_path.iterdir()] == []


def test_a_report_in_which_links_stand_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    for text in (f"{tmp_path}/link", f"{tmp_path}/.."):
        (tmp_path / "report").write_text(f"{text}\n")
        assert read_report(str(tmp_path / "report")) is None


def test_a_report_tells_nothing_about_a_hidden_place(yard: Yard) -> None:
    hidden = yard.outside / "hidden"
    hidden.mkdir()
    policy = yard.policy(filesystem__denyRead=(str(yard.outside),))
    directory = WorkingDirectory(policy.cwd)
    assert (directory.end(policy.cwd, str(hidden), policy, ""), directory.path) == ((), policy.cwd)


def test_a_report_that_is_no_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("/\n")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo", "missing"):
        assert read_report(str(tmp_path / name)) is None
    assert (tmp_path / "target").exists()


def test_the_directory_moves_and_says_when_it_leaves(yard: Yard) -> None:
    policy = yard.policy(filesystem__allowWrite=(str(yard.outside / "open"),))
    directory = WorkingDirectory(policy.cwd)
    sub, outside, opened = str(yard.project / "sub"), str(yard.outside), str(yard.outside / "open")
    for path in (sub, opened):
        os.mkdir(path)
    assert directory.begin(policy) == (policy.cwd, ())
    assert directory.end(policy.cwd, sub, policy, "") == ()
    assert directory.path == sub
    assert directory.end(sub, None, policy, "") == ()
    assert directory.end(sub, opened, policy, "") == ()
    note = f"the working directory is now {outside}, outside the writable places of this session"
    assert directory.end(opened, outside, policy, "") == (note,)
    assert directory.end(outside, outside, policy, "") == ()
    assert directory.end(opened, f"{outside}/t/x", policy, f"{outside}/t") == ()


def test_a_call_that_moved_nothing_does_not_undo_anothers_move(yard: Yard) -> None:
    policy = yard.policy()
    directory = WorkingDirectory(policy.cwd)
    directory.end(policy.cwd, f"{policy.cwd}/.git", policy, "")
    directory.end(policy.cwd, policy.cwd, policy, "")
    assert directory.path == f"{policy.cwd}/.git"


def test_a_directory_in_which_nothing_starts_is_left(yard: Yard) -> None:
    policy = yard.policy()
    directory = WorkingDirectory("/")
    assert directory.leave(policy) == (f"the working directory is {policy.cwd} again",)
    assert (directory.leave(policy), directory.path) == ((), policy.cwd)


def test_a_directory_that_is_gone_is_replaced(yard: Yard) -> None:
    policy = yard.policy()
    directory = WorkingDirectory(f"{policy.cwd}/gone")
    path, notes = directory.begin(policy)
    assert path == policy.cwd
    assert notes == (f"the working directory {policy.cwd}/gone is gone; back to {policy.cwd}",)
    assert directory.begin(policy) == (policy.cwd, ())


def test_roots_are_places_without_links(yard: Yard) -> None:
    (yard.project / "link").symlink_to(yard.outside)
    policy = yard.policy(filesystem__allowWrite=("link", "*.log"))
    assert roots(policy, "/tmp/x") == (str(yard.project), str(yard.outside), "/tmp/x")
