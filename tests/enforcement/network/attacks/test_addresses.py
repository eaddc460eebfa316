"""An allowed name leads only where it may, and the address that was checked is the one that is dialled."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.network.attacks.conftest import MakeTrial, Trial
    from tests.enforcement.network.conftest import Net, Open


def _own_address() -> str:
    """Return an address of this host that is not loopback, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.3"
        return str(probe.getsockname()[0])


LEADS_TO = {
    "loopback": ("127.0.0.1",),
    "more-loopback": ("127.8.8.8",),
    "loopback-6": ("::1",),
    "unspecified": ("0.0.0.0",),  # noqa: S104 - data
    "unspecified-6": ("::",),
    "link-local": ("169.254.10.20",),
    "link-local-6": ("fe80::1",),
    "metadata": ("169.254.169.254",),
    "metadata-6": ("fd00:ec2::254",),
    "mapped": ("::ffff:127.0.0.1",),
    "compatible": ("::127.0.0.1",),
    "nat64": ("64:ff9b::7f00:1",),
    "own": (_own_address(),),
    "multicast": ("224.0.0.1",),
    "broadcast": ("255.255.255.255",),
    "fake": ("198.18.1.1",),
    "several": ("127.0.0.1", "::1", "169.254.169.254"),
}
TRAP = """
said = proxy(request(f"http://{name}.trap.test:{{facts['http']}}/{{mark}}", "Connection: close"))
end = codes(said) + " " + " ".join(re.findall(r"X-Proxy-Error: (\\S+)", said.decode()))
"""
TRANSPARENT = """
host = f"{name}.trap.test" if facts["inside"] else "web.test"
try:
    stream = connect(host, facts["http"])
    stream.sendall(f"GET /{{mark}} HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    end = codes(hear(stream))
except ConnectionResetError:
    end = "closed"
"""


@pytest.fixture(scope="module")
def trial(net: Net, opened: Open, make_trial: MakeTrial) -> Trial:
    for name, addresses in LEADS_TO.items():
        net.names.set(f"{name}.trap.test", addresses)
    attacks = {name: (TRAP.format(name=name),) for name in LEADS_TO}
    attacks |= {f"{name}, no proxy": (TRANSPARENT.format(name=name),) for name in LEADS_TO}
    return make_trial(attacks, opened("*.trap.test"), inside=(False, True))


@pytest.mark.parametrize("name", LEADS_TO)
def test_an_allowed_name_does_not_lead_to_this_host_or_to_the_clouds_secrets(trial: Trial, name: str) -> None:
    trial.judge(name, "403 blocked-address")
    trial.judge(f"{name}, no proxy", "closed")


GET = """
end = codes(proxy(request(f"http://{name}:{{facts['http']}}/{{mark}}", "Connection: close")))
"""


def test_a_name_is_resolved_once_for_a_connection_and_another_answer_comes_too_late(
    net: Net, opened: Open, make_trial: MakeTrial
) -> None:
    net.names.set("rebind.test", ("127.0.0.1",), ("127.0.0.2",))
    before = len(net.journal)
    both = make_trial({"once": (GET.format(name="rebind.test"),)}, opened(*net.allow("rebind.test")))
    assert both.inside["once"].end == "200"
    asked = [entry for entry in net.journal.since(before) if entry.endswith("rebind.test") and " 1 " in entry]
    assert len(asked) == 1


def test_of_several_answers_only_the_checked_ones_are_dialled(net: Net, opened: Open, make_trial: MakeTrial) -> None:
    with socket.create_server(("127.0.0.2", net.http.port)) as trap:
        trap.setblocking(False)
        net.names.set("mixed.test", ("127.0.0.2", "127.0.0.1"))
        both = make_trial({"mixed": (GET.format(name="mixed.test"),)}, opened(*net.allow("mixed.test")))
        assert (both.inside["mixed"].end, both.inside["mixed"].heard != ()) == ("200", True)
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_an_answer_that_turns_bad_is_refused(net: Net, opened: Open, make_trial: MakeTrial) -> None:
    net.names.set("turning.test", ("127.0.0.2",), ("127.0.0.1",))
    both = make_trial({"turned": (GET.format(name="turning.test"),)}, opened(*net.allow("turning.test")))
    assert both.inside["turned"].end == "403"
