from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.network.fake_address import IPV4_NETWORK, IPV6_NETWORK, FakeAddress, FakeAddresses
from stockade.policy.host import Host

A, B, C, D = (Host.parse(f"{letter}.example") for letter in "abcd")


def address(addresses: FakeAddresses, name: Host) -> str:
    assigned = addresses.assign(name)
    assert assigned is not None
    return str(assigned.ipv4)


def test_a_name_has_one_address_in_both_families_and_keeps_it() -> None:
    addresses = FakeAddresses()
    first = addresses.assign(A)
    assert first == FakeAddress(IPv4Address("198.18.1.0"), IPv6Address("fd73:746f:636b::100"))
    assert addresses.assign(B) == FakeAddress(IPv4Address("198.18.1.1"), IPv6Address("fd73:746f:636b::101"))
    assert addresses.assign(A) == first
    assert len(addresses) == 2


@pytest.mark.parametrize("text", ["198.18.1.0", "fd73:746f:636b::100", "FD73:746F:636B:0::100", "::ffff:198.18.1.0"])
def test_a_name_is_found_by_either_address(text: str) -> None:
    addresses = FakeAddresses()
    addresses.assign(A)
    assert addresses.name_of(text) == A


@pytest.mark.parametrize(
    "text", ["198.18.1.1", "198.18.0.0", "198.20.0.0", "93.184.216.34", "fd73:746f:636b::101", "::1", "a.example", ""]
)
def test_no_name_is_found_by_another(text: str) -> None:
    addresses = FakeAddresses()
    addresses.assign(A)
    assert addresses.name_of(text) is None
    assert addresses.hold(text) is None


def test_the_one_used_longest_ago_gives_its_address_up() -> None:
    addresses = FakeAddresses(capacity=3, seconds=0)
    held = {name: address(addresses, name) for name in (A, B, C)}
    addresses.assign(A)
    addresses.name_of(held[B])
    fourth = address(addresses, D)
    assert fourth not in held.values()
    assert [addresses.name_of(text) for text in (*held.values(), fourth)] == [A, B, None, D]


def test_a_held_address_is_never_given_up() -> None:
    addresses = FakeAddresses(capacity=2, seconds=0)
    first, second = address(addresses, A), address(addresses, B)
    for text in (first, first, second):
        addresses.hold(text)
    assert addresses.assign(C) is None
    addresses.release(first)
    assert addresses.assign(C) is None
    addresses.release(first)
    third = address(addresses, C)
    assert [addresses.name_of(text) for text in (first, second, third)] == [None, B, C]


def test_an_address_is_not_given_up_while_a_program_may_keep_it() -> None:
    now = 0.0
    addresses = FakeAddresses(capacity=2, clock=lambda: now)
    first, second = address(addresses, A), address(addresses, B)
    now = 100.0
    assert addresses.name_of(second) == B
    assert addresses.assign(C) is None
    now = 121.0
    third = address(addresses, C)
    assert [addresses.name_of(text) for text in (first, second, third)] == [None, B, C]
    assert addresses.assign(D) is None


@pytest.mark.parametrize("text", ["198.18.1.0", "10.0.0.1", "x"])
def test_what_is_not_held_cannot_be_released(text: str) -> None:
    with pytest.raises(ValueError, match="is not held"):
        FakeAddresses().release(text)


@pytest.mark.parametrize("capacity", [0, -1, 1 << 17])
def test_there_is_room_for_so_many(capacity: int) -> None:
    with pytest.raises(ValueError, match="there is room for 1 to 130815 names"):
        FakeAddresses(capacity)


def test_addresses_come_round_again_oldest_first_and_stay_in_their_networks() -> None:
    addresses = FakeAddresses(capacity=2, seconds=0)
    addresses._next = IPV4_NETWORK.num_addresses - 3
    seen = [address(addresses, Host.parse(f"h{number}.example")) for number in range(6)]
    assert seen == ["198.19.255.253", "198.19.255.254", *["198.19.255.253", "198.19.255.254"] * 2]
    last = addresses.assign(A)
    assert last is not None
    assert last.ipv4 in IPV4_NETWORK
    assert last.ipv6 in IPV6_NETWORK


@given(st.lists(st.tuples(st.sampled_from(["assign", "hold", "release"]), st.integers(0, 5))))
def test_no_two_names_share_an_address_and_the_held_stay(steps: list[tuple[str, int]]) -> None:
    addresses = FakeAddresses(capacity=3, seconds=0)
    holds: list[tuple[str, Host]] = []
    for action, number in steps:
        name = Host.parse(f"h{number}.example")
        if action == "release" and holds:
            addresses.release(holds.pop(number % len(holds))[0])
        elif (assigned := addresses.assign(name)) is not None and action == "hold":
            assert addresses.hold(str(assigned.ipv6)) == name
            holds.append((str(assigned.ipv6), name))
        assert len(addresses) <= 3
        assert [addresses.name_of(text) for text, _ in holds] == [name for _, name in holds]
