from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from errno import EEXIST
from typing import Any, TypeAlias

import pytest

from stockade.platforms.linux import netlink, nftables

InNetwork: TypeAlias = Callable[[Callable[[], object]], Any]

KEPT = nftables.Kept((b"\x7f", bytes((10, 1))), (bytes(15) + b"\1",))
INET = """\
table inet stockade {
	chain carry {
		type nat hook output priority -100; policy accept;
		ip daddr 127.0.0.0/8 return
		ip daddr 10.1.0.0/16 return
		ip6 daddr ::1 return
		udp dport 53 redirect to :5300
		tcp dport 53 redirect to :5300
		meta l4proto tcp redirect to :3129
	}
}
"""
IPV4 = INET.replace("table inet", "table ip").replace("\t\tip6 daddr ::1 return\n", "")
IPV6 = "".join(line for line in INET.replace("table inet", "table ip6").splitlines(True) if "ip daddr" not in line)


def make(family: int) -> None:
    netlink.perform(nftables.NETLINK_NETFILTER, nftables.redirection(family, KEPT, 3129, 5300), b"opening")


def listed(family: int) -> str:
    make(family)
    # The older ones call the priority by its number, the newer ones by its name.
    found = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
    return found.replace("priority dstnat;", "priority -100;").replace("ip6 nexthdr tcp", "meta l4proto tcp")


@pytest.mark.skipif(shutil.which("nft") is None, reason="the program nft is not installed")
@pytest.mark.parametrize(
    ("family", "expected"),
    [
        pytest.param(nftables.NFPROTO_INET, INET, id="both"),
        pytest.param(nftables.NFPROTO_IPV4, IPV4, id="ipv4"),
        pytest.param(nftables.NFPROTO_IPV6, IPV6, id="ipv6"),
    ],
)
def test_the_kernel_reads_the_rules_as_they_are_meant(in_network: InNetwork, family: int, expected: str) -> None:
    assert in_network(lambda: listed(family)) == expected


def refusal(family: int, times: int) -> tuple[int | None, object]:
    try:
        for _ in range(times):
            make(family)
    except OSError as error:
        return error.errno, error.filename
    return 0, None


def test_a_second_table_is_refused_by_name(in_network: InNetwork) -> None:
    assert in_network(lambda: refusal(nftables.NFPROTO_INET, 2)) == (EEXIST, b"nftables table")


def test_a_family_without_nat_is_refused_by_the_chain(in_network: InNetwork) -> None:
    _, step = in_network(lambda: refusal(3, 1))  # NFPROTO_ARP
    assert step == b"nftables nat chain"


def test_every_request_has_its_step() -> None:
    batch = nftables.redirection(nftables.NFPROTO_INET, KEPT, 3129, 5300)
    assert [request.step for request in batch] == [
        b"nftables",
        b"nftables table",
        b"nftables nat chain",
        *[b"nftables rule for own addresses"] * 3,
        b"nftables redirection of DNS by UDP",
        b"nftables redirection of DNS by TCP",
        b"nftables redirection of TCP",
        b"nftables",
    ]
