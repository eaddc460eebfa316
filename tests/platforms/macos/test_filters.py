from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.filters import compile_filter
from stockade.platforms.macos.sexpr import Quoted, read


def _file(path: str, kind: str = "REGULAR-FILE") -> Attempt:
    return Attempt("file-read-data", path, kind)


def _named(name: str) -> Attempt:
    return Attempt("mach-lookup", name=name)


def _to(address: str) -> Attempt:
    return Attempt("network-outbound", remote=address)


CASES = [
    ('(literal "/a")', _file("/a"), True),
    ('(literal "/a")', _file("/a/b"), False),
    ('(literal "/a" "/b")', _file("/b"), True),
    ('(path "/a")', _file("/a"), True),
    ('(subpath "/a")', _file("/a"), True),
    ('(subpath "/a")', _file("/a/b/c"), True),
    ('(subpath "/a")', _file("/ab"), False),
    ('(subpath "/")', _file("/x"), True),
    ('(subpath "/")', _named("x"), False),
    ('(prefix "/a")', _file("/ab"), True),
    ('(prefix "/a")', _file("/b"), False),
    ('(regex "^/a$")', _file("/a"), True),
    (r'(regex #"^/a\.b$")', _file("/a.b"), True),
    (r'(regex #"^/a\.b$")', _file("/axb"), False),
    ('(path-regex "^/")', _file("/a"), True),
    ('(regex "a")', _named("a"), False),
    ("(vnode-type DIRECTORY)", _file("/a", "DIRECTORY"), True),
    ("(vnode-type DIRECTORY)", _file("/a", "SYMLINK"), False),
    ('(require-all (subpath "/a") (vnode-type SYMLINK))', _file("/a/l", "SYMLINK"), True),
    ('(require-all (subpath "/a") (vnode-type SYMLINK))', _file("/a/l"), False),
    ('(require-any (literal "/a") (literal "/b"))', _file("/b"), True),
    ('(require-any (literal "/a") (literal "/b"))', _file("/c"), False),
    ('(require-not (literal "/a"))', _file("/b"), True),
    ('(require-not (require-any (literal "/a") (literal "/b")))', _file("/b"), False),
    ('(extension "com.apple.sandbox.pty")', _file("/dev/ttys001"), False),
    ('(global-name "com.apple.logd")', _named("com.apple.logd"), True),
    ('(global-name "com.apple.logd")', _named("com.apple.logd2"), False),
    ('(global-name-prefix "com.apple.")', _named("com.apple.logd"), True),
    (r'(global-name-regex #"^com\.apple\.[a-z]+$")', _named("com.apple.logd"), True),
    (r'(global-name-regex #"^com\.apple\.[a-z]+$")', _named("com_apple.logd"), False),
    ('(local-name "a")', _named("a"), True),
    ('(sysctl-name "hw.ncpu")', _named("hw.ncpu"), True),
    ('(sysctl-name-prefix "hw.")', _named("hw.ncpu"), True),
    ('(sysctl-name-prefix "hw.")', _named("kern.hostname"), False),
    ('(ipc-posix-name "a")', _named("a"), True),
    ('(iokit-user-client-class "X")', _named("X"), True),
    ('(remote ip "localhost:80")', _to("127.0.0.1:80"), True),
    ('(remote ip "localhost:80")', _to("[::1]:80"), True),
    ('(remote ip "localhost:80")', _to("127.0.0.1:81"), False),
    ('(remote ip "localhost:80")', _to("192.0.2.1:80"), False),
    ('(remote ip "localhost:80")', _to("[::ffff:127.0.0.1]:80"), False),
    ('(remote ip "localhost:*")', _to("127.0.0.1:5432"), True),
    ('(remote tcp "*:443")', _to("192.0.2.1:443"), True),
    ('(remote udp "*:*")', _to("192.0.2.1:53"), True),
    ('(remote ip "*:*")', _file("/a"), False),
    ('(local ip "*:*")', Attempt("network-bind", local="0.0.0.0:8000"), True),
    ('(local ip "localhost:8000")', Attempt("network-bind", local="127.0.0.1:8000"), True),
    ('(local ip "*:*")', _to("192.0.2.1:53"), False),
    ('(remote unix-socket (subpath "/tmp"))', Attempt("network-outbound", "/tmp/s"), True),
    ('(remote unix-socket (path-literal "/tmp/s"))', Attempt("network-outbound", "/tmp/t"), False),
    ("(socket-domain AF_UNIX)", Attempt("system-socket", domain="AF_UNIX"), True),
    ("(socket-domain AF_UNIX)", Attempt("system-socket", domain="AF_SYSTEM"), False),
    ("(socket-protocol 2)", Attempt("system-socket", protocol="2"), True),
    ("(target same-sandbox)", Attempt("signal", target="same-sandbox"), True),
    ("(target same-sandbox)", Attempt("signal", target="others"), False),
]


@pytest.mark.parametrize(
    ("text", "attempt", "matches"), [pytest.param(*case, id=str(at)) for at, case in enumerate(CASES)]
)
def test_filters(text: str, attempt: Attempt, matches: bool) -> None:  # noqa: FBT001 - a column of the table
    (form,) = read(text)
    assert compile_filter(form)(attempt) == matches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('(no-such "a")', r'the filter "(no-such \"a\")" is not known here', id="unknown"),
        pytest.param("(literal a)", 'the filter "(literal a)" is not known here', id="a-word-for-a-text"),
        pytest.param("(literal)", 'the filter "(literal)" is not known here', id="nothing-for-a-text"),
        pytest.param("(require-all)", 'the filter "(require-all)" is not known here', id="all-of-nothing"),
        pytest.param('"a"', r'the filter "\"a\"" is not known here', id="a-text"),
        pytest.param(
            '(remote ip "192.0.2.1:80")', '"192.0.2.1:80" is no address that Seatbelt takes', id="a-real-address"
        ),
        pytest.param('(remote ip "localhost")', '"localhost" is no address that Seatbelt takes', id="no-port"),
    ],
)
def test_what_is_not_known_is_not_guessed(text: str, message: str) -> None:
    (form,) = read(text)
    with pytest.raises(InvalidTextError) as caught:
        compile_filter(form)
    assert caught.value.message == message


words = st.sampled_from(["literal", "regex", "require-all", "require-not", "remote", "ip", "local", "x"]) | st.text()
forms = st.recursive(
    words | st.text("*:a[(1").map(Quoted), lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=10
)


@given(forms)
def test_nothing_else_is_raised(form: object) -> None:
    with suppress(InvalidTextError):
        compile_filter(form)  # type: ignore[arg-type] # whatever a profile may hold
