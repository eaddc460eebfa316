from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.sandbox.host_proxy import without_proxies
from stockade.sandbox.proxy_option import brings_access

if TYPE_CHECKING:
    from stockade.sandbox.proxy_secret import Secret

P = "http://bob:S3cretPw@corp:3128"
BASIC = b64encode(b"bob:S3cretPw").decode()


@pytest.mark.parametrize(
    "value",
    [
        *(f"--proxy {P}", f"-x {P}", f"-x{P}", f"-sSx {P}", "--proxy-user bob:S3cretPw --proxy corp:3128"),
        *(f"-o Acquire::http::Proxy={P}", f"--build-arg HTTP_PROXY={P}", f"--proxy-server={P}", f"http_proxy={P} a=b"),
        *("-PproxyPassword=S3cretPw", "--proxyPassword=S3cretPw", "/proxyuser:bob /proxypass:S3cretPw"),
        *(
            "-P proxyPassword=S3cretPw",
            "--proxy_pass S3cretPw",
            "proxy_password S3cretPw",
            "--proxy-user 'bob:S3cretPw'",
        ),
        *("-x corp:3128 -U bob:S3cretPw", "-Ubob:S3cretPw -x corp:3128", "-x bob:S3cretPw@corp:3128"),
        *('["-s", "-x", "bob:S3cretPw@corp:3128"]', "'-x' 'bob:S3cretPw@corp:3128'"),
        *("--socks5 bob:S3cretPw@corp:1080", "socks5h://bob:S3cretPw@corp:1080", "SOCKS5://bob:S3cretPw@corp"),
        *("--proxy bob:S3cretPw@corp:3128", "HTTP_PROXY=bob:S3cretPw@corp:3128", "--proxy //bob:S3cretPw@corp"),
        *(f'{{"proxies":{{"default":{{"httpProxy":"{P}"}}}}}}', '{"proxy":{"username":"bob","password":"S3cretPw"}}'),
        *('{"Proxy-Password" : "S3cretPw"}', r"{\"proxyPassword\":\"S3cretPw\"}", f'{{"https-proxy": "{P}"}}'),
        *('[proxy]\nuser = "bob"\npassword = "S3cretPw"\n', "proxy:\n  password: S3cretPw\n", f'proxy = "{P}"'),
        *(
            "proxy: bob:S3cretPw@corp:3128",
            f"Proxy-Authorization: Basic {BASIC}",
            f"-H 'proxy-authorization: Basic {BASIC}'",
        ),
        *(
            "-x http://bob:{S3cretPw}@corp:3128",
            "http_proxy=bob:S3cretPw'a@corp:1",
            "socks5://bob:31/S3cretPw@corp:1080",
        ),
        *(f"postgres://u:p@h/db?proxy={P}", "a://h/?proxy=http%3A%2F%2Fbob%3AS3cretPw%40corp%3A3128"),
        *(f"{P} # proxy", f"export https_proxy={P};export a=b", "http://bob:S3cretPw@proxy.corp:3128"),
        *(
            "--proxy 'http://bob:a S3cretPw@corp'",
            "--proxy http://bob:S3cretPw#x@corp",
            "--proxy http://bob:S3cretPw/x@c",
        ),
    ],
)
def test_what_gives_access(value: str) -> None:
    secrets: set[Secret] = set()
    assert brings_access(value, secrets)
    assert any("S3cretPw" in secret.password for secret in secrets)
    assert without_proxies({"OPTS": value, "Y": "x"}) == {"Y": "x"}
    assert without_proxies({"OPTS": f"-Dhttp.proxyHost=a {value}"}) == {}


@pytest.mark.parametrize(
    "value",
    [
        *("postgres://u:p@cloudsql-proxy:5432/db", "https://u:t@nexus.corp/repository/pypi-proxy/simple"),
        *(
            f"jwilder/nginx-proxy:1.2@sha256:{'a' * 64}",
            "npm:http-proxy@1.0",
            "/home/u/src/proxy-auth",
            "fix proxy-auth bug",
        ),
        *("/a/proxy-auth.jar:/b/proxy-user:/c", "-DUSE_PROXY_AUTH=1 -DPROXY_PASSWORD -DHAVE_SOCKSPROXY=1 -O2"),
        *("-O2 -DWITH_PROXY=1 -DNDEBUG", "-DENABLE_PROXY=ON -DX=1", "ssh -o ProxyCommand='nc %h %p' git@x", "-x a@b"),
        *("ssh -o ProxyJump=bob@bastion:22", '{"proxyAuth": false, "proxy": null}', "https://npm.corp/@scope/proxy-x"),
        *("--registry https://u:p@npm.corp/ --noproxy x", "--proxy http://corp:3128/ git@x", '{"password":"S3cretPw"}'),
        *("psql -U bob", "-Djdk.http.auth.proxying.disabledSchemes=", "", "prox"),
    ],
)
def test_what_does_not(value: str) -> None:
    assert not brings_access(value, set())
    assert without_proxies({"X": value}) == {"X": value}


ROWS = ("corp:3128:bob:S3cretPw", "corp:3128:bob:a:S3cretPw", "a:1:b:c,corp:3128:bob:S3,cretPw", "bob:S3cretPw:corp:1")


def test_an_address_of_ipv6_is_no_row() -> None:
    assert not brings_access("2001:10:20:30:40:50:60:70/64,fd00::1:2", set(), named=True)


def test_where_the_name_speaks_of_a_proxy_any_password_counts() -> None:
    for value in ('{"user":"bob","password":"S3cretPw"}', "user=bob;password=S3cretPw", *ROWS):
        assert brings_access(value, set(), named=True)
        assert not brings_access(value, set())


SCRAPS = st.sampled_from(
    ["-D", "prox", "y", "http.proxyPassword", "=", ":", "@", "://", "'", '"', " ", "\\", "{", "-x", "-U", "a"]
)


@given(st.lists(SCRAPS).map("".join))
def test_any_row_is_cleaned_once(text: str) -> None:
    once = without_proxies({"X": text})
    assert without_proxies(once) == once
