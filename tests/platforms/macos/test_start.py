from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stockade.platforms.macos import start
from stockade.platforms.macos.start import problem_with, words_of

ORDER: dict[str, Any] = {
    "sandbox": "/usr/bin/sandbox-exec",
    "profile": "(version 1)",
    "argv": ["sh", "-c", "true"],
    "environment": {"PATH": "/usr/bin:/bin"},
    "directory": "/",
    "limits": [],
    "terminal": False,
}


def test_the_words() -> None:
    assert words_of(ORDER) == ["/usr/bin/sandbox-exec", "-p", "(version 1)", "sh", "-c", "true"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({}, ("", 0), id="none"),
        pytest.param({"argv": ["/bin/sh"]}, ("", 0), id="by-path"),
        pytest.param({"argv": ["bin/sh"]}, ("", 0), id="relative"),
        pytest.param({"environment": {}}, ("", 0), id="no-path"),
        pytest.param({"directory": "/no/such"}, ("cannot enter /no/such", errno.ENOENT), id="directory"),
        pytest.param({"argv": ["no-such"]}, ("no-such: no such program", errno.ENOENT), id="program"),
        pytest.param({"argv": ["/etc/passwd"]}, ("/etc/passwd: not to be executed", errno.EACCES), id="no-program"),
    ],
)
def test_what_can_be_known_before(changes: dict[str, Any], problem: tuple[str, int]) -> None:
    assert problem_with(ORDER | changes) == problem


def test_becoming_a_command(tmp_path: Path, fake_sandbox: str) -> None:
    order = ORDER | {
        "sandbox": fake_sandbox,
        "profile": "(deny default)",
        "argv": ["sh", "-c", "pwd; ulimit -n; echo $A"],
        "environment": {"PATH": os.environ["PATH"], "A": "b"},
        "directory": str(tmp_path),
        "limits": [[resource.RLIMIT_NOFILE, 64]],
    }
    program = f"import sys, json; sys.path += {sys.path!r}; from stockade.platforms.macos.start import become; "
    words = [sys.executable, "-c", f"{program}become(json.loads(sys.argv[1]))", json.dumps(order)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{tmp_path}\n64\nb\n"
    assert Path(fake_sandbox).with_name("profiles").read_text() == "(deny default)"
    assert start.SANDBOX_EXEC.startswith("/")
