from __future__ import annotations

import ssl
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.screen import Screen
from stockade.policy.destination import Destination
from stockade.policy.host import Host
from stockade.policy.port import Port

THERE = Destination(Host.parse("allowed.test"), Port(443))

RETRY = (
    b"\x16\3\3\0\x2a\2\0\0\x26\3\3"
    + bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    + b"\0\x13\1\0"
)
ANSWER = RETRY[:11] + bytes(32) + RETRY[43:]


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
            assert screen.receive(said) is None
            return (passed or None), told
        passed += some
    return passed, told


@pytest.mark.parametrize("piece", [1, 7, 100_000])
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"SSH-2.0-client\r\n", id="no TLS"),
        pytest.param(hello("allowed.test"), id="the right name"),
        pytest.param(hello("allowed.test") + b"\x14\3\3\0\1\1" + hello("allowed.test"), id="the right name twice"),
        pytest.param(hello("ALLOWED.test."), id="the right name, spelt otherwise"),
        pytest.param(hello(None), id="no name"),
        pytest.param(hello(None) * 2, id="no name twice"),
        pytest.param(b"\x13\x03\x01", id="almost TLS"),
        pytest.param(b"\x19\x03\x01", id="almost TLS again"),
        pytest.param(b"\x16SSH-2.0", id="something else that begins with such a byte"),
        pytest.param(struct.pack("<iiii", 277, 1, 0, 2013) + bytes(261), id="MongoDB, like an alert"),
        pytest.param(struct.pack("<iiii", 278, 0, 0, 2013) + bytes(262), id="MongoDB, like an empty record"),
        pytest.param(b"\x80\x2e\x01\x03\x01", id="hello of SSL 2"),
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
            "its TLS hello cannot be read: a message before the server's answer is no client hello",
            id="no hello",
        ),
        pytest.param(
            b"\x15\3\1\0\2\1\0" + hello("allowed.test"),
            "its TLS hello cannot be read: an alert stands before its hello",
            id="an alert before it",
        ),
        *(
            pytest.param(
                bytes([first]) + b"\3\1\0\1\1",
                f"its TLS hello cannot be read: {words} stands before its hello",
                id=f"{words} first",
            )
            for first, words in (
                (20, "a change of cipher"),
                (21, "an alert"),
                (23, "application data"),
                (24, "a heartbeat"),
            )
        ),
        pytest.param(
            b"\x15\1\0\0\2\1\x5a" + hello("allowed.test"),
            "its TLS hello cannot be read: an alert stands before its hello",
            id="an alert of another version",
        ),
        *(
            pytest.param(
                b"\x16" + bytes([version, 0]) + size + b"\1\0",
                "its TLS hello cannot be read: a record before the server's answer has another version than 3",
                id=f"version {version}",
            )
            for version, size in ((0, b"\0\1"), (2, b"\1\0"), (4, b"\x40\0"), (83, b"\xff\xff"))
        ),
    ],
)
def test_of_what_is_wrong_nothing_passes(said: bytes, why: str, piece: int) -> None:
    assert screened(said + b"more", piece) == (None, [why])


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("allowed.test", "evil.test", 'another server: "evil.test"'),
        ("allowed.test", "ALLOWED.test", 'another server: "ALLOWED.test"'),
        ("allowed.test", None, "no server"),
        (None, "evil.test", 'another server: "evil.test"'),
        (None, "allowed.test", 'another server: "allowed.test"'),
    ],
)
@pytest.mark.parametrize("asked", [False, True], ids=["unasked", "asked"])
def test_every_hello_gives_the_same_name(first: str | None, second: str | None, why: str, *, asked: bool) -> None:
    told: list[str] = []
    screen = Screen(THERE, told.append)
    said = hello(first)
    assert screen.receive(said) == said
    if asked:
        screen.hear(RETRY)
    assert not screen.done
    assert screen.receive(b"\x14\3\3\0\1\1") == b"\x14\3\3\0\1\1"
    assert screen.receive(hello(second)) is None
    assert told == [f"its second TLS hello names {why}"]


KEY, CHANGE, FINISHED = b"\x16\3\3\0\4\x10\0\0\0", b"\x14\3\3\0\1\1", b"\x16\3\3\0\x28\1" + bytes(39)
DATA = b"\x17\3\3\0\x28" + bytes(40)


@pytest.mark.parametrize("piece", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    ("early", "said"),
    [
        *(pytest.param(early, KEY + CHANGE + FINISHED, id=f"a key, {early}") for early in range(6)),
        *(pytest.param(early, CHANGE + FINISHED, id=f"a session taken up again, {early}") for early in range(6)),
        pytest.param(0, b"\x16\3\3\0\4\x0b" + bytes(200_000), id="a certificate, and much behind it"),
        pytest.param(0, b"\x15\3\3\0\2\1\x5a" + KEY + CHANGE + FINISHED, id="an alert, and a key"),
        pytest.param(0, b"\x15\3\3\0\2\2\x50", id="an alert"),
        pytest.param(0, DATA * 3, id="TLS 1.3"),
    ],
)
def test_once_the_server_has_answered_nothing_but_a_hello_is_looked_at(said: bytes, early: int, piece: int) -> None:
    """The last message is encrypted, and looks like a hello. Some of what is said may overtake the answer."""
    screen = Screen(THERE, pytest.fail)
    screen.receive(hello("allowed.test"))
    for half in (RETRY, ANSWER[:-1]):
        screen.hear(half)
        assert not screen.done
    passed = (screen.receive(said[:early]) or b"") if early else b""
    screen.hear(ANSWER[-1:])
    for at in range(early, len(said), piece):
        if screen.done:
            passed += screen.rest() + said[at:]
            break
        some = screen.receive(said[at : at + piece])
        assert some is not None
        passed += some
    assert passed + screen.rest() == said
    assert screen.done is (said[0] != 21 or len(said) > 7)


