from __future__ import annotations

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.screen import Screen
from stockade.policy.destination import Destination
from stockade.policy.host import Host
from stockade.policy.port import Port

THERE = Destination(Host.parse("allowed.test"), Port(443))


def hello(name: str | None) -> bytes:
    """Return what a real client says first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def screened(said: bytes, piece: int) -> tuple[bytes | None, list[str]]:
    """Return what passes of what is said in pieces, and why not all of it."""
    told: list[str] = []
    screen = Screen(THERE, told.append)
    passed = b""
    for at in range(0, len(said), piece):
        some = said[at : at + piece] if screen.done else screen.receive(said[at : at + piece])
        if some is None:
            assert screen.done
            return (passed or None), told
        passed += some
    return passed, told


@pytest.mark.parametrize("piece", [1, 7, 100_000])
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"SSH-2.0-client\r\n", id="no TLS"),
        pytest.param(hello("allowed.test") + b"more", id="the right name"),
        pytest.param(hello("ALLOWED.test."), id="the right name, spelt otherwise"),
        pytest.param(hello(None), id="no name"),
        pytest.param(b"\x16SSH", id="no TLS, although it begins so"),
    ],
)
def test_what_is_right_passes_whole(said: bytes, piece: int) -> None:
    assert screened(said, piece) == (said, [])


@pytest.mark.parametrize("piece", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("said", "why"),
    [
        pytest.param(hello("evil.test"), 'its TLS server name is "evil.test"', id="another name"),
        pytest.param(hello("sub.allowed.test"), 'its TLS server name is "sub.allowed.test"', id="a name below"),
        pytest.param(
            b"\x16\x03\x01\0\x04\x02\0\0\0",
            "its TLS hello cannot be read: its first message is no client hello",
            id="no hello",
        ),
    ],
)
def test_of_what_is_wrong_nothing_passes(said: bytes, why: str, piece: int) -> None:
    assert screened(said + b"more", piece) == (None, [why])


@given(st.binary(min_size=1), st.integers(1, 50))
def test_nothing_that_a_client_says_raises(said: bytes, piece: int) -> None:
    screened(said, piece)
    screened(b"\x16\x03\x01" + said, piece)
