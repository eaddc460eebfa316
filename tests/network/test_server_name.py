from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.server_name import (
    LARGEST,
    Finding,
    Malformed,
    Name,
    NeedMore,
    NoName,
    NotTls,
    ServerNameReader,
)
from stockade.policy.decision import NetworkRules, Reason, decide

if TYPE_CHECKING:
    from collections.abc import Iterator


def vector(data: bytes, size: int = 2) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(data)


def server_name(*names: bytes, kind: int = 0) -> bytes:
    return extension(0, vector(b"".join(bytes((kind,)) + vector(name) for name in names)))


def hello(
    extensions: bytes | None, *, session: bytes = b"", suites: bytes = b"\x13\x01", methods: bytes = b"\0"
) -> bytes:
    body = b"\x03\x03" + bytes(32) + vector(session, 1) + vector(suites) + vector(methods, 1)
    return message(body if extensions is None else body + vector(extensions))


def message(body: bytes, kind: int = 1) -> bytes:
    return bytes((kind,)) + vector(body, 3)


def records(data: bytes, size: int = 1 << 14) -> bytes:
    return b"".join(b"\x16\x03\x01" + vector(data[at : at + size]) for at in range(0, len(data), size))


GREASE = extension(0x0A0A, b"\0") + extension(0xFAFA, b"")
EXAMPLE = server_name(b"example.com")
ENCRYPTED = extension(0xFE0D, bytes(200))

FINDINGS = [
    pytest.param(records(hello(EXAMPLE)), Name("example.com"), id="name"),
    pytest.param(
        records(hello(GREASE + EXAMPLE + GREASE[:5].replace(b"\x0a\x0a", b"\x1a\x1a"))),
        Name("example.com"),
        id="GREASE",
    ),
    pytest.param(records(hello(EXAMPLE), 1), Name("example.com"), id="a record for each byte"),
    pytest.param(records(hello(EXAMPLE), 7), Name("example.com"), id="small records"),
    pytest.param(records(hello(extension(21, bytes(20_000)) + EXAMPLE)), Name("example.com"), id="two full records"),
    pytest.param(records(hello(ENCRYPTED + EXAMPLE)), Name("example.com", encrypted=True), id="encrypted hello"),
    pytest.param(records(hello(ENCRYPTED)), NoName(encrypted=True), id="encrypted hello without a name"),
    pytest.param(records(hello(b"")), NoName(), id="no extension"),
    pytest.param(records(hello(None)), NoName(), id="no extensions at all"),
    pytest.param(records(hello(EXAMPLE, session=bytes(32))), Name("example.com"), id="session"),
    pytest.param(b"GET / HTTP/1.1\r\n", NotTls(), id="HTTP"),
    pytest.param(b"SSH-2.0-OpenSSH", NotTls(), id="SSH"),
    pytest.param(b"\x80\x2e\x01\x03\x01", NotTls(), id="hello of SSL 2"),
    pytest.param(b"\x16\x02\x00", NotTls(), id="another version"),
    pytest.param(b"\x15\x03\x01\x00\x02\x02\x28", NotTls(), id="alert"),
    pytest.param(
        records(hello(EXAMPLE)[:20]) + b"\x15\x03\x01\x00\x02\x02\x28",
        Malformed("something else stands between the records of its hello"),
        id="alert in the middle",
    ),
    pytest.param(b"\x16\x03\x01\x00\x00", Malformed("a record of its hello is empty or too large"), id="empty record"),
    pytest.param(b"\x16\x03\x01\x40\x01", Malformed("a record of its hello is empty or too large"), id="large record"),
    pytest.param(records(message(b"", 2)), Malformed("its first message is no client hello"), id="server hello"),
    pytest.param(records(b"\x01\xff\xff\xff"), Malformed("its hello is too large"), id="too large"),
    pytest.param(records(message(bytes(10))), Malformed("a length in its hello does not fit"), id="cut short"),
    pytest.param(records(hello(EXAMPLE, session=bytes(33))), Malformed("its session is too long"), id="long session"),
    pytest.param(records(hello(EXAMPLE, suites=b"")), Malformed("its cipher suites are malformed"), id="no suites"),
    pytest.param(records(hello(EXAMPLE, suites=b"abc")), Malformed("its cipher suites are malformed"), id="odd suites"),
    pytest.param(records(hello(EXAMPLE, methods=b"")), Malformed("it lists no compression method"), id="no method"),
    pytest.param(
        records(message(hello(EXAMPLE)[4:] + b"x")),
        Malformed("something stands behind its extensions"),
        id="bytes behind",
    ),
    pytest.param(
        records(hello(EXAMPLE + server_name(b"evil.com"))),
        Malformed("an extension of its hello is there twice"),
        id="the name twice",
    ),
    pytest.param(
        records(hello(server_name(b"example.com", b"evil.com"))),
        Malformed("its server name is malformed, or not the only one"),
        id="two names",
    ),
    pytest.param(
        records(hello(server_name(b""))),
        Malformed("its server name is malformed, or not the only one"),
        id="empty name",
    ),
    pytest.param(
        records(hello(server_name(b"x", kind=1))),
        Malformed("its server name is malformed, or not the only one"),
        id="another kind of name",
    ),
    pytest.param(records(hello(extension(0, b""))), Malformed("a length in its hello does not fit"), id="empty list"),
    pytest.param(
        records(hello(extension(0, vector(b"\0" + vector(b"a")) + b"x"))),
        Malformed("its server name is malformed, or not the only one"),
        id="bytes behind the list",
    ),
]


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@pytest.mark.parametrize("size", [1, 3, 1 << 20], ids=["byte by byte", "by threes", "whole"])
@pytest.mark.parametrize("behind", [b"", b"\x16\x03\x03\x00\x01\x02"], ids=["alone", "with more behind"])
@pytest.mark.parametrize(("data", "finding"), FINDINGS)
def test_what_is_found(data: bytes, finding: Finding, behind: bytes, size: int) -> None:
    reader = ServerNameReader()
    found = [reader.receive(piece) for piece in pieces(data + behind, size)]
    assert found[-1] == finding
    final = [one for one in found if one != NeedMore()]
    assert set(final) == {finding}


