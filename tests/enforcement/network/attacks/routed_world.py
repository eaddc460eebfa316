"""A program for a network of its own, in which routes alone make addresses ours: what reaches a server there?

``python routed_world.py FOLDER``. Run where ``lo`` is up and routes were made (see ``test_local_routes``). Prints JSON:
for each name, what a connection got without walls, by the proxy inside, and inside without a proxy; and what anybody
was asked about.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

sys.path.insert(0, str(Path(__file__).parents[4]))

from tests.enforcement.network.conftest import Journal, Names, Web

from stockade.network.gate import Answer, Choice
from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

PORT = 8642
LEADS_TO = {
    "range": "198.51.100.7",
    "range-6": "2001:db8:1::7",
    "nat64": "64:ff9b::198.51.100.7",
    "nat64-own": "64:ff9b::203.0.113.77",
    "by-rule": "2001:db8:2::7",
    "by-port": "2001:db8:3::7",
    "elsewhere": "10.77.77.77",
    "opened": "198.51.100.8",
}
#: Where the control goes for a name: NAT64 has no gateway here.
BARE = {"nat64": "198.51.100.7"}
BY_PROXY = "curl -si -m 20 http://{place}/{mark} | tr -d '\\r' | grep -iE '^(HTTP/|X-Proxy-Error)' | tr '\\n' ' '"
WITHOUT = "curl -s -m 20 --noproxy '*' -o /dev/null -w '%{{http_code}}' http://{place}/{mark}"


class Web6(Web):
    """The same for IPv6, and so for IPv4 too."""

    address_family = socket.AF_INET6


def main(folder: str) -> None:
    project, home = Path(folder, "project"), Path(folder, "home")
    journal = Journal()
    names = Names(journal)
    for name, address in LEADS_TO.items():
        names.set(f"{name}.trap.test", (address,))
    Web6("ours", journal, place=("::", PORT))
    allowed = ("*.trap.test", f"{LEADS_TO['opened']}:{PORT}")
    settings = merge([Document(Layer.USER, "settings.json", {"sandbox.network.allowedDomains": allowed})])
    asked: list[str] = []
    lock = threading.Lock()

    def ask(host: str, _port: int, _command: str) -> Answer:
        with lock:
            asked.append(host)
        return Answer(Choice.SESSION)

    found: dict[str, dict[str, object]] = {}
    with BlockingSandbox(
        compile_policy(settings, cwd=str(project), home=str(home)),
        ask=ask,
        environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home)},
        name_servers=(f"127.0.0.1:{names.port}",),
    ) as sandbox:
        for name, address in LEADS_TO.items():
            places = {"name": f"{name}.trap.test:{PORT}", "literal": f"{_bracketed(address)}:{PORT}"}
            found[name] = {"control": _bare(BARE.get(name, address), f"bare-{name}", journal)}
            for kind, place in places.items():
                mark = f"mark-{name}-{kind}"
                said = sandbox.run(BY_PROXY.format(place=place, mark=mark), timeout=60).output.strip()
                bare = sandbox.run(WITHOUT.format(place=place, mark=mark), timeout=60).output.strip()
                heard = bool(journal.entries(mark))
                found[name][kind] = [said, bare, heard]
    sys.stdout.write(json.dumps({"found": found, "asked": asked}))


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _bare(address: str, mark: str, journal: Journal) -> bool:
    try:
        build_opener(ProxyHandler({})).open(f"http://{_bracketed(address)}:{PORT}/{mark}", timeout=5).read()
    except OSError:
        return False
    return bool(journal.entries(mark))


if __name__ == "__main__":
    main(sys.argv[1])
