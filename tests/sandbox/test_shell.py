from __future__ import annotations

import pytest

from stockade.errors import UnavailableError
from stockade.sandbox.shell import argv, choose

BOTH = {"bash": "/bin/bash", "sh": "/bin/sh"}


@pytest.mark.parametrize(
    ("own", "there", "expected"),
    [
        pytest.param("/bin/bash", {}, "/bin/bash", id="SHELL is bash"),
        pytest.param("/bin/sh", BOTH, "/bin/bash", id="SHELL is neither bash nor zsh"),
        pytest.param("/nonexistent/zsh", BOTH, "/bin/bash", id="SHELL does not exist"),
        pytest.param("bash", BOTH, "/bin/bash", id="SHELL is no path"),
        pytest.param("", BOTH, "/bin/bash", id="no SHELL"),
        pytest.param("", {"sh": "/bin/sh"}, "/bin/sh", id="no bash"),
    ],
)
def test_choice(own: str, there: dict[str, str], expected: str) -> None:
    assert choose({"SHELL": own}, there.get) == expected


def test_no_shell_at_all() -> None:
    with pytest.raises(UnavailableError):
        choose({}, lambda _name: None)


def test_words_need_no_shell() -> None:
    assert argv(["a", "b c"], {}) == ("a", "b c")
    assert argv("a | b", {"SHELL": "/bin/bash"}) == ("/bin/bash", "-c", "a | b")
