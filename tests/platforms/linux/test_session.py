from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("user", "mnt", "pid", "net", "ipc", "uts")
LOOK = "for name in user mnt pid net ipc uts; do readlink /proc/self/ns/$name; done"
PORT = "cat /proc/sys/net/ipv4/ip_unprivileged_port_start"


def namespaces(jail: Jail, folder: Path) -> list[str]:
    file = folder / "out"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    jail.run(Request(("/bin/sh", "-c", f"{LOOK}; {PORT}"), {"PATH": "/usr/bin:/bin"}, "/"), (0, descriptor, 2))
    assert isinstance(jail.receive(), Ended)
    os.close(descriptor)
    return file.read_text().split()


def build(folder: Path, shared: tuple[int, ...] = ()) -> Jail:
    jail = Jail.start(first=not shared)
    jail.build(JailSpec((Mount("writable", str(folder)),)), shared=shared)
    jail.wait_ready()
    return jail


def test_jails_of_one_session_share_their_localhost_and_nothing_of_their_walls(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    first = build(folder)
    second = build(folder, first.shared)
    stranger = build(folder)
    try:
        ours, theirs, other = (namespaces(jail, folder) for jail in (first, second, stranger))
        assert second.shared == ()
        for kind, one, two, three in zip(KINDS, ours, theirs, other, strict=False):
            assert (one == two) is (kind in {"net", "ipc"}), kind
            assert one != three, kind
        assert ours[-1] == "0"
    finally:
        for jail in (first, second, stranger):
            jail.close()


def test_the_session_outlives_its_first_jail(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    first = build(folder)
    before = namespaces(first, folder)
    shared, first.shared = first.shared, ()
    first.close()
    second = build(folder, shared)
    try:
        assert namespaces(second, folder)[3] == before[3]
    finally:
        second.close()
        for descriptor in shared:
            os.close(descriptor)
