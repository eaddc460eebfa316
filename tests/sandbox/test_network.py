from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from stockade.errors import StockadeError
from stockade.network.gate import Answer, Choice
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.blocking import BlockingSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sandbox.conftest import Ground

    from stockade.sandbox.network import Network

PATIENCE = 30.0


class Server:
    """Greets whoever connects, on a port of the host's loopback."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.connections = 0
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                connection.sendall(b"hello\n")

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def hear(port: int) -> str:
    """A line that prints what a port of localhost says first."""
    return f"exec 3<>/dev/tcp/127.0.0.1/{port} && head -n 1 <&3"


def network_of(sandbox: BlockingSandbox) -> Network:
    network = sandbox.session._network
    assert network is not None
    return network


def proxy_of(sandbox: BlockingSandbox) -> int | None:
    process = network_of(sandbox)._process
    return None if process is None else process.pid


REFUSED = "curl -sS -m 20 http://evil.test/"


def test_who_uses_no_network_starts_no_proxy_and_who_does_is_told_why_not(ground: Ground) -> None:
    with BlockingSandbox(ground.policy()) as sandbox:
        assert sandbox.run("true").ok
        assert proxy_of(sandbox) is None
        result = sandbox.run(REFUSED, command_id="mine")
        assert "stockade allow-domain evil.test" in result.output
        assert [(entry.target, entry.command, entry.line) for entry in result.violations] == [
            ("evil.test:80", "mine", REFUSED)
        ]
        assert sandbox.run("true").violations == ()
        assert proxy_of(sandbox) is not None


def test_where_something_is_allowed_the_proxy_is_there_from_the_start(ground: Ground) -> None:
    with BlockingSandbox(ground.policy(network__allowedDomains=("example.test",))) as sandbox:
        pid = proxy_of(sandbox)
        assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_port_of_the_host_that_is_named_is_reached_and_no_other(ground: Ground, server: Server) -> None:
    other = Server()
    try:
        with BlockingSandbox(ground.policy(network__allowedDomains=(f"127.0.0.1:{server.port}",))) as sandbox:
            assert sandbox.run(hear(server.port)).output == "hello\n"
            assert not sandbox.run(hear(other.port)).ok
            assert (server.connections, other.connections) == (1, 0)
    finally:
        other.close()


def test_new_rules_hold_for_the_next_request_of_a_command_that_runs(ground: Ground, server: Server) -> None:
    policy = ground.policy(network__allowedDomains=(f"127.0.0.1:{server.port}",))
    with BlockingSandbox(policy) as sandbox, sandbox.spawn("bash", stdin=-1) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"({hear(server.port)})\n".encode())
        process.stdin.flush()
        assert process.stdout.readline() == b"hello\n"
        sandbox.update(ground.policy())
        process.stdin.write(f"({hear(server.port)}); echo over\n".encode())
        process.stdin.flush()
        assert process.stdout.readline() == b"over\n"
        assert server.connections == 1


def test_a_port_that_new_rules_name_is_opened_for_the_next_command(ground: Ground, server: Server) -> None:
    with BlockingSandbox(ground.policy()) as sandbox:
        assert not sandbox.run(hear(server.port)).ok
        sandbox.update(ground.policy(network__allowedDomains=(f"127.0.0.1:{server.port}",)))
        assert sandbox.run(hear(server.port)).output == "hello\n"


def test_a_port_that_a_command_has_taken_stays_its_own(ground: Ground, server: Server) -> None:
    with BlockingSandbox(ground.policy()) as sandbox:
        line = f"import socket, time; s = socket.create_server(('127.0.0.1', {server.port})); print(1, flush=True)"
        with sandbox.spawn(["python3", "-c", f"{line}; time.sleep(60)"]) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"1\n"
            sandbox.update(ground.policy(network__allowedDomains=(f"127.0.0.1:{server.port}",)))
            result = sandbox.run("true")
            assert f"port {server.port} of the host cannot be reached" in "".join(result.notes)


def test_a_proxy_that_is_killed_is_replaced(ground: Ground, server: Server) -> None:
    with BlockingSandbox(ground.policy(network__allowedDomains=(f"127.0.0.1:{server.port}",))) as sandbox:
        for _ in range(3):
            assert sandbox.run(hear(server.port), timeout=PATIENCE).output == "hello\n"
            pid = proxy_of(sandbox)
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
        assert sandbox.run("true").ok


def test_a_proxy_that_cannot_live_is_given_up_and_commands_go_on(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.setattr("stockade.network.proxy_process._START", "raise SystemExit")
    with BlockingSandbox(ground.policy(network__allowedDomains=(f"127.0.0.1:{server.port}",))) as sandbox:
        failed = sandbox.run(hear(server.port), timeout=PATIENCE)
        assert not failed.ok
        assert "there is no network" in "".join(failed.notes)
        result = sandbox.run("echo fine")
        assert result.output == "fine\n"
        assert "there is no network" in "".join(result.notes)


def test_a_note_that_there_is_no_network_says_what_to_install(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *(place for place in sys.path if "site-packages" not in place)])
    with BlockingSandbox(ground.policy(network__allowedDomains=("example.test",))) as sandbox:
        (note,) = sandbox.run("true").notes
        assert "the network proxy needs the package h11, which is not installed; install it beside Stockade:" in note
        assert note.endswith("-m pip install h11 idna")


def test_publishing_needs_a_setting(ground: Ground) -> None:
    with BlockingSandbox(ground.policy()) as sandbox, pytest.raises(StockadeError) as caught:
        sandbox.publish(0, 8000)
    assert "allowLocalBinding" in caught.value.hint


SERVE = """
import socket
listener = socket.create_server(('127.0.0.1', 8000))
print(1, flush=True)
while True:
    listener.accept()[0].sendall(b'inside')
