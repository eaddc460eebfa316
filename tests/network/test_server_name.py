from __future__ import annotations

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.server_name import Hello, Malformed, read_hello
from stockade.policy.decision import Reason, decide
from stockade.policy.network_rules import NetworkRules


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
    return body if extensions is None else body + vector(extensions)


GREASE = extension(0x0A0A, b"\0") + extension(0xFAFA, b"")
EXAMPLE = server_name(b"example.com")
ENCRYPTED = extension(0xFE0D, bytes(200))

FINDINGS = [
    pytest.param(hello(EXAMPLE), Hello("example.com"), id="name"),
    pytest.param(
        hello(GREASE + EXAMPLE + GREASE[:5].replace(b"\x0a\x0a", b"\x1a\x1a")),
        Hello("example.com"),
        id="GREASE",
    ),
    pytest.param(hello(extension(21, bytes(20_000)) + EXAMPLE), Hello("example.com"), id="large"),
    pytest.param(hello(ENCRYPTED + EXAMPLE), Hello("example.com", encrypted=True), id="encrypted hello"),
    pytest.param(hello(ENCRYPTED), Hello(None, encrypted=True), id="encrypted hello without a name"),
    pytest.param(hello(b""), Hello(None), id="no extension"),
    pytest.param(hello(None), Hello(None), id="no extensions at all"),
    pytest.param(hello(EXAMPLE, session=bytes(32)), Hello("example.com"), id="session"),
    pytest.param(bytes(10), Malformed("a length in its hello does not fit"), id="cut short"),
    pytest.param(hello(EXAMPLE, session=bytes(33)), Malformed("its session is too long"), id="long session"),
    pytest.param(hello(EXAMPLE, suites=b""), Malformed("its cipher suites are malformed"), id="no suites"),
    pytest.param(hello(EXAMPLE, suites=b"abc"), Malformed("its cipher suites are malformed"), id="odd suites"),
    pytest.param(hello(EXAMPLE, methods=b""), Malformed("it lists no compression method"), id="no method"),
    pytest.param(
        hello(EXAMPLE) + b"x",
        Malformed("something stands behind its extensions"),
        id="bytes behind",
    ),
    pytest.param(
        hello(EXAMPLE + server_name(b"evil.com")),
        Malformed("an extension of its hello is there twice"),
        id="the name twice",
    ),
    pytest.param(
        hello(server_name(b"example.com", b"evil.com")),
        Malformed("its server name is malformed, or not the only one"),
        id="two names",
    ),
    pytest.param(
        hello(server_name(b"")),
        Malformed("its server name is malformed, or not the only one"),
        id="empty name",
    ),
    pytest.param(
        hello(server_name(b"x", kind=1)),
        Malformed("its server name is malformed, or not the only one"),
        id="another kind of name",
    ),
    pytest.param(hello(extension(0, b"")), Malformed("a length in its hello does not fit"), id="empty list"),
    pytest.param(
        hello(extension(0, vector(b"\0" + vector(b"a")) + b"x")),
        Malformed("its server name is malformed, or not the only one"),
        id="bytes behind the list",
    ),
    pytest.param(hello(EXAMPLE + extension(42, b"")), Hello("example.com", early=True), id="early data"),
]


@pytest.mark.parametrize(("data", "finding"), FINDINGS)
def test_what_is_found(data: bytes, finding: Hello | Malformed) -> None:
    assert read_hello(data) == finding


@pytest.mark.parametrize("name", [b"ex\xc3\xa4mple.com", b"example.com\0.evil.com", b"a b", b"*.example.com"])
def test_a_malformed_name_is_handed_on_in_a_form_that_no_rule_allows(name: bytes) -> None:
    found = read_hello(hello(server_name(name)))
    assert isinstance(found, Hello)
    assert found.host_text is not None
    assert decide(NetworkRules(), found.host_text, 443, can_ask=True).reason is Reason.MALFORMED_HOST


@pytest.mark.parametrize("name", ["example.com", "bücher.example", None])
def test_the_hello_of_a_real_client(name: str | None) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    assert read_hello(outgoing.read()[9:]) == Hello(None if name is None else name.encode("idna").decode())


@given(st.data())
def test_no_bytes_break_it(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([case.values[0] for case in FINDINGS]))
    assert isinstance(whole, bytes)
    at = data.draw(st.integers(0, min(len(whole), 200)))
    torn = whole[:at] + data.draw(st.binary(max_size=8)) + whole[at + data.draw(st.integers(0, 8)) :]
    assert isinstance(read_hello(torn), Hello | Malformed)
