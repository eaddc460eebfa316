# ruff: noqa: RUF001 (look-alike characters are what is tested here)
from __future__ import annotations

import socket
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.host import Host, HostKind

LONGEST_LABEL = "a" * 63
LONGEST_NAME = ".".join([LONGEST_LABEL] * 3 + ["a" * 61])


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("example.com", "example.com", id="plain"),
        pytest.param("EXAMPLE.Com", "example.com", id="case"),
        pytest.param("example.com.", "example.com", id="one trailing dot"),
        pytest.param("localhost", "localhost", id="single label"),
        pytest.param("a", "a", id="single letter"),
        pytest.param("r3---sn-4g5e6nze.googlevideo.com", "r3---sn-4g5e6nze.googlevideo.com", id="hyphens inside"),
        pytest.param("1.2.3.example", "1.2.3.example", id="numbers before a name"),
        pytest.param("127.0.0.1.nip.io", "127.0.0.1.nip.io", id="address as subdomain"),
        pytest.param("1password.com", "1password.com", id="label begins with a digit"),
        pytest.param("foo.0x1g", "foo.0x1g", id="almost hexadecimal"),
        pytest.param("_dmarc.example.com", "_dmarc.example.com", id="service label"),
        pytest.param("my_bucket.s3.amazonaws.com", "my_bucket.s3.amazonaws.com", id="underscore in a subdomain"),
        pytest.param("my_db", "my_db", id="container name"),
        pytest.param(f"{LONGEST_LABEL}.com", f"{LONGEST_LABEL}.com", id="longest label"),
        pytest.param(LONGEST_NAME, LONGEST_NAME, id="longest name"),
        pytest.param(f"{LONGEST_NAME}.", LONGEST_NAME, id="longest name and dot"),
        pytest.param("bücher.example", "xn--bcher-kva.example", id="international"),
        pytest.param("BÜCHER.example", "xn--bcher-kva.example", id="international, upper case"),
        pytest.param("bu\u0308cher.example", "xn--bcher-kva.example", id="international, decomposed"),
        pytest.param("xn--bcher-kva.example", "xn--bcher-kva.example", id="already encoded"),
        pytest.param("XN--BCHER-KVA.example", "xn--bcher-kva.example", id="already encoded, upper case"),
        pytest.param("faß.de", "xn--fa-hia.de", id="sharp s is kept"),
        pytest.param("例え.テスト", "xn--r8jz45g.xn--zckzah", id="japanese"),
        pytest.param("例え。テスト", "xn--r8jz45g.xn--zckzah", id="ideographic full stop"),
        pytest.param("example．com", "example.com", id="full-width dot"),
        pytest.param("example｡com", "example.com", id="half-width dot"),
        pytest.param("ｅｘａｍｐｌｅ.com", "example.com", id="full-width letters"),
        pytest.param("\N{KELVIN SIGN}ernel.org", "kernel.org", id="kelvin sign"),
        pytest.param("ⓔxample.com", "example.com", id="circled letter"),
        pytest.param("ｘｎ--bcher-kva.example", "xn--bcher-kva.example", id="full-width prefix"),
        pytest.param("\u0430pple.com", "xn--pple-43d.com", id="cyrillic look-alike is another name"),
    ],
)
def test_a_name_has_one_form(text: str, canonical: str) -> None:
    assert Host.parse(text) == Host(canonical, HostKind.NAME)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("127.0.0.1", "127.0.0.1", id="dotted quad"),
        pytest.param("127.0.0.1.", "127.0.0.1", id="trailing dot"),
        pytest.param("127.1", "127.0.0.1", id="two parts"),
        pytest.param("127.0.1", "127.0.0.1", id="three parts"),
        pytest.param("127.0.258", "127.0.1.2", id="last of three parts takes two bytes"),
        pytest.param("10.66051", "10.1.2.3", id="last of two parts takes three bytes"),
        pytest.param("2130706433", "127.0.0.1", id="one decimal"),
        pytest.param("4294967295", "255.255.255.255", id="largest decimal"),
        pytest.param("0", "0.0.0.0", id="zero"),  # noqa: S104 (an address to test, none to bind)
        pytest.param("0x7f000001", "127.0.0.1", id="one hexadecimal"),
        pytest.param("0X7F.0X1", "127.0.0.1", id="upper case hexadecimal"),
        pytest.param("0x7f.0.0.0x1", "127.0.0.1", id="mixed"),
        pytest.param("017700000001", "127.0.0.1", id="one octal"),
        pytest.param("0177.0.0.01", "127.0.0.1", id="octal parts"),
        pytest.param("0000177.0.0.1", "127.0.0.1", id="more zeros"),
        pytest.param("010.010.010.010", "8.8.8.8", id="octal that looks decimal"),
        pytest.param("169.254.43518", "169.254.169.254", id="metadata, short"),
        pytest.param("0xa9fea9fe", "169.254.169.254", id="metadata, hexadecimal"),
        pytest.param("１２７.0.0.1", "127.0.0.1", id="full-width digits"),
        pytest.param("127。0。0。1", "127.0.0.1", id="ideographic full stops"),
        pytest.param("①②⑦.⓪.⓪.①", "127.0.0.1", id="circled digits"),
        pytest.param("0ｘ7f.1", "127.0.0.1", id="full-width x"),
        pytest.param("::ffff:127.0.0.1", "127.0.0.1", id="mapped"),
        pytest.param("[::FFFF:7f00:1]", "127.0.0.1", id="mapped in hexadecimal and brackets"),
        pytest.param("0:0:0:0:0:ffff:7f00:0001", "127.0.0.1", id="mapped, written out"),
    ],
)
def test_an_ipv4_address_has_one_form(text: str, canonical: str) -> None:
    assert Host.parse(text) == Host(canonical, HostKind.IPV4)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("::1", "::1", id="bare"),
        pytest.param("[::1]", "::1", id="bracketed"),
        pytest.param("::", "::", id="unspecified"),
        pytest.param("0:0:0:0:0:0:0:1", "::1", id="written out"),
        pytest.param("2001:DB8::0001", "2001:db8::1", id="case and zeros"),
        pytest.param("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1", id="first run is compressed"),
        pytest.param("::127.0.0.1", "::7f00:1", id="IPv4-compatible stays IPv6"),
        pytest.param("64:ff9b::127.0.0.1", "64:ff9b::7f00:1", id="NAT64 stays IPv6"),
    ],
)
def test_an_ipv6_address_has_one_form(text: str, canonical: str) -> None:
    host = Host.parse(text)
    assert host == Host(canonical, HostKind.IPV6)
    assert str(host) == f"[{canonical}]"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(".", "empty", id="a dot"),
        pytest.param("example.com..", "empty", id="two trailing dots"),
        pytest.param(".example.com", "empty", id="leading dot"),
        pytest.param("a..b", "empty", id="empty label"),
        pytest.param("a。。b", "empty", id="empty label by mapping"),
        pytest.param("a b", "space", id="space"),
        pytest.param(" example.com", "space", id="leading space"),
        pytest.param("127.0.0.1 ", "space", id="address and space"),
        pytest.param("example.com\0.evil.com", "U\\+0000", id="NUL"),
        pytest.param("example.com\n", "U\\+000A", id="newline"),
        pytest.param("example.com\r\nHost: evil", "U\\+000D", id="header injection"),
        pytest.param("a\tb", "U\\+0009", id="tab"),
        pytest.param("a\x7fb", "U\\+007F", id="DEL"),
        pytest.param("a\u00a0b", "U\\+00A0", id="no-break space"),
        pytest.param("a\u3000b", "U\\+3000", id="ideographic space"),
        pytest.param("a\u2028b", "U\\+2028", id="line separator"),
        pytest.param("exam\u00adple.com", "U\\+00AD", id="soft hyphen"),
        pytest.param("exam\u200bple.com", "U\\+200B", id="zero-width space"),
        pytest.param("exam\u200dple.com", "U\\+200D", id="zero-width joiner"),
        pytest.param("example.com\ufeff", "U\\+FEFF", id="byte order mark"),
        pytest.param("exam\ufe0fple.com", "U\\+FE0F", id="variation selector"),
        pytest.param("\u3164.com", "U\\+3164", id="hangul filler"),
        pytest.param("a\u202eb.com", "U\\+202E", id="bidi override"),
        pytest.param("a\udc80b", "U\\+DC80", id="surrogate"),
        pytest.param("a%62", "percent", id="percent"),
        pytest.param("127.0.0.1%00", "percent", id="percent NUL"),
        pytest.param("a％62", "percent", id="full-width percent"),
        pytest.param("a/b", "slash", id="slash"),
        pytest.param("a／b", "slash", id="full-width slash"),
        pytest.param("\N{ACCOUNT OF}.com", "slash", id="account of, which maps to a slash"),
        pytest.param("a\\b", "backslash", id="backslash"),
        pytest.param("example.com@evil.com", "user name", id="user name"),
        pytest.param("example.com＠evil.com", "user name", id="full-width at"),
        pytest.param("a'b", 'character "\'"', id="quote"),
        pytest.param('a"b', "character", id="double quote"),
        pytest.param("a<b", "character", id="angle bracket"),
        pytest.param("a,b", "character", id="comma"),
        pytest.param("a#b", "character", id="hash"),
        pytest.param("a?b", "character", id="question mark"),
        pytest.param("a;b", "character", id="semicolon"),
        pytest.param("$(id).com", "character", id="shell"),
        pytest.param("*.example.com", "has a \\*", id="wildcard"),
        pytest.param("example.com:443", "colon", id="port"),
        pytest.param("example.com：443", "colon", id="full-width colon"),
        pytest.param("-a.com", "hyphen", id="leading hyphen"),
        pytest.param("-oProxyCommand=x", "character", id="an option"),
        pytest.param("a-.com", "hyphen", id="trailing hyphen"),
        pytest.param("-", "hyphen", id="only a hyphen"),
        pytest.param("a." + "b" * 64, "63 bytes", id="label too long"),
        pytest.param("a." + "ü" * 63, "international", id="label too long once encoded"),
        pytest.param("a" + LONGEST_NAME, "(63|253) bytes", id="label and name too long"),
        pytest.param("a." * 126 + "aa", "253 bytes", id="name too long"),
        pytest.param("a" * 1_000_000, "too long", id="huge"),
        pytest.param("example.c_m", "underscore", id="underscore in the last label"),
        pytest.param("b_ü.example", "international", id="underscore in an international label"),
        pytest.param("1.2.3.256", "too large", id="last part too large"),
        pytest.param("256.1.1.1", "too large", id="first part too large"),
        pytest.param("1.2.65536", "too large", id="third of three too large"),
        pytest.param("4294967296", "too large", id="decimal too large"),
        pytest.param("1.2.3.4.5", "four parts", id="five parts"),
        pytest.param("0x", "no part", id="empty hexadecimal"),
        pytest.param("1.0x", "no part", id="empty hexadecimal part"),
        pytest.param("08", "no part", id="no octal digit"),
        pytest.param("127.0.0.09", "no part", id="no octal digit in a part"),
        pytest.param("foo.123", "no part", id="numeric last label"),
        pytest.param("foo.0xff", "no part", id="hexadecimal last label"),
        pytest.param("foo.１２３", "no part", id="full-width numeric last label"),
        pytest.param("1..2", "empty", id="address with an empty part"),
        pytest.param("0" * 64 + "1", "no part", id="too many zeros"),
        pytest.param("[::1", "IPv6", id="open bracket"),
        pytest.param("::1]", "IPv6", id="close bracket"),
        pytest.param("[[::1]]", "IPv6", id="two brackets"),
        pytest.param("[]", "IPv6", id="empty brackets"),
        pytest.param("[127.0.0.1]", "IPv6", id="IPv4 in brackets"),
        pytest.param("[example.com]", "IPv6", id="name in brackets"),
        pytest.param("[::1].", "IPv6", id="trailing dot after a bracket"),
        pytest.param("[::1]:80", "IPv6", id="bracket and port"),
        pytest.param(":::1", "IPv6", id="three colons"),
        pytest.param("1:2:3:4:5:6:7:8:9", "IPv6", id="nine groups"),
        pytest.param("::ffff:0177.0.0.1", "IPv6", id="octal in a mapped address"),
        pytest.param("::ffff:127.1", "IPv6", id="short form in a mapped address"),
        pytest.param("fe80::1%eth0", "percent", id="zone"),
        pytest.param("[fe80::1%25eth0]", "percent", id="encoded zone"),
        pytest.param("::１", "IPv6", id="full-width digit in IPv6"),
        pytest.param("xn--", "hyphen", id="prefix alone"),
        pytest.param("xn--a", "international", id="undecodable"),
        pytest.param("xn--example-.com", "hyphen", id="encodes plain letters"),
        pytest.param("xn--ABC-.com", "hyphen", id="encodes capitals"),
        pytest.param("xn---bbk.com", "(international|false spelling)", id="second spelling of one label"),
        pytest.param("xn--99999999999", "international", id="overflow"),
        pytest.param("xn--a-ecp.ru", "international", id="not normalised"),
        pytest.param("xn--ls8h.la", "international", id="symbol, encoded"),
        pytest.param("💩.la", "international", id="symbol"),
        pytest.param("\u0308a.com", "international", id="leading combining mark"),
        pytest.param("a\u05d0.com", "international", id="mixed directions"),
        pytest.param("⒈com", "no international name", id="digit with a dot"),
        pytest.param("…", "no international name", id="ellipsis"),
        pytest.param("ab--ü.com", "international", id="hyphens in the place of a prefix"),
    ],
)
def test_what_has_no_one_form_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidTextError, match=why) as caught:
        Host.parse(text)
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 500
    assert caught.value.hint


