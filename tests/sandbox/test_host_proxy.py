from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.sandbox.host_proxy import names_proxy, without_proxies
from stockade.sandbox.java_option import without_options
from stockade.sandbox.proxy_secret import Secret

HOST = {"http_proxy": "http://alice:s3cr3t%2Fpw@proxy.corp:3128"}
PASSWORD = "s3cr3t/pw"  # noqa: S105 - of nobody


@pytest.mark.parametrize(
    "name",
    [
        *("http_proxy", "HTTPS_PROXY", "All_Proxy", "ws_proxy", "wss_proxy", "socks_proxy", "SOCKS5_PROXY", "PROXY"),
        *("NPM_CONFIG_PROXY", "npm_config_https_proxy", "npm_config_https-proxy", "npm_config_noproxy", "auto_proxy"),
        *("DOCKER_HTTP_PROXY", "CGI_HTTP_PROXY", "GLOBAL_AGENT_HTTP_PROXY", "PIP_PROXY", "BUNDLE_HTTP_PROXY"),
        *("YARN_HTTPS_PROXY", "CARGO_HTTP_PROXY", "GRPC_PROXY", "NO_PROXY", "HTTPPROXY"),
        *("HTTP_PROXY_PASSWORD", "PROXY_USER", "http_proxy_pass", "PROXY_AUTH", "PROXY_URL", "HTTP_PROXY_USERPWD"),
        *("CLOUDSDK_PROXY_PASSWORD", "CLOUDSDK_PROXY_TYPE", "CONDA_PROXY_SERVERS", "CONDA_PROXY_SERVERS__HTTPS"),
        *("ORG_GRADLE_PROJECT_systemProp.https.proxyPassword", "httpProxy"),
    ],
)
def test_names_of_proxies(name: str) -> None:
    assert names_proxy(name)
    assert without_proxies({name: "http://a:bbbbbb@c:1", "OTHER": "x"}) == {"OTHER": "x"}


