from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.pseudoterminal import open_pair

if TYPE_CHECKING:
    from pathlib import Path


def talk(jail: Jail, directory: Path, pair: tuple[int, int]) -> bytes:
    ours, theirs = pair
    line = "tty; test -c $(tty) && echo there; echo again >/dev/tty"
    jail.run(Request(("sh", "-c", line), {"PATH": "/usr/bin:/bin"}, str(directory), terminal=True), (theirs,) * 3)
    os.close(theirs)
    assert isinstance(jail.receive(), Ended)
    heard = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return heard


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody is behind it any more
        return b""


def test_a_terminal_of_the_jail_has_a_name_inside(jail: Jail, tmp_path: Path) -> None:
    for _ in range(2):
        assert talk(jail, tmp_path, jail.open_terminal()) == b"/dev/pts/0\r\nthere\r\nagain\r\n"


def test_two_terminals_are_two(jail: Jail, tmp_path: Path) -> None:
    first = jail.open_terminal()
    assert talk(jail, tmp_path, jail.open_terminal()).startswith(b"/dev/pts/1\r\n")
    for end in first:
        os.close(end)


def test_where_the_jail_has_none_the_host_s_works_too(jail: Jail, tmp_path: Path) -> None:
    assert talk(jail, tmp_path, open_pair(())).endswith(b"again\r\n")
    with open(os.devnull, "rb") as useless:
        assert talk(jail, tmp_path, open_pair((useless.fileno(),))).endswith(b"again\r\n")