def test_a_name_and_the_address_it_may_stand_for_are_two_hosts() -> None:
    assert Host.parse("localhost") != Host.parse("127.0.0.1")


HOSTILE = st.text(
    st.sampled_from("aZ09xX.-_:[]%@/ \\\0\n*ü。．１②ßK\u00ad\u200d\u202e\u05d0例")
    | st.characters(exclude_categories=())
)
ENCODED = st.from_regex(r"xn--[a-z0-9-]{1,20}(\.com)?", fullmatch=True)
LETTERS = st.text(st.characters(categories=["L", "N", "M"]), min_size=1, max_size=12)
ADDRESSES = st.ip_addresses().map(str)


@given(HOSTILE | ENCODED | LETTERS | ADDRESSES)
@example("1" * 5000)
def test_parsing_is_idempotent_and_raises_only_our_error(text: str) -> None:
    try:
        host = Host.parse(text)
    except InvalidTextError:
        return
    assert Host.parse(host.text) == host
    assert Host.parse(str(host)) == host
    assert host.text.isascii()
    assert host.text == host.text.lower()


@given(ADDRESSES)
def test_every_address_is_an_address(text: str) -> None:
    assert Host.parse(text).kind is not HostKind.NAME


def system_reading(text: str) -> str | None:
    """Read as the C library does; None where it takes no address."""
    try:
        return socket.inet_ntoa(socket.inet_aton(text))
    except OSError:
        return None


