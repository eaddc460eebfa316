from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.http_head import FlawError
from stockade.network.http_target import Target, read_absolute, read_connect, read_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"example.com:443", Target("example.com", "443", b""), id="name"),
        pytest.param(b"[::1]:443", Target("[::1]", "443", b""), id="IPv6"),
        pytest.param(b"example.com", Target("example.com", "", b""), id="no port"),
        pytest.param(b"::1:443", Target("::1:443", "", b""), id="IPv6 without brackets has no port"),
        pytest.param(b"example.com:443/x", Target("example.com", "443/x", b""), id="path"),
        pytest.param(b"http://example.com:443", Target("http://example.com:443", "", b""), id="URL"),
    ],
)
def test_connect_names_host_and_port(text: bytes, expected: Target) -> None:
    assert read_connect(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"http://a/b?c", Target("a", "80", b"/b?c"), id="whole"),
        pytest.param(b"HTTP://A:8080/", Target("A", "8080", b"/"), id="port and capitals"),
        pytest.param(b"http://a", Target("a", "80", b"/"), id="no path"),
        pytest.param(b"http://a?b", Target("a", "80", b"/?b"), id="query alone"),
        pytest.param(b"http://a//b/../c%2f", Target("a", "80", b"//b/../c%2f"), id="path byte for byte"),
        pytest.param(b"http://a/@b", Target("a", "80", b"/@b"), id="@ in the path"),
        pytest.param(b"http://[::1]/", Target("[::1]", "80", b"/"), id="IPv6"),
        pytest.param(b"http:///b", Target("", "80", b"/b"), id="no host"),
        pytest.param(b"http://a:/", Target("a", "", b"/"), id="empty port"),
    ],
)
def test_other_methods_name_a_whole_url(text: bytes, expected: Target) -> None:
    assert read_absolute(b"GET", text) == expected


def test_options_without_a_path_is_about_the_whole_server() -> None:
    assert read_absolute(b"OPTIONS", b"http://a") == Target("a", "80", b"*")
    assert read_absolute(b"OPTIONS", b"http://a/") == Target("a", "80", b"/")


@pytest.mark.parametrize("text", [b"/", b"*", b"a", b"http:/a", b"http:a", b"https://a/", b"ws://a/", b"http://u@a/"])
def test_anything_else_is_refused(text: bytes) -> None:
    with pytest.raises(FlawError):
        read_absolute(b"GET", text)


def test_a_password_is_not_shown() -> None:
    for read in (read_connect, lambda text: read_absolute(b"GET", b"http://" + text)):
        with pytest.raises(FlawError) as caught:
            read(b"user:secret@example.com:443")
        assert b"secret" not in caught.value.refusal.render()
    with pytest.raises(FlawError) as caught:
        read_absolute(b"GET", b"https://user:secret@example.com/")
    assert b"secret" not in caught.value.refusal.render()


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1))
def test_no_target_raises_anything_but_a_flaw(text: str) -> None:
    target = text.encode()
    for read in (read_connect, read_path, lambda data: read_absolute(b"GET", b"http://" + data)):
        with contextlib.suppress(FlawError):
            read(target)
