"""What a refused program prints: it fails, and what it shows of a proxy's words tells host, reason and setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.network.clients.conftest import Yard
    from tests.enforcement.network.conftest import Net

    from stockade.sandbox.blocking import BlockingSandbox


@pytest.fixture(scope="module")
def sandbox(net: Net, yard: Yard) -> Iterator[BlockingSandbox]:
    net.environment["GIT_SSH_COMMAND"] = yard.sshd.ssh
    with net.sandbox(*net.allow("web.test"), network__deniedDomains=("denied.test",)) as sandbox:
        yield sandbox
    del net.environment["GIT_SSH_COMMAND"]


#: The line, its exit status, and what it must say. ``{http}`` and so on are ports.
PLAIN = {
    "curl": (
        "curl -sS http://evil.test:{http}/",
        18,
        ("Stockade refused the connection to evil.test:{http}.", "Why: ", "To allow it: ", "allowedDomains"),
    ),
    "curl -f": ("curl -sS -f http://evil.test:{http}/", 22, ("403",)),
    "curl --fail-with-body": (
        "curl -sS --fail-with-body http://evil.test:{http}/; case $? in 18 | 22) exit 22 ;; esac",
        22,
        ("Stockade refused the connection to evil.test:{http}.", "allowedDomains"),
    ),
    "curl of a denied host": (
        "curl -sS http://denied.test:{http}/",
        18,
        ("Stockade refused the connection to denied.test:{http}.", 'Rule: "denied.test"'),
    ),
    "curl of another port": (
        "curl -sS http://web.test:{hidden}/",
        18,
        ("Stockade refused the connection to web.test:{hidden}.", "allowedDomains"),
    ),
    "wget": ("wget -O - http://evil.test:{http}/", 8, ("ERROR 403: Blocked by Stockade: evil.test:{http}",)),
    "git": ("git ls-remote http://evil.test:{http}/git/tiny.git", 128, ("403",)),
    "pip": (
        "{pip} -m pip download --no-cache-dir --retries 0 --index-url http://evil.test:{http}/simple/ tiny",
        1,
        ("No matching distribution found for tiny",),
    ),
    "npm": (
        "npm install --registry http://evil.test:{http}/npm/ --fetch-retries=0 --no-update-notifier tiny",
        1,
        ("403", "Blocked by Stockade: evil.test:{http}"),
    ),
}
SECURE = {
    "curl": ("curl -sS https://evil.test:{https}/", 56, ("403",)),
    "curl -v": ("curl -sSv https://evil.test:{https}/", 56, ("403 Blocked by Stockade: evil.test:{https}",)),
    "wget": (
        "wget -O - https://evil.test:{https}/",
        4,
        ("Proxy tunneling failed: Blocked by Stockade: evil.test:{https}",),
    ),
    "git": ("git ls-remote https://evil.test:{https}/git/tiny.git", 128, ("403",)),
    "git by ssh": (
        "git ls-remote ssh://ada@evil.test:{ssh}/tiny.git",
        128,
        ("stockade: Stockade refused the connection to evil.test:{ssh}.", "allowedDomains"),
    ),
    "pip": (
        "{pip} -m pip download --no-cache-dir --retries 1 --index-url https://evil.test:{https}/simple/ tiny",
        1,
        ("403 Blocked by Stockade: evil.test:{https}",),
    ),
    "npm": (
        "npm install --registry https://evil.test:{https}/npm/ --fetch-retries=0 --no-update-notifier tiny",
        1,
        ("403",),
    ),
}
#: The reset comes before curl has looked at the connection, or after: both are one refusal.
RESET = "; case $? in 7 | 56) ;; *) exit 9 ;; esac"
BARE = {
    "curl": ("env -i curl -sS https://evil.test:{https}/", 6, ("Could not resolve host: evil.test",)),
    "wget": ("env -i wget https://evil.test:{https}/", 4, ("unable to resolve host address",)),
    "an address": ("env -i curl -sS http://192.0.2.1/" + RESET, 0, ("curl: (",)),
    "another port": ("env -i curl -sS http://web.test:{hidden}/" + RESET, 0, ("curl: (",)),
}


def _check(net: Net, yard: Yard, sandbox: BlockingSandbox, row: tuple[str, int, tuple[str, ...]]) -> None:
    ports = {"http": net.http.port, "https": net.https.port, "hidden": net.hidden.port, "ssh": yard.sshd.port}
    line, code, words = row
    before = len(net.journal)
    variables = {"PIP_CONFIG_FILE": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "npm_config_cache": str(yard.place())}
    done = sandbox.run(line.format(pip=yard.pip, **ports), env=variables, timeout=60)
    said = (done.stdout + done.stderr).decode()
    assert (done.exit_code, done.limit) == (code, None), said
    assert [word for word in words if word.format(**ports) not in said] == [], said
    assert net.journal.since(before) == []


@pytest.mark.parametrize("name", PLAIN)
def test_plain_http(net: Net, yard: Yard, sandbox: BlockingSandbox, name: str) -> None:
    _check(net, yard, sandbox, PLAIN[name])


@pytest.mark.parametrize("name", SECURE)
def test_tunnels(net: Net, yard: Yard, sandbox: BlockingSandbox, name: str) -> None:
    _check(net, yard, sandbox, SECURE[name])


@pytest.mark.parametrize("name", BARE)
def test_with_an_empty_environment_the_answer_comes_at_once(
    net: Net, yard: Yard, sandbox: BlockingSandbox, name: str
) -> None:
    _check(net, yard, sandbox, BARE[name])
