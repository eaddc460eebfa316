"""The wire format of FUSE, held against bytes that were written down by hand from the kernel's header."""

from __future__ import annotations

import stat
from errno import EACCES

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux import fuse
from stockade.platforms.linux.fuse import Attributes, Request

HEADER = bytes.fromhex(
    "2f000000 01000000 0700000000000000 0300000000000000 00000000 00000000 39300000 0000 0000"  # LOOKUP by 12345
)
MODE = stat.S_IFDIR | 0o111
ATTRIBUTES = bytes.fromhex(
    "0500000000000000 0000000000000000 0000000000000000"
    "0900000000000000 0900000000000000 0900000000000000"
    "00000000 00000000 00000000 49400000 01000000 ffffffff ffffffff 00000000 00100000 00000000"
)


def test_a_request_is_read() -> None:
    request = Request.read(HEADER + b"secret\0")
    assert (request.opcode, request.unique, request.node, request.pid) == (fuse.LOOKUP, 7, 3, 12345)
    assert request.name == b"secret"
    assert request.packed() == HEADER + b"secret\0"


@pytest.mark.parametrize("data", [b"", HEADER[:39], HEADER + b"secret", HEADER + b"secrets\0"])
def test_what_is_no_whole_request_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a request"):
        Request.read(data)


@given(st.binary(max_size=100))
def test_no_bytes_crash_it(data: bytes) -> None:
    try:
        request = Request.read(data)
    except ValueError:
        return
    assert request.packed()[:8] == data[:8]


REPLIES = {
    "a refusal": (fuse.error(7, EACCES), "10000000 f3ffffff 0700000000000000"),
    "an entry": (
        fuse.entry(7, Attributes(5, MODE, 9), 16),
        "90000000 00000000 0700000000000000 0500000000000000 0000000000000000"
        "1000000000000000 1000000000000000 00000000 00000000" + ATTRIBUTES.hex(),
    ),
    "attributes": (
        fuse.status(7, Attributes(5, MODE, 9), 16),
        "78000000 00000000 0700000000000000 1000000000000000 00000000 00000000" + ATTRIBUTES.hex(),
    ),
    "no room": (
        fuse.space(7),
        "60000000 00000000 0700000000000000" + "00" * 40 + "00100000 ff000000 00100000 00000000" + "00" * 24,
    ),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_written(name: str) -> None:
    reply, expected = REPLIES[name]
    assert reply == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        pytest.param((7, 45), 31, id="a newer kernel"),
        pytest.param((7, 27), 27, id="an older kernel"),
        pytest.param((8, 1), 31, id="another protocol"),
        pytest.param((), 31, id="no version"),
    ],
)
def test_the_protocol_is_agreed_on(theirs: tuple[int, ...], ours: int) -> None:
    body = b"".join(part.to_bytes(4, "little") for part in theirs)
    reply = fuse.init(Request(fuse.INIT, 1, 0, 0, body))
    assert reply == bytes.fromhex(
        "50000000 00000000 0100000000000000 07000000"
        f"{ours:02x}000000 00000000 00000400 0000 0000 00100000 01000000 0000 0000 00000000" + "00" * 28
    )
