"""Whether the proxy holds out: mixed load from a session for minutes, with clients that are killed at random.

    python benchmarks/siege.py [--seconds N]

Clients inside open tunnels by HTTP and SOCKS, are carried by name, ask for what is refused, and talk nonsense; each is
ended by a signal after a second or so, in the middle of whatever it does. Looked at all the while: memory that the
proxy process wrote, and its descriptors; at the end, with no client left, what is still open. Fails if something is.
"""

from __future__ import annotations

import argparse
import random
import socket
import sys
import threading
import time
from contextlib import suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from processes import holding
from results import write
from stockade.network.dns import Code, Query, answer, read_query
from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from table import render
from workplace import workplace

if TYPE_CHECKING:
    from stockade.sandbox.blocking_process import BlockingProcess

RESULTS = Path(__file__).with_name("results.md")
CLIENT = Path(__file__).with_name("drivers") / "siege_client.py"
PIECE = 65536
AT_ONCE = 3
LOOKS = 10
PATIENCE = 60.0


class Options(argparse.Namespace):
    """The command line, typed."""

    seconds: float
    output: Path


def serve_echo(listener: socket.socket) -> None:
    """Send back what comes, to everybody at once."""

    def echo(end: socket.socket) -> None:
        with end, suppress(OSError):
            while data := end.recv(PIECE):
                end.sendall(data)

    with suppress(OSError):
        while True:
            end, _ = listener.accept()
            threading.Thread(target=echo, args=(end,), daemon=True).start()


def serve_names(end: socket.socket) -> None:
    """Answer every name with loopback."""
    with suppress(OSError):
        while True:
            message, sender = end.recvfrom(PIECE)
            query = read_query(message)
            if isinstance(query, Query):
                end.sendto(answer(query, Code.NO_ERROR, (IPv4Address("127.0.0.1"),), over_udp=True), sender)


class Siege:
    """One session under load."""

    def __init__(self, sandbox: BlockingSandbox, port: int) -> None:
        self.sandbox = sandbox
        self.port = port
        self.clients = 0
        self.rows: list[tuple[float, int, int, int]] = []

    @property
    def proxy(self) -> int:
        """The proxy process."""
        network = self.sandbox.session._network  # noqa: SLF001 - nobody else needs to know it
        assert network is not None  # noqa: S101
        assert network._process is not None  # noqa: S101, SLF001
        return network._process.pid  # noqa: SLF001

    def look(self, seconds: float) -> None:
        """Note what the proxy holds."""
        held = holding([self.proxy])
        self.rows.append((seconds, self.clients, held.written, held.descriptors))

    def go_on(self, seconds: float) -> None:
        """Start clients and end them, for so long."""
        began = time.monotonic()
        due = 0.0
        running: list[tuple[float, BlockingProcess]] = []
        while (passed := time.monotonic() - began) < seconds:
            if passed >= due:
                self.look(passed)
                due += seconds / LOOKS
            while len(running) < AT_ONCE:
                process = self.sandbox.spawn(
                    [sys.executable, "-I", str(CLIENT), str(self.port)], stdout=None, stderr=None
                )
                running.append((time.monotonic() + random.uniform(0.2, 2.0), process))  # noqa: S311 - not a secret
                self.clients += 1
            time.sleep(0.05)
            self.sandbox.session.pump()
            now = time.monotonic()
            for item in [item for item in running if item[0] <= now]:
                running.remove(item)
                item[1].__exit__(None, None, None)
        for _, process in running:
            process.__exit__(None, None, None)

    def settle(self, descriptors: int) -> int:
        """Wait until the proxy has closed everything, and return what it still has open."""
        deadline = time.monotonic() + PATIENCE
        while (held := holding([self.proxy]).descriptors) > descriptors and time.monotonic() < deadline:
            self.sandbox.session.pump()
            time.sleep(0.2)
        return held - descriptors


def main() -> int:
    """Hold out, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args(namespace=Options())
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind(("127.0.0.1", 0))
    threading.Thread(target=serve_echo, args=(listener,), daemon=True).start()
    threading.Thread(target=serve_names, args=(names,), daemon=True).start()
    port: int = listener.getsockname()[1]
    with workplace() as place:
        allowed = {"sandbox.network.allowedDomains": (f"127.0.0.1:{port}", f"echo.test:{port}")}
        document = Document(Layer.USER, "settings.json", allowed)
        policy = compile_policy(merge([document]), cwd=str(place.base), home=str(place.base / "home"))
        server = f"127.0.0.1:{names.getsockname()[1]}"
        with BlockingSandbox(policy, name_servers=(server,)) as sandbox:
            siege = Siege(sandbox, port)
            sandbox.run("true")
            time.sleep(1.0)
            before = holding([siege.proxy]).descriptors
            siege.go_on(options.seconds)
            left = siege.settle(before)
            siege.look(options.seconds)
            refusals = sandbox.violations.total
    table = render(
        ["seconds", "clients so far", "MB written by the proxy", "descriptors"],
        [[f"{at:.0f}", str(count), f"{size / 1e6:.1f}", str(open_)] for at, count, size, open_ in siege.rows],
    )
    text = (
        f"{siege.clients} clients were ended by a signal in {options.seconds:.0f} s; {refusals} refusals were told. "
        f"With no client left, {left} more descriptors were open than before the first.\n\n{table}\n"
    )
    print(text)
    write(options.output, "Siege: mixed load with clients that are killed", text)
    return 1 if left > 0 else 0


if __name__ == "__main__":
    sys.exit(main())