@pytest.mark.parametrize("name", ["GOPROXY", "GONOPROXY", "PATH", "PROXYCHAINS_CONF_FILE", "KUBE_PROXY_MODE", "", "_"])
def test_names_of_other_things(name: str) -> None:
    assert not names_proxy(name)
    assert without_proxies({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("-Xmx1g -Dhttp.proxyHost=p -ea", "-Xmx1g -ea", id="host"),
        pytest.param("-Dhttps.proxyUser=u -Dhttps.proxyPassword=p -Dfoo=bar", "-Dfoo=bar", id="user and password"),
        pytest.param("-DsocksProxyHost=p -Djava.net.socks.password=p -ea", "-ea", id="socks"),
        pytest.param('-Dhttp.proxyPassword="a b c" -ea', "-ea", id="quoted value"),
        pytest.param("'-Dhttp.proxyPassword=a b c' -ea", "-ea", id="quoted whole"),
        pytest.param("-D'http.proxy''Password'=x -ea", "-ea", id="quoted in pieces"),
        pytest.param("-Dhttp.proxyPassword=a\\ b -ea", "-ea", id="escaped blank"),
        pytest.param("-Dfoo=C:\\ -Dhttp.proxyPassword=x -ea", "-ea", id="a backslash that may escape or not"),
        pytest.param("-ea -Dhttp.proxyPassword='a b", "-ea", id="a quote without end"),
        pytest.param("-J-Dhttp.proxyPassword=x -ea", "-ea", id="by a compiler"),
        pytest.param("-D http.proxyPassword=x -ea", "-ea", id="two words"),
        pytest.param("--define http.proxyPassword=x --define=https.proxyUser=y -ea", "-ea", id="long option"),
        pytest.param("-DHTTP.PROXYPASSWORD=x -ea", "-ea", id="capitals"),
        pytest.param("-DsystemProp.http.proxyPassword=x -ea", "-ea", id="of Gradle"),
        pytest.param("-Dhttp.nonProxyHosts=a|b\t-ea", "-ea", id="exceptions"),
        pytest.param("-Djdk.http.auth.proxying.disabledSchemes= -ea", None, id="about proxies, but no proxy"),
        pytest.param("-Da=1  -Db='x  y'", None, id="nothing of it"),
        pytest.param("--proxy-mode=x", None, id="another program's"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_options_about_proxies_go_and_others_stay(text: str, left: str | None) -> None:
    assert without_options(text) == (text if left is None else left)
    if left is not None:
        for name in ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS", "X"):
            assert without_proxies({name: text}) == {name: left}


def test_a_variable_of_nothing_but_such_options_goes() -> None:
    assert without_proxies({"MAVEN_OPTS": "-Dhttp.proxyHost=p", "EMPTY": ""}) == {"EMPTY": ""}


SPELLINGS = {
    "as it is": f"x {PASSWORD} y",
    "encoded": "http://other:s3cr3t%2Fpw@elsewhere",
    "encoded otherwise": "%73%33cr3t%2fpw",
    "encoded twice": quote(quote(PASSWORD, safe=""), safe=""),
    "basic": f"Basic {b64encode(b'alice:' + PASSWORD.encode()).decode()}",
    "basic, for URLs": urlsafe_b64encode(b"alice:" + PASSWORD.encode()).decode(),
    "in base64, one later": b64encode(b'{"a":"' + PASSWORD.encode() + b'"}').decode(),
    "in base64, two later": b64encode(b'{"ab":"' + PASSWORD.encode() + b'"}').decode(),
    "in base64, three later": b64encode(b'{"abc":"' + PASSWORD.encode() + b'"}').decode(),
    "in an option": f"--proxy-user alice:{PASSWORD}",
    "other credentials of that proxy": "http://bob:pw@proxy.corp:3128/",
}


#: Those that speak of a proxy themselves go without another that does.
TELLING = {SPELLINGS["in an option"], SPELLINGS["other credentials of that proxy"]}


@pytest.mark.parametrize("value", SPELLINGS.values(), ids=SPELLINGS)
def test_no_variable_brings_the_password_in(value: str) -> None:
    assert without_proxies(HOST | {"INNOCENT": value, "OTHER": "x"}) == {"OTHER": "x"}
    assert without_proxies({"INNOCENT": value} | HOST | {"OTHER": "x"}) == {"OTHER": "x"}
    if value not in TELLING:
        assert without_proxies({"INNOCENT": value}) == {"INNOCENT": value}


@given(st.binary(max_size=9), st.binary(max_size=9))
def test_wherever_it_stands_in_base64(before: bytes, after: bytes) -> None:
    value = b64encode(before + PASSWORD.encode() + after).decode()
    assert without_proxies(HOST | {"INNOCENT": value}) == {}


def test_passwords_are_learnt_from_options_and_names_too() -> None:
    assert without_proxies({"X": "topsecret1", "JAVA_OPTS": "-Dhttp.proxyPassword=topsecret1"}) == {}
    assert without_proxies({"X": "topsecret1", "HTTP_PROXY_PASS": "topsecret1"}) == {}
    assert without_proxies({"X": "topsecret1", "PROXY_AUTH": "alice:topsecret1"}) == {}
    assert without_proxies({"X": "topsecret1", "A": "-x p:1 -U al:topsecret1"}) == {}
    assert without_proxies({"X": "topsecret1", "GIT_CONFIG_PARAMETERS": "'http.proxy'='http://a:topsecret1@p'"}) == {}
    assert without_proxies({"X": "topsecret1", "PROXY_BASIC": b64encode(b"al:topsecret1").decode()}) == {}
    assert without_proxies({"X": "topsecret1", "PROXY_LIST": "p:3128:al:topsecret1", "PORT": "3128"}) == {
        "PORT": "3128"
    }
    settings = {"GIT_CONFIG_KEY_0": "http.proxy", "GIT_CONFIG_VALUE_0": "http://al:topsecret1@p"}
    assert "X" not in without_proxies(settings | {"X": "topsecret1"})


@pytest.mark.parametrize(
    "password", ["pa#ss123", "pa/ss123", "pa?ss123", "p@ss1234", "p://ss12", "pass,1234", "pa ss12"]
)
def test_a_password_that_should_have_been_encoded_is_found(password: str) -> None:
    for address in (f"http://user:{password}@corp:3128", f"user:{password}@corp:3128/"):
        assert without_proxies({"HTTP_PROXY": address, "X": f"-p{password}", "Y": "x"}) == {"Y": "x"}


def test_a_user_without_a_password_is_no_secret() -> None:
    kept = {"NVM_DIR": "/srv/michael/.nvm", "SUDO_USER": "michael", "EMAIL": "michael@corp", "X": "michael"}
    for address in ("http://michael@corp:3128", "http://michael:@corp", "michael@corp:3128"):
        assert without_proxies({"HTTP_PROXY": address, **kept}) == kept
    assert without_proxies({"HTTP_PROXY": "http://michael@corp:3128", "X": "http://michael@corp:3128/"}) == {}
    token = "0123456789abcdef0123"  # noqa: S105 - of nobody
    assert without_proxies({"HTTP_PROXY": f"http://{token}:@corp:3128", "X": f"key={token}"}) == {}


def test_a_place_counts_whole_with_its_port_and_not_on_this_machine() -> None:
    kept = {"DATABASE_URL": "postgres://u:p@10.0.0.1:8086/db", "EMAIL": "me@localhost", "X": "a://u:p@localhost:80/"}
    for address in (
        "http://10.0.0.1:80",
        "http://localhost",
        "http://localhost:80",
        "http://10.0.0.1",
        "http://127.0.0.1:80",
    ):
        assert without_proxies({"API_PROXY": address, **kept}) == kept
    assert without_proxies({"HTTP_PROXY": "http://CORP:80", "X": "ftp://u:p@corp:80", "Y": "u@corp:80/x"}) == {}


def test_a_password_that_is_known_anyhow_counts_with_its_user() -> None:
    kept = {"HOME": "/srv/michael", "USER": "michael", "GOPATH": "/srv/michael/go", "SUDO_USER": "michael"}
    assert without_proxies({"HTTP_PROXY": "http://michael:michael@corp:1", **kept, "X": "michael:michael"}) == kept


NAMES = (
    *("PROXYPASSWORD", "PROXYPASS", "PROXYAUTH", "HTTPPROXY_PASSWORD", "HTTP_PROXYPASSWORD", "CORPPROXY_PASSWORD"),
    *("PROXY2_PASSWORD", "PROXY_PASSWORD1", "PROXY_PASSWORD_2", "PROXY_CREDS", "PROXY_PW", "PROXY_KEY"),
    *("PROXY_USERPASS", "PROXY_AUTHENTICATION", "PROXY_BASIC", "proxy.password", "HTTPProxyPassword", "AUTH_PROXY"),
    *("PASSWORD_PROXY", "SECRET_FOR_PROXY", "SOCKS5_PASSWORD", "SOCKS_PASSWD"),
)


@pytest.mark.parametrize("name", NAMES)
def test_names_for_credentials_glued_and_numbered(name: str) -> None:
    assert names_proxy(name)
    assert without_proxies({name: "S3cretPw", "X": "--password=S3cretPw", "Y": "x"}) == {"Y": "x"}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "PROXYURL",
            "HTTPS_PROXYURL",
            "PROXYSERVER",
            "MYPROXY",
            "ALLPROXY",
            "CORPPROXY",
            "HTTP_PROXY_1",
            "HTTP_PROXY2",
        ),
        *(
            "HTTP_PROXY_OLD",
            "http_proxy_saved",
            "PROXY_HOST",
            "PROXY_ADDR",
            "PROXY_ADDRESS",
            "PROXY_LIST",
            "PROXY_POOL",
        ),
        *("PROXYCHAINS_CONF", "TRUSTED_PROXIES", "USE_PROXY", "SOCKS_SERVER", "My_Proxy_Thing"),
    ],
)
@pytest.mark.parametrize(
    "value", ["http://bob:S3cretPw@corp:3128", "bob:S3cretPw@corp:3128", "//bob:S3cretPw@corp", "bob%3AS3cretPw%40corp"]
)
def test_an_address_with_credentials_goes_under_any_name_about_a_proxy(name: str, value: str) -> None:
    assert without_proxies({name: value, "X": "S3cretPw", "Y": "x"}) == {"Y": "x"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("TRUSTED_PROXIES", "10.0.0.0/8,fd00::/8,2001:db8:1:2::5"), ("TRUST_PROXY", "1"), ("USE_PROXY", "0")),
        *(("NODE_USE_ENV_PROXY", "1"), ("CLOUD_SQL_PROXY", "x"), ("PROXY_HOST", "corp"), ("PROXY_PORT", "3128")),
        *(("PROXY_BYPASS", "a,b"), ("OAUTH2_PROXY_UPSTREAMS", "http://x:1"), ("PROXY_ADMIN", "me@corp.com")),
        *(("GOPROXY", "https://u:t@goproxy.corp,direct"), ("PROXY_IMAGE", f"envoy:1.2@sha256:{'a' * 64}")),
        *(("SOCKS_VERSION", "5"), ("SSH_AUTH_SOCK", "/run/agent")),
    ],
)
def test_a_name_about_proxies_that_gives_nothing_away_stays(name: str, value: str) -> None:
    assert without_proxies({name: value}) == {name: value}


