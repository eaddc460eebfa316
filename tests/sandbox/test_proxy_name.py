from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.sandbox.proxy_name import (
    ends_in_proxy,
    gives_access,
    is_mirror,
    is_obeyed,
    is_password,
    is_password_word,
    is_secret,
    words_of,
)


def test_words() -> None:
    assert words_of("systemProp.http.proxyUser2") == ["system", "prop", "http", "proxy", "user"]
    assert words_of("SOCKS5_PROXY-x") == ["socks", "proxy", "x"]
    assert words_of("_1") == [""]


@pytest.mark.parametrize(
    "name", ["http_proxy", "HTTPPROXY", "PROXY", "no_proxy", "SOCKS5_PROXY", "CLOUDSDK_PROXY_TYPE"]
)
def test_obeyed(name: str) -> None:
    assert is_obeyed(name)


@pytest.mark.parametrize("name", ["TRUST_PROXY", "USE_PROXY", "MYPROXY", "GOPROXY", "PROXY_HOST", "PATH", ""])
def test_not_obeyed(name: str) -> None:
    assert not is_obeyed(name)
    assert ends_in_proxy(name) == (name in ("TRUST_PROXY", "USE_PROXY", "MYPROXY"))
    assert is_mirror(name) == (name == "GOPROXY")


@pytest.mark.parametrize(
    ("name", "access", "password"),
    [
        ("PROXYPASSWORD", True, True),
        ("PROXY_USERPASS2", True, True),
        ("PROXY_USER", True, False),
        ("PROXY_URL", True, False),
        ("AUTH_PROXY", True, True),
        ("SOCKS5_PASSWD", True, True),
        ("-PproxyPassword", True, True),
        ("PROXY_PASSTHROUGH", False, False),
        ("PROXY_BYPASS", False, False),
        ("OAUTH2_PROXY_PREFIX", False, False),
        ("KEYCLOAK_PROXY_MODE", False, False),
        ("jdk.http.auth.proxying.disabledSchemes", False, False),
        ("DB_PASSWORD", False, True),
    ],
)
def test_access(name: str, *, access: bool, password: bool) -> None:
    assert gives_access(name) == access
    assert is_password(name) == password


def test_keys() -> None:
    assert is_password_word("db.password")
    assert is_secret("auth")
    assert not is_password_word("auth")
    assert not is_secret("author")


@given(st.text())
def test_any_name_can_be_read(name: str) -> None:
    assert words_of(name)
    assert {is_obeyed(name), gives_access(name), is_password(name), ends_in_proxy(name)} <= {True, False}
