from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.sandbox.proxy_secret import Needles, Secret, decoded, is_plain, of_addresses, of_password


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("http://bob:pa%23ss@corp:3128/", Secret("bob", "pa#ss", "corp:3128")),
        ("http://bob:pa#ss@corp:3128/", Secret("bob", "pa#ss", "corp:3128")),
        ("http://bob:p@ss@corp", Secret("bob", "p@ss", "corp")),
        ("bob:pw@corp:1", Secret("bob", "pw", "corp:1")),
        ("http://a:b@c,http://bob:pw@d", Secret("bob", "pw", "d")),
        ('{"a":"http://bob:pw@d"}', Secret("bob", "pw", "d")),
        ("x://h/?proxy=http://bob:pw@d", Secret("bob", "pw", "d")),
        ("http://corp:3128/x", Secret(place="corp:3128")),
    ],
)
def test_addresses(text: str, secret: Secret) -> None:
    assert secret in set(of_addresses(text))


def test_an_address_without_a_scheme_and_a_user_is_nothing() -> None:
    assert set(of_addresses("localhost,127.0.0.1")) == set()


@pytest.mark.parametrize("text", ["bob:pw", " 'bob:pw' ", "Basic Ym9iOnB3", "Ym9iOnB3", b64encode(b"bob:pw").decode()])
def test_passwords(text: str) -> None:
    assert Secret("bob", "pw") in set(of_password(text))


@pytest.mark.parametrize("text", ["", "TRUE", " basic ", "/etc/x/y", "null"])
def test_no_passwords(text: str) -> None:
    assert set(of_password(text)) == set()
    assert is_plain(text) != (text == "/etc/x/y")


def test_a_password_behind_backslashes_is_found() -> None:
    secret = Secret("", "pa/ss#1")
    assert Needles({secret}).are_in(r"x pa\/ss\#1 y")
    assert not Needles({secret}, ["/opt/pa/ss#1"]).are_in("pa/ss#1")


def test_decoded() -> None:
    assert decoded("%41%4a%zz%") == "AJ%zz%"


@given(st.text(), st.text())
def test_any_text_can_be_read_and_searched(text: str, value: str) -> None:
    needles = Needles({*of_addresses(text), *of_password(text)})
    assert needles.are_in(value) in (True, False)


def test_a_secret_is_not_shown() -> None:
    assert repr(Secret("a", "b", "c")) == "Secret(...)"
