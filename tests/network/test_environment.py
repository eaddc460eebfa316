from __future__ import annotations

import shutil
import socket
import string
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.network import ssh_proxy_command
from stockade.network.environment import (
    _SSH_VARIABLE,
    DIRECT,
    Credential,
    ProxyPorts,
    _ssh_command,
    proxy_variables,
)

if TYPE_CHECKING:
    from pathlib import Path

PORTS = ProxyPorts()
MINE = Credential("c7", "tok-en_1")
HTTP = "http://c7:tok-en_1@127.0.0.1:3128"
SOCKS = "socks5h://c7:tok-en_1@127.0.0.1:1080"
NO_PROXY = "localhost,.localhost,127.0.0.1,127.0.0.0/8,::1"
SCRIPT = ssh_proxy_command.__file__


def test_the_variables_of_a_command() -> None:
    assert proxy_variables(PORTS, MINE, {}, transparent=True, python="/usr/bin/python3") == {
        "HTTP_PROXY": HTTP,
        "http_proxy": HTTP,
        "HTTPS_PROXY": HTTP,
        "https_proxy": HTTP,
        "ALL_PROXY": HTTP,
        "all_proxy": HTTP,
        "GRPC_PROXY": HTTP,
        "grpc_proxy": HTTP,
        "FTP_PROXY": SOCKS,
        "ftp_proxy": SOCKS,
        "NO_PROXY": NO_PROXY,
        "no_proxy": NO_PROXY,
        "RSYNC_PROXY": "c7:tok-en_1@127.0.0.1:3128",
        "CARGO_HTTP_PROXY": HTTP,
        "PIP_PROXY": HTTP,
        "YARN_HTTP_PROXY": HTTP,
        "YARN_HTTPS_PROXY": HTTP,
        "npm_config_proxy": HTTP,
        "npm_config_https_proxy": HTTP,
        "npm_config_noproxy": NO_PROXY,
        "NODE_USE_ENV_PROXY": "1",
        "STOCKADE_PROXY": HTTP,
        "GIT_SSH_COMMAND": f"ssh -o 'ProxyCommand=/usr/bin/python3 -I -S {SCRIPT} %h %p'",
        "CLOUDSDK_PROXY_TYPE": "http",
        "CLOUDSDK_PROXY_ADDRESS": "127.0.0.1",
        "CLOUDSDK_PROXY_PORT": "3128",
        "CLOUDSDK_PROXY_USERNAME": "c7",
        "CLOUDSDK_PROXY_PASSWORD": "tok-en_1",
        "STOCKADE_HOST_HTTP_PROXY_PORT": "3128",
        "STOCKADE_HOST_SOCKS_PROXY_PORT": "1080",
    }


def test_a_proxy_that_is_not_ours_gets_no_credential() -> None:
    found = proxy_variables(ProxyPorts(8080, 9050), None, {})
    assert found["HTTPS_PROXY"] == "http://127.0.0.1:8080"
    assert found["ftp_proxy"] == "socks5h://127.0.0.1:9050"
    assert found["RSYNC_PROXY"] == "127.0.0.1:8080"
    assert not {"CLOUDSDK_PROXY_USERNAME", "CLOUDSDK_PROXY_PASSWORD"} & found.keys()


def test_java_is_told_where_nothing_is_carried_transparently_and_what_was_there_stays() -> None:
    options = proxy_variables(PORTS, MINE, {"JAVA_TOOL_OPTIONS": "-Xmx1g"})["JAVA_TOOL_OPTIONS"]
    assert options == (
        "-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128 "
        "-Dhttp.nonProxyHosts=localhost|*.localhost|127.*|[::1]"
    )
    assert "JAVA_TOOL_OPTIONS" not in proxy_variables(PORTS, MINE, {}, transparent=True)


def test_the_credential_is_in_no_command_line() -> None:
    found = proxy_variables(PORTS, MINE, {})
    assert MINE.token not in found["GIT_SSH_COMMAND"] + found["JAVA_TOOL_OPTIONS"]


def test_the_hosts_way_to_start_ssh_is_kept() -> None:
    found = proxy_variables(PORTS, MINE, {"GIT_SSH_COMMAND": "ssh -i ~/.ssh/deploy"})
    assert found["GIT_SSH_COMMAND"].startswith("ssh -i ~/.ssh/deploy -o 'ProxyCommand=")


def test_no_entry_of_what_is_direct_is_one_that_a_program_chokes_on() -> None:
    assert not set("".join(DIRECT)) & set("[]* ")


@pytest.mark.parametrize(
    ("user", "token"), [("", "a"), ("a", ""), ("a:b", "c"), ("a", "p@ss"), ("a", "ü"), ("a", "b c")]
)
def test_a_credential_that_needs_quoting_is_refused(user: str, token: str) -> None:
    with pytest.raises(InvalidTextError):
        Credential(user, token)


def test_a_token_is_not_shown() -> None:
    assert repr(MINE) == "Credential(user='c7', token=...)"


@given(st.text(st.sampled_from(string.printable + "é"), min_size=1).filter(lambda text: "\0" not in text))
def test_any_path_of_an_interpreter_survives_both_shells(python: str) -> None:
    import shlex

    outer = shlex.split(proxy_variables(PORTS, MINE, {}, python=python)["GIT_SSH_COMMAND"])
    assert outer[:2] == ["ssh", "-o"]
    inner = outer[2].removeprefix("ProxyCommand=")
    # What ssh does: %% is %, and the two others are what it connects to.
    expanded = inner.removesuffix(" %h %p").replace("%%", "%")
    assert shlex.split(expanded) == [python, "-I", "-S", SCRIPT]


@pytest.mark.skipif(shutil.which("ssh") is None, reason="ssh is not installed")
def test_ssh_asks_the_proxy_and_shows_its_refusal(tmp_path: Path) -> None:
    odd = tmp_path / "a 'b' 100%h"
    odd.mkdir()
    python = odd / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            connection, _ = server.accept()
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 403 No\r\nConnection: close\r\n\r\nno rule allows a.example:2222\n")

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        found = proxy_variables(ProxyPorts(server.getsockname()[1]), MINE, {}, python=str(python))
        ran = subprocess.run(
            ["sh", "-c", f'{found["GIT_SSH_COMMAND"]} -F none -p 2222 "$@"', "sh", "git@a.example", "true"],
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **found},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        thread.join(10)
    request = b"CONNECT a.example:2222 HTTP/1.1\r\nHost: a.example:2222\r\n"
    assert heard == [request + b"Proxy-Authorization: Basic Yzc6dG9rLWVuXzE=\r\n\r\n"]
    assert "stockade: no rule allows a.example:2222" in ran.stderr.splitlines()
    assert ran.returncode == 255


def test_the_program_for_ssh_is_there_and_reads_the_variable_that_is_set() -> None:
    assert _SSH_VARIABLE == ssh_proxy_command.VARIABLE
    assert _ssh_command("ssh", "python").count(ssh_proxy_command.__file__) == 1
