from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.failure import ConnectError, Failure
from stockade.network.handshake import ConnectHandshake, SocksHandshake, handshake
from stockade.network.upstream import Upstream
from stockade.policy.destination import Destination

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.network.handshake import Handshake

NAME = Destination.parse("a.example:443")
HTTP = "http://p.corp"
HTTP_SECRET = "http://me:pw@p.corp"  # noqa: S105 (a test's own)
SOCKS = "socks5h://p.corp"
SOCKS_SECRET = "socks5h://me:pw@p.corp"  # noqa: S105 (a test's own)

REQUEST = b"\x05\x01\x00\x03\x09a.example\x01\xbb"
REPLY = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


def talk(conversation: Handshake, pieces: Iterable[bytes]) -> bytes:
    said = conversation.opening()
    for piece in pieces:
        said += conversation.receive(piece)
    return said


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


CONVERSATIONS = [
    pytest.param(
        HTTP,
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
        id="CONNECT",
    ),
    pytest.param(
        HTTP_SECRET,
        b"HTTP/1.0 200\r\nVia: x\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic bWU6cHc=\r\n\r\n",
        id="CONNECT with credentials",
    ),
    pytest.param(
        HTTP,
        b"HTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 200 OK\nX: y\n\n",
        b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
        id="interim answer, bare line feeds",
    ),
    pytest.param(SOCKS, b"\x05\x00" + REPLY, b"\x05\x01\x00" + REQUEST, id="SOCKS"),
    pytest.param(
        SOCKS_SECRET,
        b"\x05\x02\x01\x00" + REPLY,
        b"\x05\x02\x00\x02\x01\x02me\x02pw" + REQUEST,
        id="SOCKS with credentials",
    ),
    pytest.param(
        SOCKS_SECRET, b"\x05\x00" + REPLY, b"\x05\x02\x00\x02" + REQUEST, id="SOCKS that does not want the credentials"
    ),
    pytest.param(
        SOCKS,
        b"\x05\x00\x05\x00\x00\x03\x03abc\x00\x50",
        b"\x05\x01\x00" + REQUEST,
        id="SOCKS reply with a name",
    ),
    pytest.param(
        SOCKS,
        b"\x05\x00\x05\x00\x00\x04" + bytes(18),
        b"\x05\x01\x00" + REQUEST,
        id="SOCKS reply with IPv6",
    ),
]


@pytest.mark.parametrize("trailing", [b"", b"\n\nSSH-2.0", b"\x05\x01"])
@pytest.mark.parametrize(("proxy", "heard", "said"), CONVERSATIONS)
def test_a_conversation_whole_and_byte_by_byte_and_with_what_follows(
    proxy: str, heard: bytes, said: bytes, trailing: bytes
) -> None:
    for pieces in ([heard + trailing], [heard, trailing], byte_by_byte(heard + trailing)):
        conversation = handshake(Upstream.parse(proxy), NAME)
        assert talk(conversation, pieces) == said
        assert conversation.done
        assert conversation.trailing == trailing
    unfinished = handshake(Upstream.parse(proxy), NAME)
    talk(unfinished, [heard[:-1]])
    assert not unfinished.done
    assert unfinished.trailing == b""