"""


def test_a_published_port_leads_inside(ground: Ground) -> None:
    with BlockingSandbox(ground.policy(network__allowLocalBinding=True)) as sandbox:
        port = sandbox.publish(0, 8000)
        with sandbox.spawn(["python3", "-c", SERVE]) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"1\n"
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
                assert connection.recv(100) == b"inside"
        # Now nobody listens inside.
        with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            assert connection.recv(100) == b""
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), PATIENCE)


def test_several_ports_are_published_also_after_the_helper_was_killed(ground: Ground) -> None:
    def heard(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
            return connection.recv(100)

    with BlockingSandbox(ground.policy(network__allowLocalBinding=True)) as sandbox:
        first, second = sandbox.publish(0, 8000), sandbox.publish(0, 8000)
        with sandbox.spawn(["python3", "-c", SERVE]) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"1\n"
            assert (heard(first), heard(second)) == (b"inside", b"inside")
            porter = cast("Any", sandbox.session)._walls._commons._porter
            os.kill(porter.pid, signal.SIGKILL)
            os.waitid(os.P_PID, porter.pid, os.WEXITED | os.WNOWAIT)
            assert heard(sandbox.publish(0, 8000)) == b"inside"


def test_a_wrong_upstream_proxy_is_told_with_the_first_command(ground: Ground) -> None:
    variables = {"PATH": os.environ["PATH"], "http_proxy": "ftp://somewhere"}
    policy = ground.policy(network__allowedDomains=("example.test",), network__allowLocalBinding=True)
    told = 'http_proxy in the environment: an upstream proxy cannot be spoken to by "ftp"'
    with BlockingSandbox(lambda: policy, environment=variables) as sandbox:
        (note,) = sandbox.run("true").notes
        assert note.startswith(f"{told}; write http://host:")
        with pytest.raises(StockadeError) as caught:
            sandbox.publish(0, 8000)
        assert (caught.value.message, caught.value.hint[:18]) == (told, "write http://host:")


def test_somebody_is_asked_and_the_answer_holds(ground: Ground) -> None:
    asked: list[tuple[str, int, str]] = []

    def ask(host: str, port: int, command: str) -> Answer:
        asked.append((host, port, command))
        time.sleep(0.1)
        return Answer(Choice.DENY, "not on a Sunday")

    with BlockingSandbox(ground.policy(), ask=ask) as sandbox:
        first = sandbox.run(REFUSED, command_id="first")
        again = sandbox.run(REFUSED, command_id="again")
    assert asked == [("evil.test", 80, "first")]
    assert "not on a Sunday" in first.output
    assert "not on a Sunday" in again.output


@pytest.mark.parametrize("fault", [ValueError("a secret"), None], ids=["it fails", "no answer"])
def test_a_faulty_callback_denies(ground: Ground, fault: Exception | None) -> None:
    async def ask(_host: str, _port: int, _command: str) -> Answer:
        if fault is not None:
            raise fault
        return None  # type: ignore[return-value] # a mistake that programs make

    async def main() -> str:
        async with Sandbox(ground.policy(), ask=ask) as sandbox:
            return (await sandbox.run(REFUSED)).output

    output = asyncio.run(main())
    assert "Stockade refused the connection to evil.test:80" in output
    assert "a secret" not in output


def test_a_question_that_nobody_answers_ends_with_the_session(ground: Ground) -> None:
    async def ask(_host: str, _port: int, _command: str) -> Answer:
        await asyncio.sleep(600)
        return Answer(Choice.ONCE)

    async def main() -> None:
        async with Sandbox(ground.policy(), ask=ask) as sandbox:
            result = await sandbox.run(REFUSED, timeout=1)
            assert result.limit is not None

    asyncio.run(main())


def test_every_command_has_a_credential_of_its_own_until_it_ends(ground: Ground) -> None:
    with BlockingSandbox(ground.policy()) as sandbox:
        first, second = (sandbox.run("echo $HTTP_PROXY").output for _ in range(2))
        assert first.startswith("http://command-1:")
        assert second.startswith("http://command-2:")
        line = f"curl -sS -m 20 -o /dev/null -w '%{{http_code}}' -x {first.strip()} http://evil.test/"
        assert sandbox.run(line).output == "407"
