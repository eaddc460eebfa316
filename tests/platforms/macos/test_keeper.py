from __future__ import annotations

import errno
import os
import socket

from stockade.platforms.macos import framing
from stockade.platforms.macos.keeper import Keeper

ORDER = {
    "do": "launch",
    "ticket": 7,
    "sandbox": "/usr/bin/sandbox-exec",
    "profile": "(deny default)",
    "argv": ["no-such-program"],
    "environment": {"PATH": "/bin"},
    "mark": "m",
    "directory": "/",
    "limits": [],
    "terminal": False,
}


def test_what_cannot_be_started_is_told() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = os.open(os.devnull, os.O_RDWR)
        Keeper(theirs).do(dict(ORDER), [stream])
        assert framing.receive(ours) == (
            {
                "ticket": 7,
                "status": 127 << 8,
                "failure": "no-such-program: no such program",
                "error": errno.ENOENT,
            },
            [],
        )


def test_nobody_is_meant() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        keeper = Keeper(theirs)
        keeper.do({"do": "signal", "ticket": 1, "number": 15}, [])
        keeper.do({"do": "end", "ticket": 1}, [])
        keeper.reap()
        keeper.end_all()
