"""Our proxy in a process of its own, on a listening socket of loopback: what a session's commands speak to.

Arguments: the port that may be reached. Prints the address of the proxy with a credential; ends with its input.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from stockade.network.credentials import Entrance, Tokens
from stockade.network.gate import Gate
from stockade.network.interfaces import OwnAddresses
from stockade.network.outlet import Outlet
from stockade.network.proxy import Proxy
from stockade.network.resolver import Resolver
from stockade.network.route import Router
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.network_rules import NetworkRules
from stockade.settings.layer import Layer, Origin, Sourced


async def serve(port: str) -> None:
    """Serve until the input ends."""
    origin = Origin(Layer.USER, "benchmark")
    allowed = (Sourced(DomainPattern.parse(f"127.0.0.1:{port}"), origin),)
    gate = Gate(NetworkRules(allowed), own=OwnAddresses())
    tokens = Tokens()
    credential = tokens.issue("benchmark")
    proxy = Proxy(Outlet(gate, Router(gate, Resolver())), Entrance(tokens.authenticate))
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    await proxy.serve(listener)
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    print(f"http://{credential.user}:{credential.token}@{address}", flush=True)
    ended = asyncio.Event()

    def read() -> None:
        if not os.read(0, 1):
            ended.set()

    asyncio.get_running_loop().add_reader(0, read)
    await ended.wait()
    await proxy.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
