from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.host import Host
from stockade.policy.port import Port

EXAMPLE = Host.parse("example.com")


@pytest.mark.parametrize(
    ("text", "pattern", "canonical"),
    [
        pytest.param("example.com", DomainPattern(EXAMPLE), "example.com", id="exact"),
        pytest.param("Example.COM.", DomainPattern(EXAMPLE), "example.com", id="case and trailing dot"),
        pytest.param("example.com:443", DomainPattern(EXAMPLE, port=Port(443)), "example.com:443", id="port"),
        pytest.param("example.com.:443", DomainPattern(EXAMPLE, port=Port(443)), "example.com:443", id="dot and port"),
        pytest.param("*.example.com", DomainPattern(EXAMPLE, subdomains=True), "*.example.com", id="subdomains"),
        pytest.param("*.EXAMPLE.com.", DomainPattern(EXAMPLE, subdomains=True), "*.example.com", id="subdomains, odd"),
        pytest.param(
            "*.example.com:80",
            DomainPattern(EXAMPLE, subdomains=True, port=Port(80)),
            "*.example.com:80",
            id="subdomains and port",
        ),
        pytest.param("localhost", DomainPattern(Host.parse("localhost")), "localhost", id="single label"),
        pytest.param("my_db:5432", DomainPattern(Host.parse("my_db"), port=Port(5432)), "my_db:5432", id="container"),
        pytest.param(
            "*.bücher.example",
            DomainPattern(Host.parse("xn--bcher-kva.example"), subdomains=True),
            "*.xn--bcher-kva.example",
            id="international subdomains",
        ),
        pytest.param("*.co.uk", DomainPattern(Host.parse("co.uk"), subdomains=True), "*.co.uk", id="public suffix"),
        pytest.param("127.0.0.1:80", DomainPattern(Host.parse("127.0.0.1"), port=Port(80)), "127.0.0.1:80", id="IPv4"),
        pytest.param("0x7f.1", DomainPattern(Host.parse("127.0.0.1")), "127.0.0.1", id="odd IPv4"),
        pytest.param("[::1]", DomainPattern(Host.parse("::1")), "[::1]", id="IPv6"),
        pytest.param(
            "[0::1]:8080", DomainPattern(Host.parse("::1"), port=Port(8080)), "[::1]:8080", id="IPv6 and port"
        ),
        pytest.param("[::ffff:127.0.0.1]", DomainPattern(Host.parse("127.0.0.1")), "127.0.0.1", id="mapped IPv4"),
    ],
)
def test_a_pattern_is_read_in_both_lists(text: str, pattern: DomainPattern, canonical: str) -> None:
    assert DomainPattern.parse(text) == pattern
    assert DomainPattern.parse(text, deny=True) == pattern
    assert str(pattern) == canonical


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        pytest.param("*", DomainPattern(None), id="everything"),
        pytest.param("*:25", DomainPattern(None, port=Port(25)), id="everything on a port"),
        pytest.param("*.com", DomainPattern(Host.parse("com"), subdomains=True), id="a top-level domain"),
        pytest.param("*.localhost", DomainPattern(Host.parse("localhost"), subdomains=True), id="below localhost"),
    ],
)
def test_what_is_too_broad_to_allow_may_be_denied(text: str, pattern: DomainPattern) -> None:
    assert DomainPattern.parse(text, deny=True) == pattern
    assert str(pattern) == text
    with pytest.raises(InvalidTextError, match="too much to allow") as caught:
        DomainPattern.parse(text)
    assert "example" in caught.value.hint


