"""A server that one command runs is reached by the next one of the session, and by nobody else."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from stockade.sandbox.asynchronous import Sandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.enforcement.tools.conftest import Bench

PORT = 47113
REDIS = f"redis-server --port {PORT} --bind 127.0.0.1 ::1 --save '' --appendonly no --dir \"$TMPDIR\" --daemonize no"
WEB = f"python3 -u -m http.server --bind 127.0.0.1 {PORT}"


@asynccontextmanager
async def _serving(sandbox: Sandbox, line: str, ready: bytes) -> AsyncIterator[None]:
    """Run a server as one command until the block ends; begin when it says that it is ready."""
    said = bytearray()
    up = asyncio.Event()

    def hear(piece: bytes) -> None:
        said.extend(piece)
        if ready in said:
            up.set()

    server = asyncio.create_task(sandbox.run(line, on_output=hear))
    waiting = asyncio.create_task(up.wait())
    try:
        await asyncio.wait({server, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        waiting.cancel()
        assert up.is_set(), f"the server did not start: {bytes(said)!r}"
        yield
    finally:
        server.cancel()
        with pytest.raises(asyncio.CancelledError):
            await server


def test_a_redis_server_is_used_by_other_commands_of_the_session_alone(tools_bench: Bench) -> None:
    async def scene() -> None:
        policy = tools_bench.policy()
        async with (
            Sandbox(policy, environment=tools_bench.environment) as sandbox,
            Sandbox(policy, environment=tools_bench.environment) as stranger,
            _serving(sandbox, REDIS, b"Ready to accept connections"),
        ):
            client = f"redis-cli -p {PORT}"
            done = await sandbox.run(f"{client} set name ada && {client} -h ::1 get name")
            assert (done.exit_code, done.stdout) == (0, b"OK\nada\n")
            elsewhere = await stranger.run(f"{client} get name")
            assert elsewhere.exit_code == 1
            assert b"Connection refused" in elsewhere.stderr
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", PORT), timeout=5)
            await sandbox.run(f"{client} flushall")
        async with Sandbox(policy, environment=tools_bench.environment) as later:
            assert (await later.run(f"{client} get name")).exit_code == 1

    asyncio.run(scene())


def test_a_server_ends_with_its_command_and_its_port_is_free_again(tools_bench: Bench) -> None:
    async def scene() -> None:
        (tools_bench.project / "page").write_text("served")
        async with Sandbox(tools_bench.policy(), environment=tools_bench.environment) as sandbox:
            url = f"http://127.0.0.1:{PORT}/page"
            for _ in range(2):
                async with _serving(sandbox, WEB, b"Serving HTTP"):
                    assert (await sandbox.run(f"curl -sS {url}")).stdout == b"served"
                assert (await sandbox.run(f"curl -sS {url}")).exit_code == 7

    asyncio.run(scene())


def test_a_service_of_the_host_on_its_loopback_is_not_reached(tools_bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        done = tools_bench.run(f"exec 3<>/dev/tcp/127.0.0.1/{port}")
        assert b"Connection refused" in done.stderr


def test_a_server_in_the_background_of_one_command_serves_that_command_and_ends_with_it(tools_bench: Bench) -> None:
    client = f"redis-cli -p {PORT}"
    wait = f"until {client} ping >/dev/null 2>&1; do sleep 0.05; done"
    assert tools_bench.good(f"{REDIS} >/dev/null & {wait}; {client} ping") == "PONG\n"
    done = tools_bench.run(f"{client} ping")
    assert done.exit_code == 1
    assert b"Connection refused" in done.stderr


TMUX = 'tmux -S "$TMPDIR/socket" -f /dev/null'


@pytest.mark.parametrize("allowed", [False, True])
def test_tmux_works_with_its_own_socket(tools_bench: Bench, *, allowed: bool) -> None:
    tools_bench.sandbox(network__allowAllUnixSockets=allowed)
    said = tools_bench.good(
        f"{TMUX} new-session -d -s one 'cat' && {TMUX} send-keys -t one hello Enter"
        f" && until {TMUX} capture-pane -pt one | grep -c hello; do sleep 0.05; done && {TMUX} kill-server"
    )
    assert int(said.split()[-1]) >= 1


POSTGRES = """
export LC_ALL=C
initdb -D "$PWD/data" -A trust -U postgres -E UTF8 >log 2>&1 || { tail -5 log; exit 1; }
pg_ctl -D "$PWD/data" -o "-k $TMPDIR -h ''" -l log -w start >/dev/null || { tail -5 log; exit 1; }
psql -h "$TMPDIR" -U postgres -Atqc 'create table t(x int); insert into t values (42); select x from t'
pg_ctl -D "$PWD/data" -w stop >/dev/null
"""

# It refuses to run as root, wherever that is.
if os.geteuid() and shutil.which("initdb") and shutil.which("pg_ctl") and shutil.which("psql"):

    def test_a_postgres_server_is_reached_by_its_unix_socket(tools_bench: Bench) -> None:
        done = tools_bench.run(POSTGRES)
        assert (done.stdout, done.violations) == (b"42\n", ()), done.stderr
