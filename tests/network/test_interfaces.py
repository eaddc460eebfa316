from __future__ import annotations

import socket

import pytest

from stockade.errors import UnavailableError
from stockade.network.interfaces import OwnAddresses, own_addresses
from stockade.policy.host import Host, HostKind

HERE = frozenset({Host.parse("10.0.0.1")})


def test_loopback_is_among_the_addresses() -> None:
    assert Host("127.0.0.1", HostKind.IPV4) in own_addresses()


def test_every_address_is_canonical_and_can_be_bound() -> None:
    for address in own_addresses():
        assert Host.parse(address.text) == address
        if address.text.startswith("fe80:"):
            continue  # cannot be bound without its zone
        family = socket.AF_INET if address.kind is HostKind.IPV4 else socket.AF_INET6
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address.text, 0))


def test_addresses_are_read_again_when_they_are_old() -> None:
    now = [0.0]
    answers = [HERE, frozenset[Host]()]
    own = OwnAddresses(lambda: answers.pop(0), seconds=2, clock=lambda: now[0])
    assert own() == HERE
    now[0] = 1.9
    assert own() == HERE
    now[0] = 2.0
    assert own() == frozenset()


def test_old_addresses_do_not_stand_for_ones_that_cannot_be_read() -> None:
    now = [0.0]
    outcomes: list[frozenset[Host] | UnavailableError] = [HERE, UnavailableError("no netlink")]

    def read() -> frozenset[Host]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, UnavailableError):
            raise outcome
        return outcome

    own = OwnAddresses(read, seconds=2, clock=lambda: now[0])
    assert own() == HERE
    now[0] = 3.0
    with pytest.raises(UnavailableError):
        own()
