from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.sandbox.java_option import split, without_options

if TYPE_CHECKING:
    from stockade.sandbox.proxy_secret import Secret

P = "http://bob:S3cretPw@corp:3128"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("-DproxySet=true -D http.proxyPassword S3cretPw -ea", "-ea"),
        ("-DproxySet=true -Dproxyset=1", "-Dproxyset=1"),
        ("-Dmy.proxy.password=S3cretPw -ea", "-ea"),
        (f"-DPROXY_URL={P} -DPROXY=1", "-DPROXY=1"),
        ("-Dhttp.proxyPassword=S3cretPw-Dx -ea", "-ea"),
        ('["-Dhttp.proxyPassword=S3cretPw", "-ea"]', '"-ea"]'),
        ("-D -D http.proxyHost a http.proxyPassword S3cretPw -ea", "-ea"),
    ],
)
def test_options_of_java(text: str, left: str) -> None:
    secrets: set[Secret] = set()
    assert without_options(text, secrets) == left
    assert any(secret.password.startswith("S3cretPw") for secret in secrets) == ("S3cretPw" in text)


def test_the_host_behind_a_lone_option_is_no_password() -> None:
    secrets: set[Secret] = set()
    assert without_options("-D http.proxyHost proxy.corp -ea", secrets) == "-ea"
    assert not secrets


def test_words() -> None:
    assert list(split("a  'b c'\td\\ e")) == ["a", "'b c'", "d\\ e"]
