from __future__ import annotations

import pytest

from stockade.tool.loose_word import ANY, LooseWord
from stockade.tool.shell_input import is_input, may_be_input


@pytest.mark.parametrize(
    "path",
    [
        *(
            "-",
            "/dev/stdin",
            "/dev//stdin",
            "//dev/stdin",
            "///dev/./stdin",
            "/dev/fd/../stdin",
            "/dev/fd/0",
            "/dev/fd/12",
        ),
        *("/proc/self/fd/0", "/proc/self/root/dev/stdin", "/proc/self/environ", "/proc/1/cmdline", "./stdin", "0"),
        *("./63", "environ", "/dev/tty", "/x/../dev/fd/3", "/dev/pts/0"),
    ],
)
def test_what_holds_words_of_the_line(path: str) -> None:
    assert is_input(path)
    assert may_be_input(LooseWord(path, path))


@pytest.mark.parametrize("path", ["a.sh", "./environ.sh", "/dev/null", "devstdin", "a/b0", "", "/etc/profile"])
def test_what_is_a_script(path: str) -> None:
    assert not is_input(path)


def test_a_word_that_only_the_shell_knows_may_be_input() -> None:
    assert may_be_input(LooseWord('"$x"', ANY))
    assert may_be_input(LooseWord("/dev/std?n", f"/dev/std{ANY}n", is_glob=True))
    assert may_be_input(LooseWord("<(a)", ANY))
    assert not may_be_input(LooseWord('"$x/a.sh"', f"{ANY}/a.sh"))