@pytest.mark.parametrize("early", [0, 4, 90])
@pytest.mark.parametrize("before", [b"", b"\x15\3\3\0\2\1\x5a"], ids=["at once", "after an alert"])
def test_a_hello_after_the_servers_own_is_judged_too(before: bytes, early: int) -> None:
    """OpenSSL before 1.1 obeys it."""
    told: list[str] = []
    screen = Screen(THERE, told.append)
    screen.receive(hello("allowed.test"))
    evil = hello("evil.test")
    assert not early or screen.receive(evil[:early]) == b""
    screen.hear(ANSWER)
    assert not screen.done
    if before and not early:
        assert screen.receive(before) == before
    assert screen.receive(evil[early:-1]) == b""
    assert screen.receive(evil[-1:]) is None
    assert told == ['its second TLS hello names another server: "evil.test"']


@pytest.mark.parametrize("piece", [1, 1 << 20])
@pytest.mark.parametrize(
    ("before", "why"),
    [
        (b"\x16\3\3\0\0", "a record of its hello is empty or too large"),
        (b"\x14\3\3\0\0", "a change of cipher has another size than any client sends"),
        (b"\x15\3\3\0\0", "an alert has another size than any client sends"),
        (b"\x17\3\3\0\0", "application data comes before the server's answer, and was not offered"),
        (b"\x18\3\3\0\1x", "a heartbeat stands behind its hello"),
        (b"\x63\3\3\0\1x", "something that is no TLS stands behind its hello"),
        (b"\x17\2\3\0\1x", "application data comes before the server's answer, and was not offered"),
    ],
)
def test_what_an_old_server_skips_is_no_way_around(before: bytes, why: str, piece: int) -> None:
    told: list[str] = []
    screen = Screen(THERE, told.append)
    screen.receive(hello("allowed.test"))
    screen.hear(ANSWER)
    said = before + hello("evil.test")
    passed = [screen.receive(said[at : at + piece]) for at in range(0, len(said), piece)]
    assert set(passed) <= {b"", None}
    assert told == [f"its TLS hello cannot be read: {why}"]


def test_what_a_server_says_first_ends_it_unless_that_is_tls_or_a_hello_is_on_its_way() -> None:
    screen = Screen(THERE, pytest.fail)
    screen.hear(b"220 ready")
    assert (screen.done, screen.rest()) == (True, b"")
    screen = Screen(THERE, pytest.fail)
    screen.hear(b"\x15\3\1\0\2\1\0")
    assert not screen.done
    whole = hello("allowed.test")
    assert screen.receive(whole[:20]) == b""
    screen.hear(b"220 ready")
    assert not screen.done
    assert screen.receive(whole[20:]) == whole
    assert screen.done


@pytest.mark.parametrize("before", [b"", hello("allowed.test")])
def test_a_hello_that_lacks_its_end_goes_nowhere(before: bytes) -> None:
    told: list[str] = []
    screen = Screen(THERE, told.append)
    assert screen.receive(before + hello("evil.test")[:-1]) == before
    assert not screen.end()
    assert told == ["its TLS hello cannot be read: it ends in the midst"]


def test_an_end_in_between_may_go_on() -> None:
    for said in (b"", b"GET", hello("allowed.test")):
        screen = Screen(THERE, pytest.fail)
        if said:
            screen.receive(said)
        assert screen.end()
        assert screen.done


def test_what_is_too_short_to_tell_waits_for_more_or_for_the_end() -> None:
    for end in (False, True):
        screen = Screen(THERE, pytest.fail)
        screen.hear(b"\x15\3\1\0\2\1\0")
        assert screen.receive(b"\x15\1") == b""
        screen.hear(b"220 ready")
        assert screen.receive(b"\0\0\1") == b""
        assert (screen.done, screen.holds) == (False, True)
        if end:
            assert screen.end()
            assert (screen.done, screen.rest(), screen.holds) == (True, b"\x15\1\0\0\1", False)
        else:
            assert screen.receive(b"\0\0") == b"\x15\1\0\0\1\0\0"
            assert (screen.done, screen.rest(), screen.holds) == (True, b"", False)


@given(st.binary(min_size=1), st.integers(1, 50))
def test_nothing_that_a_client_says_raises(said: bytes, piece: int) -> None:
    screened(said, piece)
    screened(b"\x16\x03\x01" + said, piece)
