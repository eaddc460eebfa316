from __future__ import annotations

import errno
import os
import select
import socket
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.linux import session
from stockade.platforms.linux.jail import Jail
from stockade.platforms.linux.mount import JailSpec, Mount
from stockade.platforms.linux.porter import Porter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 20
Shared: TypeAlias = tuple[int, ...]
HOSTS = {"4": "127.0.0.1", "6": "::1"}


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Shared]:
    jail = Jail.start()
    jail.build(JailSpec((Mount("writable", str(tmp_path.resolve())),)))
    jail.wait_ready()
    yield jail.shared
    jail.close()


@pytest.fixture
def porter(shared: Shared) -> Iterator[Porter]:
    made = Porter.start(shared)
    yield made
    made.close()


def ask(end: int, request: bytes) -> tuple[bytes, list[int]]:
    asking = socket.socket(fileno=os.dup(end))
    with asking:
        asking.settimeout(SECONDS)
        asking.send(request)
        answer, descriptors, _, _ = socket.recv_fds(asking, 16, 4)
        return answer, descriptors


def connects(family: str, end: int, port: int) -> str:
    """Tell what a socket of the porter's reads from a port of localhost, or the error."""
    answer, (descriptor,) = ask(end, family.encode())
    assert answer == family.encode()
    assert not os.get_blocking(descriptor)
    with socket.socket(fileno=descriptor) as client:
        client.settimeout(SECONDS)
        return read(client, family, port)


def read(client: socket.socket, family: str, port: int) -> str:
    try:
        client.connect((HOSTS[family], port))
        return client.recv(100).decode()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def in_session(shared: Shared, action: Callable[[int], None]) -> tuple[int, int]:
    """Run an action in a process that is root of the session; return that, and where the action writes to."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            session.enter(shared)
            action(writing)
        finally:
            os._exit(0)
    os.close(writing)
    return pid, reading


def greet(family: str, word: str) -> Callable[[int], None]:
    """Serve one connection on a port of localhost, whose number is written first."""

    def serve(told: int) -> None:
        kind = socket.AF_INET if family == "4" else socket.AF_INET6
        with socket.create_server((HOSTS[family], 0), family=kind) as server:
            server.settimeout(SECONDS)
            os.write(told, b"%d" % server.getsockname()[1])
            connection, _ = server.accept()
            connection.send(word.encode())

    return serve


@pytest.mark.parametrize("family", ["4", "6"])
def test_its_sockets_reach_the_session_and_nothing_of_the_host(shared: Shared, porter: Porter, family: str) -> None:
    end = porter.take()
    child, told = in_session(shared, greet(family, "inside"))
    inside = int(os.read(told, 10))
    kind = socket.AF_INET if family == "4" else socket.AF_INET6
    with socket.create_server((HOSTS[family], 0), family=kind) as server:
        outside = server.getsockname()[1]
        if outside == inside:
            pytest.skip("the host and the session happen to have the same port")
        assert connects(family, end, outside) == "ECONNREFUSED"
        with socket.socket(kind) as control:
            control.connect((HOSTS[family], outside))
    assert connects(family, end, inside) == "inside"
    os.waitpid(child, 0)
    os.close(told)
    os.close(end)


def test_what_is_no_request_is_refused_and_the_next_is_answered(porter: Porter) -> None:
    end = porter.take()
    try:
        for strange in (b"5", b"44", b"x" * 100):
            assert ask(end, strange) == (b"!%d" % errno.EINVAL, [])
        answer, descriptors = ask(end, b"4")
        assert (answer, len(descriptors)) == (b"4", 1)
        os.close(descriptors[0])
    finally:
        os.close(end)


def test_it_ends_when_nobody_can_ask(porter: Porter) -> None:
    process = os.pidfd_open(porter.pid)
    end = porter.take()
    assert select.select([process], [], [], 0)[0] == []
    os.close(end)
    assert select.select([process], [], [], SECONDS)[0] == [process]
    os.close(process)


@pytest.mark.parametrize("taken", [pytest.param(True, id="in-use"), pytest.param(False, id="never-used")])
def test_closing_ends_and_reaps_it(porter: Porter, *, taken: bool) -> None:
    end = porter.take() if taken else -1
    porter.close()
    porter.close()
    with pytest.raises(ChildProcessError):
        os.waitpid(porter.pid, 0)
    if taken:
        os.close(end)


def test_its_socket_is_given_away_once(porter: Porter) -> None:
    os.close(porter.take())
    with pytest.raises(UnavailableError, match="given away"):
        porter.take()


def status(pid: int, *names: str) -> list[str]:
    lines = (line.split(":") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return [line[1].strip() for line in lines if line[0] in names]


def test_it_has_no_rights_inside_and_cannot_be_looked_into_from_there(shared: Shared, porter: Porter) -> None:
    end = porter.take()
    assert {int(found, 16) for found in status(porter.pid, "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert status(porter.pid, "NoNewPrivs") == ["1"]

    def look(told: int) -> None:
        for pid in (os.getpid(), porter.pid):
            try:
                os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))
                os.write(told, b"open ")
            except OSError as error:
                os.write(told, errno.errorcode[error.errno or 0].encode())

    child, told = in_session(shared, look)
    os.waitpid(child, 0)
    assert os.read(told, 100) == b"open EACCES"
    os.close(told)
    os.close(end)


@pytest.mark.skipif(os.geteuid() != 0, reason="it cannot be looked into but by root")
def test_it_holds_nothing_of_the_host(shared: Shared, tmp_path: Path) -> None:
    leaked = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    porter = Porter.start(shared)
    end = porter.take()
    try:
        held = (os.readlink(f"/proc/{porter.pid}/fd/{name}") for name in os.listdir(f"/proc/{porter.pid}/fd"))
        assert sorted(place.partition(":")[0] for place in held) == [*["/dev/null"] * 3, "socket"]
    finally:
        porter.close()
        os.close(end)
        os.close(leaked)


@pytest.mark.parametrize(
    ("count", "why"),
    [
        pytest.param(0, "Invalid argument", id="none"),
        pytest.param(2, "Inappropriate ioctl for device", id="no-namespaces"),
    ],
)
def test_what_cannot_be_entered_is_said(count: int, why: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    made = Porter.start((nothing,) * count)
    with pytest.raises(UnavailableError, match=f"cannot enter the sandbox's network: {why}"):
        made.take()
    with pytest.raises(ChildProcessError):
        os.waitpid(made.pid, 0)
    os.close(nothing)
