from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.network.no_proxy import NoProxy
from stockade.network.upstream import Secret, Upstream, UpstreamKind, Upstreams
from stockade.policy.destination import Destination
from stockade.policy.host import Host
from stockade.policy.port import Port


def upstream(kind: UpstreamKind, host: str, port: int, secret: Secret | None = None) -> Upstream:
    return Upstream(kind, Host.parse(host), Port(port), secret)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("http://p.corp:3128", upstream(UpstreamKind.HTTP, "p.corp", 3128), id="http"),
        pytest.param("http://p.corp:3128/", upstream(UpstreamKind.HTTP, "p.corp", 3128), id="slash at the end"),
        pytest.param("HTTP://P.Corp", upstream(UpstreamKind.HTTP, "p.corp", 80), id="default port, odd case"),
        pytest.param("p.corp:8080", upstream(UpstreamKind.HTTP, "p.corp", 8080), id="no scheme"),
        pytest.param("https://p.corp", upstream(UpstreamKind.HTTPS, "p.corp", 443), id="https"),
        pytest.param("socks5://10.0.0.1", upstream(UpstreamKind.SOCKS5, "10.0.0.1", 1080), id="socks5"),
        pytest.param("socks5h://[::1]:9050", upstream(UpstreamKind.SOCKS5H, "::1", 9050), id="socks5h and IPv6"),
        pytest.param("socks://p.corp", upstream(UpstreamKind.SOCKS5H, "p.corp", 1080), id="socks"),
        pytest.param(
            "http://me:p%40ss@p.corp:1",
            upstream(UpstreamKind.HTTP, "p.corp", 1, Secret(b"me", b"p@ss")),
            id="user and encoded password",
        ),
        pytest.param(
            "http://me:p@ss@p.corp:1",
            upstream(UpstreamKind.HTTP, "p.corp", 1, Secret(b"me", b"p@ss")),
            id="password with a bare @",
        ),
        pytest.param(
            "http://me@p.corp:1", upstream(UpstreamKind.HTTP, "p.corp", 1, Secret(b"me", b"")), id="user alone"
        ),
        pytest.param(
            "http://dom%5Cme:ü@p.corp:1",
            upstream(UpstreamKind.HTTP, "p.corp", 1, Secret(b"dom\\me", "ü".encode())),
            id="domain user",
        ),
    ],
)
def test_an_address_is_read(text: str, expected: Upstream) -> None:
    assert Upstream.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://",
        "ftp://p.corp:21",
        "socks4://p.corp:1080",
        "socks4a://p.corp:1080",
        "http://hunter2:0",
        "http://hunter2:99999",
        "http://me:hunter2@",
        "http://me:hunter2 x@p corp:1",
        "me:hunter2:p.corp",
        "hunter2hunter2://p.corp",
        "http://a%3Ab:hunter2@p.corp",
        "http://a:hunter2%0d%0aX@p.corp",
        "socks5://:hunter2@p.corp",
        f"socks5://me:hunter2{'x' * 250}@p.corp",
        f"http://hunter2.{'x' * 5000}",
    ],
)
def test_what_is_no_proxy_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        Upstream.parse(text)
    assert "hunter2" not in caught.value.message + caught.value.hint
    assert caught.value.hint


@given(
    st.text()
    | st.lists(st.sampled_from(["http", "socks5", "://", "@", ":", "%", "a", "[::1]", "80", "/", "\ud800"])).map(
        "".join
    )
)
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        str(Upstream.parse(text))
    except InvalidTextError as error:
        assert error.message.isprintable()  # noqa: PT017 - either outcome is right


def test_a_password_is_never_shown() -> None:
    there = Upstream.parse("http://me:hunter2@p.corp:3128")
    assert str(there) == "http://...@p.corp:3128"
    chosen = Upstreams(there, there)
    for shown in (repr(there), str(there), repr(chosen), repr(there.secret)):
        assert "hunter2" not in shown
        assert "me:" not in shown


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("http://me:hunter2@p.corp", b"Basic bWU6aHVudGVyMg=="),
        ("https://me:hunter2@p.corp", b"Basic bWU6aHVudGVyMg=="),
        ("http://p.corp", None),
        ("socks5h://me:hunter2@p.corp", None),
    ],
)
def test_http_proxies_get_a_basic_authorization(text: str, value: bytes | None) -> None:
    assert Upstream.parse(text).authorization == value


@pytest.mark.parametrize(
    ("environment", "plain", "other"),
    [
        pytest.param({}, None, None, id="none"),
        pytest.param({"http_proxy": "a:1"}, "a", None, id="http alone"),
        pytest.param({"https_proxy": "a:1"}, None, "a", id="https alone"),
        pytest.param({"all_proxy": "a:1"}, "a", "a", id="all"),
        pytest.param({"ALL_PROXY": "a:1", "HTTPS_PROXY": "b:1"}, "a", "b", id="the nearer one wins"),
        pytest.param({"http_proxy": "a:1", "HTTP_PROXY": "b:1"}, "a", None, id="small letters win"),
        pytest.param({"HTTP_PROXY": "b:1"}, "b", None, id="capitals"),
        pytest.param({"HTTP_PROXY": "b:1", "REQUEST_METHOD": "GET"}, None, None, id="capitals in a CGI program"),
        pytest.param({"https_proxy": "", "all_proxy": "a:1"}, "a", "a", id="an empty one is not set"),
    ],
)
def test_the_environment_says_which(environment: dict[str, str], plain: str | None, other: str | None) -> None:
    def named(host: str | None) -> Upstream | None:
        return None if host is None else upstream(UpstreamKind.HTTP, host, 1)

    assert Upstreams.from_environment(environment) == Upstreams(named(plain), named(other))


def test_the_list_of_exceptions_is_read_too() -> None:
    assert Upstreams.from_environment({"NO_PROXY": "a.com"}) == Upstreams(no_proxy=NoProxy.parse("a.com"))
    assert Upstreams.from_environment({"NO_PROXY": "a.com", "no_proxy": "b.com"}).no_proxy == NoProxy.parse("b.com")


def test_an_error_names_the_variable() -> None:
    with pytest.raises(InvalidTextError, match=r"^HTTPS_PROXY in the environment: "):
        Upstreams.from_environment({"HTTPS_PROXY": "http://x:y:z"})


@pytest.mark.parametrize(
    ("destination", "plain", "expected"),
    [
        pytest.param("a.com:443", False, "other", id="tunnel"),
        pytest.param("a.com:80", True, "plain", id="plain"),
        pytest.param("in.corp:443", False, None, id="excepted"),
        pytest.param("127.0.0.1:5432", False, None, id="this host"),
        pytest.param("[::1]:5432", False, None, id="this host 6"),
        pytest.param("localhost:80", True, None, id="this host by name"),
        pytest.param("x.localhost:80", True, None, id="this host by a name below"),
    ],
)
def test_the_proxy_depends_on_the_destination(destination: str, expected: str | None, *, plain: bool) -> None:
    one, two = Upstream.parse("http://plain:1"), Upstream.parse("http://other:1")
    upstreams = Upstreams(one, two, NoProxy.parse("corp"))
    chosen = upstreams.choose(Destination.parse(destination), plain=plain)
    assert (chosen and chosen.host.text) == expected


def test_kinds_say_who_resolves() -> None:
    assert {kind for kind in UpstreamKind if not kind.resolves} == {UpstreamKind.SOCKS5}
