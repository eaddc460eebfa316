"""Real programs reach allowed hosts and no others: by proxy variables, and with an empty environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.network.clients.conftest import Client, Yard
    from tests.enforcement.network.conftest import Net

    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.result import Result

CLIENTS = (
    "curl",
    "curl by http",
    "wget",
    "wget by http",
    "git by http",
    "git clone",
    "pip",
    "npm",
    "node",
    "java",
    "go",
    "urllib",
    "requests",
    "httpx",
    "aiohttp",
)
#: With what a program finds its way: variables that name the proxies, or none at all.
WAYS = ("variables", "nothing")
RUNS = [
    *(pytest.param(name, way, id=f"{name}, with {way}") for name in CLIENTS for way in WAYS),
    # The proxies have no address of that family.
    pytest.param("curl by IPv6", "nothing", id="curl by IPv6, with nothing"),
]


def _run(sandbox: BlockingSandbox, client: Client, way: str) -> Result:
    if way == "variables":
        return sandbox.run(client.words, env=client.variables, timeout=60)
    given = (f"{name}={value}" for name, value in client.variables.items())
    return sandbox.run(("env", "-i", *given, *client.words), timeout=60)


@pytest.fixture(scope="module")
def sandbox(net: Net, yard: Yard) -> Iterator[BlockingSandbox]:
    allowed = net.allow("web.test", "ssh.test", ports=(*net.ports, yard.sshd.port))
    net.environment["GIT_SSH_COMMAND"] = yard.sshd.ssh
    with net.sandbox(*allowed) as sandbox:
        yield sandbox
    del net.environment["GIT_SSH_COMMAND"]


@pytest.mark.parametrize("name", CLIENTS)
def test_without_walls_every_client_reaches_every_host(net: Net, yard: Yard, name: str) -> None:
    client = yard.clients("evil.test", net.mark())[name]
    before = len(net.journal)
    done = net.bare(client.words, env=dict(client.variables))
    assert (done.returncode, client.says in done.stdout.decode()) == (0, True), (done.stdout, done.stderr)
    assert net.journal.since(before) != []


@pytest.mark.parametrize(("name", "way"), RUNS)
def test_an_allowed_host_is_reached(net: Net, yard: Yard, sandbox: BlockingSandbox, name: str, way: str) -> None:
    client = yard.clients("web.test", net.mark())[name]
    done = _run(sandbox, client, way)
    assert (done.exit_code, client.says in done.stdout.decode()) == (0, True), (done.stdout, done.stderr)


@pytest.mark.parametrize(("name", "way"), RUNS)
def test_any_other_host_is_refused_and_hears_nothing(
    net: Net, yard: Yard, sandbox: BlockingSandbox, name: str, way: str
) -> None:
    client = yard.clients("evil.test", net.mark())[name]
    before = len(net.journal)
    done = _run(sandbox, client, way)
    assert (done.exit_code != 0, done.limit, done.signal) == (True, None, None), (done.stdout, done.stderr)
    assert client.says == "" or client.says not in done.stdout.decode()
    assert net.journal.since(before) == []


def test_git_by_ssh_without_walls(net: Net, yard: Yard) -> None:
    client = yard.git_by_ssh("evil.test")
    before = yard.sshd.heard()
    done = net.bare(client.words, env={**client.variables, "GIT_SSH_COMMAND": yard.sshd.ssh})
    assert (done.returncode, client.says in done.stdout.decode()) == (0, True), (done.stdout, done.stderr)
    assert yard.sshd.heard() == before + 1


@pytest.mark.parametrize("way", WAYS)
def test_git_by_ssh(yard: Yard, sandbox: BlockingSandbox, way: str) -> None:
    ssh = {} if way == "variables" else {"GIT_SSH_COMMAND": yard.sshd.ssh}
    good, bad = (yard.git_by_ssh(host) for host in ("ssh.test", "evil.test"))
    done = _run(sandbox, good.but(variables={**good.variables, **ssh}), way)
    assert (done.exit_code, good.says in done.stdout.decode()) == (0, True), (done.stdout, done.stderr)
    before = yard.sshd.heard()
    done = _run(sandbox, bad.but(variables={**bad.variables, **ssh}), way)
    assert (done.exit_code, done.stdout) == (128, b""), done.stderr
    assert yard.sshd.heard() == before


def test_a_static_program_that_asks_for_names_itself(net: Net, yard: Yard, sandbox: BlockingSandbox) -> None:
    for host in ("web.test", "evil.test"):
        done = net.bare(yard.static(host, "word", net.names.port).words)
        assert (done.returncode, done.stdout) == (0, b"word\n"), "without walls"
    good = _run(sandbox, yard.static("web.test", net.mark()), "nothing")
    assert good.exit_code == 0, good.stderr
    mark = net.mark()
    bad = _run(sandbox, yard.static("evil.test", mark), "nothing")
    assert (bad.exit_code, net.journal.entries(mark)) == (3, []), "the name does not exist"