@pytest.mark.parametrize(
    ("proxy", "heard", "failure", "message"),
    [
        pytest.param(
            HTTP, b"HTTP/1.1 403 Go away\r\n\r\n", Failure.UPSTREAM_REFUSED, "it answered 403 Go away", id="403"
        ),
        pytest.param(HTTP, b"HTTP/1.1 407\r\n\r\n", Failure.UPSTREAM_CREDENTIALS, "it answered 407", id="407"),
        pytest.param(HTTP, b"HTTP/1.1 502 Bad\r\n\r\n", Failure.UNREACHABLE, "it answered 502 Bad", id="502"),
        pytest.param(HTTP, b"HTTP/1.1 504 T\r\n\r\n", Failure.TIMED_OUT, "it answered 504 T", id="504"),
        pytest.param(HTTP, b"HTTP/1.1 302 F\r\n\r\n", Failure.UPSTREAM_REFUSED, "it answered 302 F", id="redirect"),
        pytest.param(
            HTTP, b"HTTP/1.1 403 \x1b[2J<x>\r\n\r\n", Failure.UPSTREAM_REFUSED, "403 \\x1b[2J\\x3cx\\x3e", id="escaped"
        ),
        pytest.param(HTTP, b"\x05\xff", Failure.UPSTREAM_BROKEN, "it does not speak HTTP/1", id="SOCKS for HTTP"),
        pytest.param(HTTP, b"SSH-2.0-x", Failure.UPSTREAM_BROKEN, "it does not speak HTTP/1", id="ssh for HTTP"),
        pytest.param(HTTP, b"HTTP/2 200\r\n\r\n", Failure.UPSTREAM_BROKEN, "it does not speak HTTP/1", id="HTTP/2"),
        pytest.param(HTTP, b"HTTP/1.1 2x0\r\n\r\n", Failure.UPSTREAM_BROKEN, "it does not speak HTTP/1", id="status"),
        pytest.param(
            HTTP, b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20000, Failure.UPSTREAM_BROKEN, "it does not end", id="endless"
        ),
        pytest.param(SOCKS, b"HTTP/1.1 400", Failure.UPSTREAM_BROKEN, "it does not speak SOCKS5", id="HTTP for SOCKS"),
        pytest.param(SOCKS, b"\x05\xff", Failure.UPSTREAM_CREDENTIALS, "another way", id="no method"),
        pytest.param(SOCKS, b"\x05\x02", Failure.UPSTREAM_CREDENTIALS, "another way", id="password not offered"),
        pytest.param(
            SOCKS_SECRET, b"\x05\x02\x01\x01", Failure.UPSTREAM_CREDENTIALS, "credentials", id="wrong password"
        ),
        pytest.param(SOCKS, b"\x05\x00\x05\x02", Failure.UPSTREAM_REFUSED, "code 2", id="not allowed"),
        pytest.param(SOCKS, b"\x05\x00\x05\x04", Failure.UNREACHABLE, "code 4", id="host unreachable"),
        pytest.param(SOCKS, b"\x05\x00\x05\x05", Failure.REFUSED, "code 5", id="refused"),
        pytest.param(SOCKS, b"\x05\x00\x05\x06", Failure.TIMED_OUT, "code 6", id="expired"),
        pytest.param(SOCKS, b"\x05\x00\x04\x00", Failure.UPSTREAM_BROKEN, "SOCKS5", id="another version"),
        pytest.param(
            SOCKS, b"\x05\x00\x05\x00\x00\x07\x00", Failure.UPSTREAM_BROKEN, "no known kind", id="odd address"
        ),
    ],
)
def test_a_proxy_that_says_no_says_why(proxy: str, heard: bytes, failure: Failure, message: str) -> None:
    for pieces in ([heard], byte_by_byte(heard)):
        with pytest.raises(ConnectError) as caught:
            talk(handshake(Upstream.parse(proxy), NAME), pieces)
        assert caught.value.failure is failure
        assert caught.value.message.startswith("a.example:443: ")
        assert message.removeprefix("it ") in caught.value.message


@pytest.mark.parametrize(
    ("destination", "request_address"),
    [("1.2.3.4:80", b"\x01\x01\x02\x03\x04"), ("[::1]:80", b"\x04" + bytes(15) + b"\x01")],
)
def test_addresses_are_sent_as_addresses(destination: str, request_address: bytes) -> None:
    there = Destination.parse(destination)
    socks = SocksHandshake(there)
    assert talk(socks, [b"\x05\x00"]) == b"\x05\x01\x00\x05\x01\x00" + request_address + b"\x00\x50"
    assert ConnectHandshake(there).opening().startswith(f"CONNECT {destination} HTTP/1.1\r\n".encode())


@given(
    st.sampled_from([HTTP, SOCKS, SOCKS_SECRET]),
    st.lists(
        st.binary(max_size=64)
        | st.sampled_from([b"HTTP/1.1 ", b"200", b"\r\n", b"\x05\x00", b"\x05\x02\x01\x00", REPLY])
    ),
)
def test_no_bytes_crash_or_hang_it(proxy: str, pieces: list[bytes]) -> None:
    conversation = handshake(Upstream.parse(proxy), NAME)
    try:
        talk(conversation, pieces)
    except ConnectError as error:
        assert error.message.isprintable()  # noqa: PT017 - either outcome is right
