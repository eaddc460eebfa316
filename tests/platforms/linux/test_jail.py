from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError, UnavailableError
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Outcome = Callable[..., tuple[int, str, str]]

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def test_a_long_environment_arrives(jail: Jail, outcome: Outcome) -> None:
    long = {f"NAME{i}": "x" * 100_000 for i in range(10)}
    code, out, err = outcome(jail, "sh", "-c", "env | wc -c", environment=ENVIRONMENT | long)
    assert (code, int(out) > 1_000_000, err) == (0, True, "")


def test_a_plan_that_cannot_be_built_is_refused_with_its_path(tmp_path: Path) -> None:
    jail = Jail.start()
    jail.build(JailSpec((Mount("writable", str(tmp_path / "absent")),)))
    with pytest.raises(UnavailableError) as caught:
        jail.wait_ready()
    assert caught.value.message == f"cannot build the walls: mount: {tmp_path}/absent: {os.strerror(errno.ENOENT)}"


def test_a_link_is_never_followed_while_building(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    jail = Jail.start()
    jail.build(JailSpec((Mount("writable", str(tmp_path / "link" / "x")),)))
    with pytest.raises(UnavailableError, match="symbolic links"):
        jail.wait_ready()


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"A": "b\0C=d"}, id="a zero byte in a value"),
        pytest.param({"A\0": "b"}, id="a zero byte in a name"),
        pytest.param({"A=B": "c"}, id="an equals sign in a name"),
        pytest.param({"": "c"}, id="no name"),
    ],
)
def test_what_cannot_be_a_variable_is_refused(jail: Jail, environment: dict[str, str]) -> None:
    with pytest.raises(StockadeError, match="cannot be a variable of the environment"):
        jail.run(Request(("true",), ENVIRONMENT | environment, "/"), (0, 1, 2))


def test_a_fork_of_the_owner_keeps_nothing_open(tmp_path: Path) -> None:
    """Programs fork while a jail is open; whoever has a copy of its channel must not keep it from being closed."""
    jail = Jail.start()
    jail.build(JailSpec((Mount("writable", str(tmp_path.resolve())),)))
    jail.wait_ready()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(writer)
            os.read(reader, 1)  # until the parent is done
            jail.close()  # lets go of copies, and ends nothing
        finally:
            os._exit(0)
    jail.close()
    os.close(writer)
    assert os.waitpid(child, 0)[1] == 0
    os.close(reader)


def test_a_jail_is_not_closed_by_a_fork_of_its_owner(tmp_path: Path) -> None:
    jail = Jail.start()
    jail.build(JailSpec((Mount("writable", str(tmp_path.resolve())),)))
    jail.wait_ready()
    child = os.fork()
    if child == 0:
        try:
            jail.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    try:
        jail.run(Request(("/bin/true",), {}, "/"), (0, 1, 2))
        answer = jail.receive()
        assert isinstance(answer, Ended)
        assert answer.status == 0
    finally:
        jail.close()


def test_when_it_is_finished_no_command_lives_and_closing_it_leaves_no_child(tmp_path: Path) -> None:
    jail = Jail.start()
    jail.build(JailSpec((Mount("writable", str(tmp_path.resolve())),)))
    jail.wait_ready()
    reader, writer = os.pipe()
    jail.run(Request(("/bin/sleep", "60"), {}, "/"), (0, writer, 2))
    os.close(writer)
    jail.finish()
    assert os.read(reader, 1) == b""  # nobody has the other end any more
    os.close(reader)
    jail.close()
    jail.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(jail.pid, os.WNOHANG)


def test_a_jail_that_was_never_ready_is_closed_when_it_is_finished() -> None:
    jail = Jail.start()
    jail.finish()
    with pytest.raises(ChildProcessError):
        os.waitpid(jail.pid, os.WNOHANG)
