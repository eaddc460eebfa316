"""A question names one command; a yes for once lets that command through and no other that waits for the same host."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stockade.network.gate import Answer, Choice
from stockade.sandbox.asynchronous import Sandbox

if TYPE_CHECKING:
    from tests.enforcement.network.conftest import Net

PATIENCE = 60.0


def test_a_yes_for_one_command_lets_no_other_through(net: Net) -> None:
    asked: list[tuple[str, int, str]] = []
    port, mark = net.http.port, net.mark()
    line = f"curl -s -o /dev/null -w '%{{http_code}}' http://web.test:{port}/{mark}"

    async def scene() -> tuple[str, str]:
        first_is_asked, both_wait = asyncio.Event(), asyncio.Event()

        async def ask(host: str, port: int, command: str) -> Answer:
            asked.append((host, port, command))
            if command != "trusted":
                return Answer(Choice.DENY, "not that one")
            first_is_asked.set()
            await asyncio.wait_for(both_wait.wait(), PATIENCE)
            return Answer(Choice.ONCE)

        policy, servers = net.policy(f"127.0.0.1:{port}"), (f"127.0.0.1:{net.names.port}",)
        async with Sandbox(policy, ask=ask, environment=net.environment, name_servers=servers) as sandbox:
            trusted = asyncio.create_task(sandbox.run(f"{line}-trusted", command_id="trusted", timeout=PATIENCE))
            await asyncio.wait_for(first_is_asked.wait(), PATIENCE)
            other = asyncio.create_task(sandbox.run(f"{line}-other", command_id="other", timeout=PATIENCE))
            # Long enough to be waiting. If it comes later than this, it is asked about all the same.
            await asyncio.sleep(0.5)
            both_wait.set()
            return (await trusted).output, (await other).output

    assert asyncio.run(scene()) == ("200", "403")
    assert asked == [("web.test", port, "trusted"), ("web.test", port, "other")]
    assert net.journal.entries(f"{mark}-trusted")
    assert not net.journal.entries(f"{mark}-other")
