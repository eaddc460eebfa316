from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.entrance import Entrances
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAY = "exec 3<>/dev/tcp/{}/{} && read -r line <&3 && echo $line"


@pytest.fixture
def jails() -> Iterator[list[Jail]]:
    made: list[Jail] = []
    yield made
    for jail in made:
        jail.close()


def build(
    jails: list[Jail], folder: Path, shared: tuple[int, ...] = (), ports: tuple[tuple[str, int], ...] = ()
) -> Jail:
    jail = Jail.start(first=not shared)
    jails.append(jail)
    jail.build(JailSpec((Mount("writable", str(folder)),)), shared=shared, host_ports=ports)
    jail.wait_ready()
    return jail


def run(jail: Jail, folder: Path, line: str) -> str:
    file = folder / "out"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    jail.run(Request(("/bin/bash", "-c", line), {"PATH": "/usr/bin:/bin"}, "/"), (0, descriptor, descriptor))
    assert isinstance(jail.receive(), Ended)
    os.close(descriptor)
    return file.read_text()


def kinds(jail: Jail) -> list[str]:
    return [label for label, _ in jail.entrances]


def test_a_session_has_all_its_entrances_from_the_start(jails: list[Jail], tmp_path: Path) -> None:
    jail = build(jails, tmp_path.resolve(), ports=(("127.0.0.1", 5432),))
    assert kinds(jail) == [
        "http",
        "socks",
        *(["transparent", "name-udp", "name-tcp"] * 2),
        "host 127.0.0.1 5432",
    ]
    names = [socket.socket(fileno=os.dup(end)) for _, end in jail.entrances]
    try:
        assert [name.getsockname()[:2] for name in names] == [
            ("127.0.0.1", 3128),
            ("127.0.0.1", 1080),
            ("127.0.0.1", 3129),
            ("127.0.0.1", 53),
            ("127.0.0.1", 53),
            ("::1", 3129),
            ("::1", 53),
            ("::1", 53),
            ("127.0.0.1", 5432),
        ]
    finally:
        for name in names:
            name.close()


def test_what_connects_inside_waits_until_it_is_accepted_outside(jails: list[Jail], tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    jail = build(jails, folder)
    listener = socket.socket(fileno=os.dup(dict(jail.entrances)["http"]))
    file = folder / "out"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    line = SAY.format("127.0.0.1", 3128)
    jail.run(Request(("/bin/bash", "-c", line), {"PATH": "/usr/bin:/bin"}, "/"), (0, descriptor, descriptor))
    connection, _ = listener.accept()
    connection.sendall(b"from outside\n")
    assert isinstance(jail.receive(), Ended)
    connection.close()
    listener.close()
    os.close(descriptor)
    assert file.read_text() == "from outside\n"


def test_a_later_jail_opens_only_what_is_new(jails: list[Jail], tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    first = build(jails, folder)
    second = build(jails, folder, first.shared, (("127.0.0.1", 5432), ("::1", 5432)))
    assert kinds(second) == ["host 127.0.0.1 5432", "host ::1 5432"]
    third = build(jails, folder, first.shared, (("127.0.0.1", 5432),))
    assert third.entrances == (("taken 127.0.0.1 5432", -1),)
    assert "refused" in run(third, folder, SAY.format("127.0.0.1", 5433))


def test_commands_hold_none_of_them(jails: list[Jail], tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    jail = build(jails, folder)
    assert run(jail, folder, "ls -l /proc/self/fd | grep -c socket").strip() == "0"


def test_closing_leaves_nothing_open() -> None:
    opened = Entrances()
    reader, writer = os.pipe()
    opened.add(b"one", reader)
    opened.tell(b"none")
    opened.add(b"two", writer)
    assert (opened.labels, opened.sockets) == ([b"one", b"two", b"none"], [reader, writer])
    opened.close()
    for descriptor in (reader, writer):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