def test_the_mirror_of_go_goes_by_its_secrets() -> None:
    assert without_proxies(HOST | {"GOPROXY": "https://alice:s3cr3t%2Fpw@go.corp"}) == {}


def test_of_a_row_of_definitions_those_with_a_secret_go() -> None:
    row = "-Xmx1g -Dmine=topsecret1 -Dkept=1"
    assert without_proxies({"P_PROXY_PASS": "topsecret1", "OPTS": row}) == {"OPTS": "-Xmx1g -Dkept=1"}
    assert without_proxies({"P_PROXY_PASS": "topsecret1", "OPTS": f"{row} --p topsecret1"}) == {}


@pytest.mark.parametrize("word", ["true", "basic", "negotiate", "", "/etc/ssl/proxy.key"])
def test_what_is_no_password_takes_nothing_with_it(word: str) -> None:
    assert without_proxies({"PROXY_AUTH": word, "X": word, "Y": f"a {word} b"}) == {"X": word, "Y": f"a {word} b"}


@pytest.mark.parametrize("password", ["x", "12", "usr"])
def test_a_password_of_three_letters_counts_with_user_and_place_alone(password: str) -> None:
    kept = {"A": password, "B": f"/{password}/bin", "C": f"data:{password} a:{password}"}
    assert without_proxies({"HTTP_PROXY": f"http://a:{password}@c", **kept, "D": f"http://a:{password}@c"}) == kept