@pytest.mark.parametrize("deny", [False, True], ids=["allow", "deny"])
@pytest.mark.parametrize(
    ("text", "why", "hint"),
    [
        pytest.param("", "is empty", "write example.com", id="empty"),
        pytest.param("https://example.com", "scheme", "write example.com", id="scheme"),
        pytest.param("https://example.com:8443/a/b", "scheme", "write example.com:8443", id="URL"),
        pytest.param("https://u:p@example.com/", "scheme", "write example.com", id="URL with user"),
        pytest.param("https://*.example.com/*", "scheme", "write *.example.com", id="URL with wildcards"),
        pytest.param("https://", "scheme", "write example.com", id="scheme alone"),
        pytest.param("example.com/path", "path", "write example.com", id="path"),
        pytest.param("example.com/", "path", "write example.com", id="trailing slash"),
        pytest.param("/etc", "path", "write example.com", id="path alone"),
        pytest.param("10.0.0.0/8", "ranges", "one by one", id="range of addresses"),
        pytest.param("user@example.com", "user name", "write example.com", id="user"),
        pytest.param("example.com evil.com", "space", "write", id="space inside"),
        pytest.param(" example.com", "space", "write", id="space before"),
        pytest.param("example.com\n", "invisible", "write", id="newline"),
        pytest.param("example.com\0", "invisible", "write", id="NUL"),
        pytest.param("\u200b*.example.com", "whole labels", "*.example.com", id="zero-width before the wildcard"),
        pytest.param("a.com,b.com", 'character ","', "write", id="two in one"),
        pytest.param("**.example.com", "whole labels", "*.example.com", id="two stars"),
        pytest.param("*foo.com", "whole labels", "*.example.com", id="half a label"),
        pytest.param("*example.com", "whole labels", "*.example.com", id="star without a dot"),
        pytest.param("a.*.com", "whole labels", "*.example.com", id="star in the middle"),
        pytest.param("*.*.com", "whole labels", "*.example.com", id="two wildcards"),
        pytest.param("example.*", "whole labels", "*.example.com", id="star at the end"),
        pytest.param("＊.example.com", "has a *", "write", id="full-width star"),  # noqa: RUF001 (look-alike)
        pytest.param("*.", "empty", "write", id="wildcard alone"),
        pytest.param("*..com", "empty", "write", id="wildcard and empty label"),
        pytest.param(".example.com", "empty", "write", id="leading dot"),
        pytest.param("*.1.2.3.4", "no subdomains", "write 1.2.3.4", id="wildcard of an address"),
        pytest.param("*.[::1]", "no subdomains", "write [::1]", id="wildcard of an IPv6 address"),
        pytest.param("example.com:*", "no port", "every port", id="every port"),
        pytest.param("example.com:", "no port", "every port", id="empty port"),
        pytest.param("example.com:0", "not a port", "1 to 65535", id="port zero"),
        pytest.param("example.com:https", "not a port", "1 to 65535", id="service name"),
        pytest.param("example.com:80-90", "not a port", "1 to 65535", id="range of ports"),
        pytest.param("domain:example.com", "not a port", "1 to 65535", id="rule prefix"),
        pytest.param("::1", "colons", "[::1]", id="IPv6 without brackets"),
        pytest.param(":443", "empty", "write", id="port alone"),
        pytest.param("1.2.3.256", "too large", "write", id="bad address"),
    ],
)
def test_anything_else_is_refused_with_a_way_out(text: str, why: str, hint: str, *, deny: bool) -> None:
    with pytest.raises(InvalidTextError) as caught:
        DomainPattern.parse(text, deny=deny)
    assert why in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    ("pattern", "host", "port", "expected"),
    [
        pytest.param("example.com", "example.com", 443, True, id="itself"),
        pytest.param("example.com", "EXAMPLE.com.", 443, True, id="itself, odd spelling"),
        pytest.param("example.com", "www.example.com", 443, False, id="subdomain of an exact rule"),
        pytest.param("example.com", "evilexample.com", 443, False, id="prefix look-alike"),
        pytest.param("example.com", "example.com.evil.com", 443, False, id="suffix look-alike"),
        pytest.param("example.com", "example.co", 443, False, id="shorter"),
        pytest.param("example.com", "ex\u0430mple.com", 443, False, id="cyrillic look-alike"),
        pytest.param("example.com", "examplexcom", 443, False, id="the dot is no wildcard"),
        pytest.param("*.example.com", "example.com", 443, False, id="apex"),
        pytest.param("*.example.com", "a.example.com", 443, True, id="subdomain"),
        pytest.param("*.example.com", "a.b.c.example.com", 443, True, id="deep subdomain"),
        pytest.param("*.example.com", "evilexample.com", 443, False, id="look-alike without a dot"),
        pytest.param("*.example.com", "a.example.com.evil.com", 443, False, id="parent look-alike"),
        pytest.param("*.example.com", "a.evilexample.com", 443, False, id="subdomain of a look-alike"),
        pytest.param("*.bücher.example", "a.xn--bcher-kva.example", 443, True, id="international"),
        pytest.param("xn--bcher-kva.example", "BÜCHER.example", 443, True, id="encoded rule, plain request"),
        pytest.param("example.com:443", "example.com", 443, True, id="its port"),
        pytest.param("example.com:443", "example.com", 80, False, id="another port"),
        pytest.param("*.example.com:443", "a.example.com", 8443, False, id="another port, longer"),
        pytest.param("127.0.0.1", "2130706433", 80, True, id="decimal address"),
        pytest.param("127.0.0.1", "[::ffff:7f00:1]", 80, True, id="mapped address"),
        pytest.param("127.0.0.1", "localhost", 80, False, id="a name is no address"),
        pytest.param("localhost", "127.0.0.1", 80, False, id="an address is no name"),
        pytest.param("127.0.0.1", "127.0.0.1.nip.io", 80, False, id="address as subdomain"),
        pytest.param("[::1]", "0:0:0:0:0:0:0:1", 80, True, id="IPv6"),
        pytest.param("[::1]", "127.0.0.1", 80, False, id="two loopbacks"),
        pytest.param("*", "127.0.0.1", 80, True, id="everything covers addresses"),
        pytest.param("*:25", "example.com", 25, True, id="everything on its port"),
        pytest.param("*:25", "example.com", 80, False, id="everything on another port"),
        pytest.param("*.com", "example.com", 80, True, id="top-level domain"),
        pytest.param("*.com", "com", 80, False, id="top-level domain itself"),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, host: str, port: int, *, expected: bool) -> None:
    assert DomainPattern.parse(pattern, deny=True).matches(Host.parse(host), Port(port)) is expected


def test_a_wildcard_never_covers_an_address() -> None:
    below_four = DomainPattern(Host.parse("4.example").but(text="3.4"), subdomains=True)
    assert not below_four.matches(Host.parse("1.2.3.4"), Port(80))


TEXTS = st.text(st.sampled_from("ab.*:[]0178/@ üxn-") | st.characters(exclude_categories=()))


@given(text=TEXTS, deny=st.booleans())
def test_parsing_is_idempotent_and_raises_only_our_error(text: str, *, deny: bool) -> None:
    try:
        pattern = DomainPattern.parse(text, deny=deny)
    except InvalidTextError:
        return
    assert DomainPattern.parse(pattern.text, deny=deny) == pattern


@given(TEXTS)
def test_a_deny_list_takes_all_that_an_allow_list_takes(text: str) -> None:
    try:
        pattern = DomainPattern.parse(text)
    except InvalidTextError:
        return
    assert DomainPattern.parse(text, deny=True) == pattern
    assert not pattern.any_host
