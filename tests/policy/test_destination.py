from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.destination import Destination
from stockade.policy.host import Host
from stockade.policy.port import Port


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        pytest.param("example.com:443", "example.com", 443, id="host and port"),
        pytest.param("[::1]:80", "::1", 80, id="IPv6 and port"),
        pytest.param("https://example.com", "example.com", 443, id="https"),
        pytest.param("http://example.com/a:1/b?c#d", "example.com", 80, id="http with a path"),
        pytest.param("https://example.com?x", "example.com", 443, id="query without a path"),
        pytest.param("https://example.com#@evil.com", "example.com", 443, id="fragment that looks like a host"),
        pytest.param("https://example.com/@evil.com", "example.com", 443, id="path that looks like a host"),
        pytest.param("HTTPS://EXAMPLE.com:8443/", "example.com", 8443, id="port in a URL"),
        pytest.param("wss://[2001:DB8::1]/", "2001:db8::1", 443, id="IPv6 in a URL"),
        pytest.param("ssh://github.com/a/b", "github.com", 22, id="ssh"),
        pytest.param("http://0x7f.1/", "127.0.0.1", 80, id="odd address in a URL"),
    ],
)
def test_a_destination_is_read_from_a_pair_or_a_url(text: str, host: str, port: int) -> None:
    assert Destination.parse(text) == Destination(Host.parse(host), Port(port))


def test_a_default_port_is_taken_only_where_nothing_says_which() -> None:
    https = Port(443)
    assert str(Destination.parse("example.com", default_port=https)) == "example.com:443"
    assert str(Destination.parse("example.com:80", default_port=https)) == "example.com:80"
    assert str(Destination.parse("http://example.com", default_port=https)) == "example.com:80"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("example.com", "no port", id="no port"),
        pytest.param("", "empty", id="empty"),
        pytest.param("https://", "empty", id="no host"),
        pytest.param("https:///x", "empty", id="no host before the path"),
        pytest.param("https://:443", "empty", id="port alone"),
        pytest.param("gopher://example.com", "known port", id="unknown scheme"),
        pytest.param("://example.com", "known port", id="no scheme"),
        pytest.param("https://good.com@evil.com/", "has an @", id="user"),
        pytest.param("good.com:443@evil.com:80", "has an @", id="user without a scheme"),
        pytest.param("https://evil.com\\@good.com/", "has an @", id="backslash and user"),
        pytest.param("https://evil.com\\.good.com/", "backslash", id="backslash"),
        pytest.param("https://ex%61mple.com/", "percent", id="percent"),
        pytest.param("https://example.com:/", "not a port", id="empty port"),
        pytest.param("https://example.com:99999/", "not a port", id="bad port"),
        pytest.param("example.com/path:80", "slash", id="path without a scheme"),
    ],
)
def test_anything_else_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidTextError, match=why) as caught:
        Destination.parse(text)
    assert caught.value.hint


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(InvalidTextError) as caught:
        Destination.parse("https://me:hunter2@example.com/")
    assert "hunter2" not in caught.value.message + caught.value.hint


@given(st.text() | st.builds("{}://{}:{}/{}".format, st.sampled_from(["http", "x"]), st.text(), st.text(), st.text()))
def test_parsing_is_idempotent_and_raises_only_our_error(text: str) -> None:
    try:
        destination = Destination.parse(text)
    except InvalidTextError:
        return
    assert Destination.parse(str(destination)) == destination
