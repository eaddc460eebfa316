from __future__ import annotations

from base64 import b64encode

import pytest

from stockade.network.http_fields import offered_upgrade, passed_on, proxy_credentials, trailers_passed_on, words
from stockade.network.http_message import Credentials, Headers


def test_words_are_gathered_from_all_lines_in_lower_case() -> None:
    headers: Headers = ((b"connection", b"Close,, x "), (b"via", b"y"), (b"connection", b"\tKeep-Alive"))
    assert words(headers, b"connection") == {b"close", b"x", b"keep-alive"}


@pytest.mark.parametrize(
    "name",
    [
        b"connection",
        b"content-length",
        b"host",
        b"http2-settings",
        b"keep-alive",
        b"listed",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"x-proxy-error",
    ],
)
def test_what_concerns_one_connection_is_not_passed_on(name: bytes) -> None:
    kept: Headers = ((b"cookie", b"a"), (b"x-listed", b"b"), (b"cookie", b"c"))
    assert passed_on(((b"connection", b"Listed"), *kept, (name, b"x"))) == kept


@pytest.mark.parametrize(("value", "kept"), [(b"trailers", True), (b"gzip, Trailers", True), (b"gzip", False)])
def test_of_te_only_trailers_stay(value: bytes, *, kept: bool) -> None:
    assert passed_on(((b"te", value),)) == (((b"te", b"trailers"),) if kept else ())


def test_trailers_change_nothing_about_the_message() -> None:
    harmless: Headers = ((b"digest", b"a"),)
    harmful = (b"host", b"content-length", b"transfer-encoding", b"authorization", b"cookie", b"content-type", b"te")
    assert trailers_passed_on((*harmless, *((name, b"trailers") for name in harmful))) == harmless


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param(((b"connection", b"Upgrade"), (b"upgrade", b"WebSocket")), b"websocket", id="WebSocket"),
        pytest.param(((b"upgrade", b"websocket"),), b"", id="not said in Connection"),
        pytest.param(((b"connection", b"upgrade"),), b"", id="no protocol"),
        pytest.param(((b"connection", b"upgrade"), (b"upgrade", b"h2c")), b"", id="HTTP/2"),
        pytest.param(((b"connection", b"upgrade"), (b"upgrade", b"h2c, websocket")), b"", id="a choice"),
    ],
)
def test_only_websocket_is_offered(headers: Headers, expected: bytes) -> None:
    assert offered_upgrade(headers) == expected


def basic(text: bytes) -> bytes:
    return b"Basic " + b64encode(text)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param((basic(b"a:b"),), Credentials("a", "b"), id="plain"),
        pytest.param((b"bAsIc  " + b64encode(b"a:b"),), Credentials("a", "b"), id="odd case and blanks"),
        pytest.param((basic(b"a:b:c"),), Credentials("a", "b:c"), id="colon in the password"),
        pytest.param((basic(b":"),), Credentials("", ""), id="both empty"),
        pytest.param((), None, id="missing"),
        pytest.param((basic(b"a:b"), basic(b"a:b")), None, id="twice"),
        pytest.param((b"Bearer x",), None, id="another scheme"),
        pytest.param((b"Basic",), None, id="nothing behind"),
        pytest.param((b"Basic !",), None, id="not Base64"),
        pytest.param((b"Basic " + b64encode(b"a:bc").rstrip(b"="),), None, id="padding missing"),
        pytest.param((basic(b"ab"),), None, id="no colon"),
        pytest.param((basic(b"a:\xff"),), None, id="not UTF-8"),
    ],
)
def test_who_asks_is_read_or_not_at_all(values: tuple[bytes, ...], expected: Credentials | None) -> None:
    assert proxy_credentials(tuple((b"proxy-authorization", value) for value in values)) == expected
