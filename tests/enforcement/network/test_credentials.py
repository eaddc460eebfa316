"""A command reaches the proxies by a credential of its own, which dies with it and is shown to nobody."""

from __future__ import annotations

import sys
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from stockade.sandbox.blocking import BlockingSandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.enforcement.network.conftest import Net, Open

HOLD = "import os; print(os.environ['HTTP_PROXY'], flush=True); input()"


def _fetch(net: Net, sandbox: BlockingSandbox, proxy: str) -> str:
    words = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-x", proxy, f"http://web.test:{net.http.port}/")
    return sandbox.run(words, timeout=60).output


def test_the_credential_of_a_command_that_ended_is_worth_nothing(net: Net, opened: Open) -> None:
    sandbox = opened(*net.allow("web.test"))
    line = f'curl -s -o /dev/null -w "%{{http_code}} $HTTP_PROXY" http://web.test:{net.http.port}/'
    code, proxy = sandbox.run(line).output.split()
    assert code == "200"
    before = len(net.journal)
    assert _fetch(net, sandbox, proxy) == "407"
    assert net.journal.since(before) == []


def test_the_credential_of_another_session_is_worth_nothing(net: Net, opened: Open) -> None:
    one, other = opened(*net.allow("web.test")), opened(*net.allow("web.test", "other.test"))
    with one.spawn((sys.executable, "-I", "-S", "-c", HOLD), stdin=-1) as process:
        assert process.stdout is not None
        proxy = process.stdout.readline().decode().strip()
        before = len(net.journal)
        assert _fetch(net, other, proxy) == "407"
        assert net.journal.since(before) == []


def test_no_process_of_the_host_shows_a_credential_in_its_arguments(
    net: Net, opened: Open, processes_with: Callable[[str], list[int]]
) -> None:
    with opened(*net.allow("web.test")).spawn((sys.executable, "-I", "-S", "-c", HOLD), stdin=-1) as process:
        assert process.stdout is not None
        proxy = process.stdout.readline().decode().strip()
        token = proxy.rpartition("@")[0].rpartition(":")[2]
        assert len(token) > 15
        assert processes_with(token) == []


UPSTREAM_SECRET = "Upstr3am/S3cret"  # noqa: S105 - of nobody
UPSTREAM = "http://alice:Upstr3am%2FS3cret@127.0.0.1:1/"
OF_THE_HOST = {
    **dict.fromkeys(("NPM_CONFIG_PROXY", "ws_proxy", "wss_proxy", "socks_proxy", "DOCKER_HTTP_PROXY"), UPSTREAM),
    **dict.fromkeys(("npm_config_https-proxy", "HTTPS_PROXY", "all_proxy", "CGI_HTTP_PROXY"), UPSTREAM),
    "CLOUDSDK_PROXY_PASSWORD": UPSTREAM_SECRET,
    "JAVA_TOOL_OPTIONS": f"-Dkept=1 -Dhttps.proxyPassword='{UPSTREAM_SECRET}' -Dhttps.proxyUser=alice",
    "MAVEN_OPTS": f"-Xmx1g -Dhttp.proxyPassword={UPSTREAM_SECRET}",
    "GIT_SSH_COMMAND": f"ssh -o 'ProxyCommand=nc --proxy-auth alice:{UPSTREAM_SECRET} -x 127.0.0.1:1 %h %p'",
    "MY_HEADER": f"Basic {b64encode(f'alice:{UPSTREAM_SECRET}'.encode()).decode()}",
    "MY_CURL_OPTIONS": f"--proxy-user alice:{UPSTREAM_SECRET}",
    "MY_OWN": "kept",
}
#: Each alone tells of a proxy and its password; no other variable gives this away.
ALONE = {
    "GIT_CONFIG_PARAMETERS": "'http.proxy'='http://bob:L0nely%2FPw@127.0.0.1:1'",
    "PROXYPASSWORD": "L0nely/Pw",
    "PROXY_PW": "L0nely/Pw",
    "HTTP_PROXY_OLD": "http://bob:L0nely/Pw@127.0.0.1:1",
    "PROXY_LIST": "127.0.0.1:1:bob:L0nely/Pw",
    "BUILD_ARGS": "--build-arg HTTP_PROXY=http://bob:L0nely#Pw@127.0.0.1:1",
    "CURL_ARGS": "-x 127.0.0.1:1 -U bob:L0nely/Pw",
    "DOCKER_CONFIG_JSON": '{"proxies":{"default":{"httpProxy":"http://bob:L0nely%2FPw@127.0.0.1:1"}}}',
    "GRADLE_ARGS": "-PproxyPassword=L0nely/Pw",
    "JAVA_OPTS": "-D http.proxyPassword L0nely/Pw",
}
ORDINARY = {
    "HTTP_PROXY": "http://michael@localhost:1",
    "GOROOT": "/srv/michael/go",
    "DATABASE_URL": "postgres://u:p@localhost:1/db",
    "CFLAGS": "-O2 -DWITH_PROXY=1",
    "TRUST_PROXY": "1",
}


@pytest.mark.parametrize("name", ALONE)
def test_a_variable_that_alone_tells_of_a_proxy_stays_outside(net: Net, name: str) -> None:
    with BlockingSandbox(net.policy(), environment=net.environment | {name: ALONE[name]}) as sandbox:
        said = sandbox.run("env; cat /proc/self/environ").output
        wrapped = sandbox.wrap("env").argv
    assert "PATH=" in said
    assert "L0nely" not in said + " ".join(wrapped)


def test_ordinary_variables_get_inside_beside_a_proxy(net: Net) -> None:
    with BlockingSandbox(net.policy("web.test"), environment=net.environment | ORDINARY) as sandbox:
        lines = sandbox.run("env").output.splitlines()
    assert [name for name, value in ORDINARY.items() if f"{name}={value}" not in lines] == ["HTTP_PROXY"]
    assert any(line.startswith("HTTP_PROXY=") for line in lines), "ours"


@pytest.mark.parametrize("allowed", [(), ("web.test",)], ids=["no network", "network"])
def test_no_credential_of_the_hosts_proxies_gets_inside(net: Net, allowed: tuple[str, ...]) -> None:
    with BlockingSandbox(net.policy(*allowed), environment=net.environment | OF_THE_HOST) as sandbox:
        said = sandbox.run("env; cat /proc/self/environ").output
        wrapped = sandbox.wrap("env").argv
        given = sandbox.run("echo $MY_HEADER", env={"MY_HEADER": OF_THE_HOST["MY_HEADER"]}).output.strip()
    everything = unquote(said) + " ".join(wrapped)
    encoded = b64encode(f"alice:{UPSTREAM_SECRET}".encode()).decode()
    assert [word for word in ("Upstr3am", "S3cret", encoded, "alice") if word in everything] == []
    lines = said.splitlines()
    assert "MY_OWN=kept" in lines
    (cache,) = {line.partition("=")[2] for line in lines if line.startswith("XDG_CACHE_HOME=")}
    assert f"MAVEN_OPTS=-Xmx1g -Dmaven.repo.local={cache}/maven" in lines, "the user's harmless option, and ours"
    assert any(line.startswith("JAVA_TOOL_OPTIONS=-Dkept=1") for line in lines)
    assert given == OF_THE_HOST["MY_HEADER"], "what the caller names counts most"