def test_less_than_all_is_not_enough() -> None:
    data = records(hello(EXAMPLE), 9)
    reader = ServerNameReader()
    assert {reader.receive(piece) for piece in pieces(data[:-1], 5)} == {NeedMore()}
    assert reader.receive(data[-1:]) == Name("example.com")


@pytest.mark.parametrize("name", [b"ex\xc3\xa4mple.com", b"example.com\0.evil.com", b"a b", b"*.example.com"])
def test_a_malformed_name_is_handed_on_in_a_form_that_no_rule_allows(name: bytes) -> None:
    found = ServerNameReader().receive(records(hello(server_name(name))))
    assert isinstance(found, Name)
    assert decide(NetworkRules(), found.host_text, 443, can_ask=True).reason is Reason.MALFORMED_HOST


@pytest.mark.parametrize("name", ["example.com", "bücher.example", None])
def test_the_hello_of_a_real_client(name: str | None) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    expected = NoName() if name is None else Name(name.encode("idna").decode())
    assert ServerNameReader().receive(outgoing.read()) == expected


@given(st.data())
def test_no_bytes_break_it(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([case.values[0] for case in FINDINGS]))
    assert isinstance(whole, bytes)
    at = data.draw(st.integers(0, min(len(whole), 200)))
    torn = whole[:at] + data.draw(st.binary(max_size=8)) + whole[at + data.draw(st.integers(0, 8)) :]
    reader = ServerNameReader()
    found: Finding = NeedMore()
    for piece in pieces(torn, 5000):
        now = reader.receive(piece)
        assert found in {NeedMore(), now}
        found = now
        assert len(reader._records) + len(reader._message) <= 2 * LARGEST
