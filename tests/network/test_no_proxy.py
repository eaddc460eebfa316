from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.no_proxy import NoProxy
from stockade.policy.destination import Destination


@pytest.mark.parametrize(
    ("text", "covered", "not_covered"),
    [
        pytest.param("", "", "a.com:80 10.0.0.1:80", id="empty"),
        pytest.param("*", "a.com:80 10.0.0.1:80 [::1]:80", "", id="everything"),
        pytest.param("a.com", "a.com:80 A.com.:443 x.a.com:80", "ba.com:80 a.com.b:80 com:80", id="name"),
        pytest.param(".a.com", "a.com:80 x.a.com:80", "ba.com:80", id="dot before it"),
        pytest.param("*.a.com", "a.com:80 x.y.a.com:80", "ba.com:80", id="star before it"),
        pytest.param("a.com:8080", "a.com:8080 x.a.com:8080", "a.com:80", id="port"),
        pytest.param("a.com, b.com c.com,,", "a.com:1 b.com:1 c.com:1", "d.com:1", id="separators"),
        pytest.param("10.0.0.1", "10.0.0.1:80", "10.0.0.2:80", id="address"),
        pytest.param("10.0.0.1:80", "10.0.0.1:80", "10.0.0.1:81", id="address and port"),
        pytest.param("0.0.1", "0.0.0.1:80", "10.0.0.1:80", id="an address has nothing below it"),
        pytest.param("10.0.0.0/8", "10.0.0.1:80 10.255.0.1:80", "11.0.0.1:80 a.com:80", id="range"),
        pytest.param("10.1.2.3/8", "10.0.0.1:80", "11.0.0.1:80", id="range by an address in it"),
        pytest.param("fd00::/8", "[fd12::1]:80", "[2a00::1]:80 10.0.0.1:80", id="range 6"),
        pytest.param("[fd00::]/8", "[fd12::1]:80", "[2a00::1]:80", id="range 6 in brackets"),
        pytest.param("::1", "[::1]:80", "[::2]:80", id="IPv6"),
        pytest.param("[::1]", "[::1]:80", "[::2]:80", id="IPv6 in brackets"),
        pytest.param("[::1]:80", "[::1]:80", "[::1]:81", id="IPv6 and port"),
        pytest.param("::ffff:10.0.0.1", "10.0.0.1:80", "", id="mapped"),
        pytest.param("BÜCHER.example", "xn--bcher-kva.example:80", "", id="international"),
    ],
)
def test_what_is_reached_without_a_proxy(text: str, covered: str, not_covered: str) -> None:
    no_proxy = NoProxy.parse(text)
    for destination in covered.split():
        assert no_proxy.covers(Destination.parse(destination)), destination
    for destination in not_covered.split():
        assert not no_proxy.covers(Destination.parse(destination)), destination


def test_entries_that_mean_nothing_are_left_out_and_kept_to_be_shown() -> None:
    no_proxy = NoProxy.parse("a.com,10.0.0.0/99,http://b.com,c.com:http,d*.com,[::1")
    assert no_proxy.left_out == ("10.0.0.0/99", "http://b.com", "c.com:http", "d*.com", "[::1")
    assert no_proxy.covers(Destination.parse("a.com:80"))
    assert not no_proxy.covers(Destination.parse("b.com:80"))


@given(
    st.text() | st.lists(st.sampled_from(["*", ".", "a.com", ":", "/8", "10.0.0.0", "[", "]", ",", "::"])).map("".join)
)
def test_no_text_is_an_error(text: str) -> None:
    NoProxy.parse(text).covers(Destination.parse("a.com:443"))
