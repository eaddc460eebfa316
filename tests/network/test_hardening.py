from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import landlock

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, resource, socket, sys
from stockade.network.hardening import harden, raise_file_limit
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
raise_file_limit()
print("limit", resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64)
enforced = harden() if sys.argv[1] == "harden" else frozenset()
print("enforced", *sorted(enforced))
def attempt(name, deed):
    try:
        deed()
        print(name, "done")
    except OSError as error:
        print(name, type(error).__name__)
def write():
    with open("new", "w") as file:
        file.write("x")
def append():
    with open("old", "a") as file:
        file.write("x")
attempt("write", write)
attempt("append", append)
attempt("remove", lambda: os.remove("old"))
attempt("directory", lambda: os.mkdir("made"))
attempt("truncate", lambda: os.truncate("full", 0))
attempt("run", lambda: os.posix_spawn("/bin/true", ["true"], {}))
attempt("signal", lambda: os.kill(os.getppid(), 0))
attempt("listen", lambda: socket.create_server(("127.0.0.1", 0)).close())
attempt("read", lambda: open("full").read())
attempt("connect", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("127.0.0.1", 9)))
"""


def ran(directory: Path, how: str) -> dict[str, str]:
    (directory / "old").write_text("")
    (directory / "full").write_text("full")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], cwd=directory, capture_output=True, text=True, check=True
    )
    return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())


def test_without_it_all_of_that_can_be_done(tmp_path: Path) -> None:
    found = ran(tmp_path, "not")
    assert {name for name, outcome in found.items() if outcome == "done"} == set(found) - {"limit", "enforced"}
    assert found["limit"] == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")
def test_what_is_given_up_cannot_be_done(tmp_path: Path) -> None:
    found = ran(tmp_path, "harden")
    enforced = set(found["enforced"].split())
    assert {"core", "size", "memory", "privileges"} <= enforced
    if not landlock.version():
        pytest.skip("this kernel has no Landlock")
    assert {"files", "programs"} <= enforced
    assert {name: found[name] for name in ("write", "append", "remove", "directory", "run", "read", "connect")} == {
        "write": "PermissionError",
        "append": "PermissionError",
        "remove": "PermissionError",
        "directory": "PermissionError",
        "run": "PermissionError",
        "read": "done",
        "connect": "done",
    }
    assert sorted(os.listdir(tmp_path)) == ["full", "old"]
    assert ((found["signal"] == "done"), (found["listen"] == "done")) == (
        "signals" not in enforced,
        "listening" not in enforced,
    )


@pytest.mark.skipif(sys.platform == "linux", reason="Linux has more")
def test_elsewhere_no_file_grows(tmp_path: Path) -> None:
    found = ran(tmp_path, "harden")
    assert (found["append"], found["read"]) == ("OSError", "done")
