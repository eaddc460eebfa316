"""Only the host that a rule names is reached, however another one is spelt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.network.attacks.conftest import MakeTrial, Trial
    from tests.enforcement.network.conftest import Net, Open

#: Where each spelling would lead: to a name that is not allowed, or to a port of this host that is not.
SPELLINGS = {
    "another host": "evil.test:{http}",
    "the allowed name as a prefix": "web.test.evil.test:{http}",
    "the allowed name as a suffix": "notweb.test:{http}",
    "a subdomain": "sub.web.test:{http}",
    "the parent": "test:{http}",
    "a user name": "web.test@evil.test:{http}",
    "a user name with a port": "web.test:80@evil.test:{http}",
    "a trailing dot": "evil.test.:{http}",
    "two trailing dots": "web.test..:{http}",
    "a leading dot": ".web.test:{http}",
    "a look-alike letter": "w\u0435b.test:{http}",
    "a look-alike letter in punycode": "xn--wb-lmc.test:{http}",
    "another full stop": "evil\u3002test:{http}",
    "a soft hyphen": "evil.te\u00adst:{http}",
    "percent": "evil%2etest:{http}",
    "percent NUL": "evil.test%00.web.test:{http}",
    "NUL": "evil.test\0.web.test:{http}",
    "CR LF": "evil.test\r\nX: web.test:{http}",
    "a space": "evil.test web.test:{http}",
    "a tab": "evil.test\tweb.test:{http}",
    "a backslash": "web.test\\@evil.test:{http}",
    "a fragment": "evil.test#web.test:{http}",
    "a label that is too long": "a" * 64 + ".web.test:{http}",
    "a name that is too long": "a." * 130 + "web.test:{http}",
    "bytes that are no text": "evil\udcff.test:{http}",
    "a number": "2130706433:{hidden}",
    "hexadecimal": "0x7f000001:{hidden}",
    "octal": "0177.0.0.1:{hidden}",
    "a short address": "127.1:{hidden}",
    "another loopback address": "127.0.0.2:{hidden}",
    "zero": "0:{hidden}",
    "the unspecified address": "0.0.0.0:{hidden}",
    "a mapped address": "[::ffff:127.0.0.1]:{hidden}",
    "a mapped address in hexadecimal": "[::ffff:7f00:1]:{hidden}",
    "a compatible address": "[::127.0.0.1]:{hidden}",
    "loopback on IPv6": "[::1]:{hidden}",
    "unspecified on IPv6": "[::]:{hidden}",
    "a zone": "[::1%25lo]:{hidden}",
    "localhost": "localhost:{hidden}",
    "a name below localhost": "web.localhost:{hidden}",
    "another port of an allowed host": "web.test:{hidden}",
    "another port of an allowed address": "127.0.0.1:{hidden}",
    "a port with a sign": "web.test:+{hidden}",
    "a port with zeros": "evil.test:0{http}",
}
CONNECT = """
stream, said = tunnel({target!r}.format(**facts))
if codes(said) == "200":
    stream.sendall(f"GET /{{mark}} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    said += hear(stream)
end = codes(said)
"""
ABSOLUTE = """
target = {target!r}.format(**facts)
end = codes(proxy(request(f"http://{{target}}/{{mark}}", "Connection: close")))
"""
SOCKS = """
host, _, port = {target!r}.format(**facts).rpartition(":")
name = host.strip("[]").encode("utf-8", "surrogateescape")
stream = to_proxy()
stream.sendall(b"\\5\\1" + (b"\\2" if auth else b"\\0"))
if stream.recv(2) == b"\\5\\2":
    user, token = place.username.encode(), place.password.encode()
    stream.sendall(b"\\1" + bytes([len(user)]) + user + bytes([len(token)]) + token)
    stream.recv(2)
stream.sendall(b"\\5\\1\\0\\3" + bytes([len(name)]) + name + int(port).to_bytes(2, "big"))
reply = stream.recv(10)
end = f"reply {{reply[1]}}"
if end == "reply 0":
    stream.sendall(f"GET /{{mark}} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    end = codes(hear(stream))
"""
TOO_LONG = ("a name that is too long",)
ATTACKS = {f"{name}, by CONNECT": (CONNECT.format(target=target),) for name, target in SPELLINGS.items()} | {
    f"{name}, by GET": (ABSOLUTE.format(target=target),) for name, target in SPELLINGS.items()
}
SOCKS_ATTACKS = {name: (SOCKS.format(target=target),) for name, target in SPELLINGS.items() if name not in TOO_LONG}


@pytest.fixture(scope="module")
def trial(net: Net, opened: Open, make_trial: MakeTrial) -> Trial:
    return make_trial(ATTACKS, opened(*net.allow("web.test")))


@pytest.fixture(scope="module")
def socks_trial(net: Net, opened: Open, make_trial: MakeTrial) -> Trial:
    return make_trial(SOCKS_ATTACKS, opened(*net.allow("web.test")))


@pytest.mark.parametrize("name", ATTACKS)
def test_no_spelling_of_another_host_passes_the_proxy(trial: Trial, name: str) -> None:
    assert trial.control[name].heard
    assert trial.inside[name].heard == ()
    assert trial.inside[name].end in ("400", "403")


@pytest.mark.parametrize("name", SOCKS_ATTACKS)
def test_no_spelling_of_another_host_passes_by_socks(socks_trial: Trial, name: str) -> None:
    assert socks_trial.control[name].heard
    assert socks_trial.inside[name].heard == ()
    assert socks_trial.inside[name].end in ("reply 2", "reply 1")


SAME = {
    "in capitals": "WEB.TEST:{http}",
    "with the dot of the root": "web.test.:{http}",
    "as an address": "127.0.0.1:{http}",
    "as an odd address": "0x7f.1:{http}",
}


@pytest.mark.parametrize("name", SAME)
def test_the_allowed_host_is_reached_in_any_spelling(net: Net, opened: Open, make_trial: MakeTrial, name: str) -> None:
    for template in (CONNECT, ABSOLUTE):
        both = make_trial({name: (template.format(target=SAME[name]),)}, opened(*net.allow("web.test")))
        assert both.control[name].heard
        assert (both.inside[name].end.split()[-1], both.inside[name].heard != ()) == ("200", True)