def test_a_short_password_counts_with_its_user_or_as_the_whole_value() -> None:
    host = {"http_proxy": "http://al:pw12@proxy:1"}
    kept = {"A": "xpw12x", "B": "al", "PATH": "/usr/bin"}
    assert without_proxies(host | kept | {"C": "al:pw12", "D": "pw12", "E": b64encode(b"al:pw12").decode()}) == kept
    assert without_proxies({"http_proxy": "http://a:1@proxy:1", "DEBUG": "1"}) == {"DEBUG": "1"}


def test_what_nothing_runs_without_stays() -> None:
    kept = {"PATH": "/opt/daemon1/bin", "HOME": "/opt/daemon1", "USER": "daemon1"}
    assert without_proxies({"http_proxy": "http://daemon1:daemon1@proxy:1", **kept}) == kept


def test_a_proxy_without_credentials_takes_little_with_it() -> None:
    kept = {"A": "http://proxy:1/", "B": "proxy:1"}
    assert without_proxies({"http_proxy": "http://proxy:1", **kept, "C": "http://u:p@proxy:1/"}) == kept


def test_settings_of_git_in_variables_lose_those_about_proxies() -> None:
    host = {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "http.https://a.com/.Proxy",
        "GIT_CONFIG_VALUE_1": "http://u:p@x",
        "GIT_CONFIG_KEY_2": "http.extraHeader",
        "GIT_CONFIG_VALUE_2": f"X: {PASSWORD}",
    }
    removed = {f"GIT_CONFIG_{part}_{at}": text for at in (1, 2) for part, text in _REMOVED}
    assert without_proxies(HOST | host) == host | removed
    command = {"GIT_CONFIG_KEY_0": "alias.x", "GIT_CONFIG_VALUE_0": "!curl --proxy http://al:topsecret1@p"}
    key = {"GIT_CONFIG_KEY_0": f"url.http://{PASSWORD}@x/.insteadOf", "GIT_CONFIG_VALUE_0": "y"}
    for setting in (command, key, dict(reversed(command.items()))):
        assert without_proxies(HOST | setting) == {f"GIT_CONFIG_{part}_0": text for part, text in _REMOVED}


@pytest.mark.parametrize(
    "text",
    [
        "'http.proxy'='http://bob:S3cretPw@corp:3128'",
        "'http.https://x.y/.proxy=http://bob:S3cretPw@corp:3128'",
        "'a.b'='c' 'HTTP.PROXY'='corp:3128'",
    ],
)
def test_settings_that_git_hands_on_go_if_they_speak_of_a_proxy(text: str) -> None:
    assert without_proxies({"GIT_CONFIG_PARAMETERS": text}) == {}
    assert without_proxies({"GIT_CONFIG_PARAMETERS": "'a.b'='c'"}) == {"GIT_CONFIG_PARAMETERS": "'a.b'='c'"}


_REMOVED = (("KEY", "stockade.removed"), ("VALUE", ""))


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=40)))
def test_any_environment_can_be_cleaned(host: dict[str, str]) -> None:
    once = without_proxies(host)
    assert without_proxies(once) == once


@given(st.text())
def test_any_text_can_be_read_as_options(text: str) -> None:
    once = without_options(text)
    assert without_options(once) == once


def test_a_secret_is_not_shown() -> None:
    assert repr(Secret("a", "b", "c")) == "Secret(...)"
