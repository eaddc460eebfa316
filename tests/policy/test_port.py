from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.port import Port, split_port


@pytest.mark.parametrize("number", [1, 80, 443, 8080, 65535])
def test_a_port_is_read_from_digits_or_a_number(number: int) -> None:
    assert Port.parse(number) == Port.parse(str(number)) == Port(number)
    assert str(Port(number)) == str(number)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("0", id="zero"),
        pytest.param(0, id="zero as a number"),
        pytest.param("65536", id="too large"),
        pytest.param(65536, id="too large as a number"),
        pytest.param(-1, id="negative number"),
        pytest.param(10**5000, id="a number too large to print"),
        pytest.param("9" * 5000, id="digits too many to read"),
        pytest.param(True, id="a truth value is no number"),
        pytest.param("-1", id="sign"),
        pytest.param("+80", id="plus"),
        pytest.param("080", id="leading zero"),
        pytest.param("8_0", id="underscore"),
        pytest.param("0x50", id="hexadecimal"),
        pytest.param("80.0", id="fraction"),
        pytest.param(" 80", id="leading space"),
        pytest.param("80\n", id="trailing newline"),
        pytest.param("８０", id="full-width digits"),  # noqa: RUF001 (look-alikes are the test)
        pytest.param("٨٠", id="arabic digits"),
        pytest.param("²", id="superscript"),
        pytest.param("*", id="wildcard"),
        pytest.param("http", id="service name"),
    ],
)
def test_anything_else_is_refused_with_a_hint(text: str | int) -> None:
    with pytest.raises(InvalidTextError, match="is not a port") as caught:
        Port.parse(text)
    assert caught.value.hint == "write a whole number from 1 to 65535, in plain digits"


def test_a_port_out_of_range_cannot_be_built_directly() -> None:
    with pytest.raises(InvalidTextError):
        Port(70000)


@given(st.text() | st.integers())
def test_only_our_error_is_raised_and_what_is_read_is_written_back(text: str | int) -> None:
    try:
        port = Port.parse(text)
    except InvalidTextError:
        return
    assert str(port) == str(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("example.com", ("example.com", None), id="no port"),
        pytest.param("example.com:443", ("example.com", "443"), id="port"),
        pytest.param("example.com:", ("example.com", ""), id="empty port is told from none"),
        pytest.param(":443", ("", "443"), id="no host"),
        pytest.param("[::1]", ("[::1]", None), id="IPv6"),
        pytest.param("[::1]:443", ("[::1]", "443"), id="IPv6 and port"),
        pytest.param("", ("", None), id="empty"),
    ],
)
def test_host_and_port_are_cut_apart(text: str, parts: tuple[str, str | None]) -> None:
    assert split_port(text) == parts


@pytest.mark.parametrize("text", ["::1", "::1:80", "a:80:80", "[::1", "[::1]80", "[::1]]:80"])
def test_an_ambiguous_port_is_refused(text: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        split_port(text)
    assert "[::1]:8080" in caught.value.hint