NUMBERS = (
    st.integers(0, 2**33) | st.integers(0, 300) | st.sampled_from([2**8, 2**16, 2**24, 2**32]).map(lambda n: n - 1)
)
SPELLINGS = st.sampled_from(["{}", "0{:o}", "00{:o}", "0x{:x}", "0X{:X}", "0x0{:x}", "0{}", "{:x}"])
PARTS = st.builds(lambda spelling, number: spelling.format(number), SPELLINGS, NUMBERS)
NUMERIC_HOSTS = st.lists(PARTS, min_size=1, max_size=5).map(".".join) | st.text("0123456789xXaf.", min_size=1)


@given(NUMERIC_HOSTS)
def test_numbers_are_read_as_the_system_reads_them(text: str) -> None:
    expected = system_reading(text)
    try:
        host = Host.parse(text)
    except InvalidTextError:
        assert expected is None or len(max(text.split("."), key=len)) > 63
        return
    if expected is not None:
        assert host == Host(expected, HostKind.IPV4)
    elif host.kind is HostKind.IPV4:
        assert text.endswith("."), "a trailing dot is all that we take and the system does not"


def test_every_short_spelling_agrees_with_the_system() -> None:
    parts = ["0", "1", "00", "01", "08", "0x", "0x1", "0xg", "255", "256", "0377", "0400", "65535", "65536", "a", "x"]
    for count in (1, 2, 3):
        for combination in product(parts, repeat=count):
            text = ".".join(combination)
            expected = system_reading(text)
            try:
                host = Host.parse(text)
            except InvalidTextError:
                host = None
            address = host.text if host is not None and host.kind is HostKind.IPV4 else None
            assert (text, address) == (text, expected)
