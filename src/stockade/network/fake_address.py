"""Addresses that stand for names, inside one session.

A program that knows no proxy asks for an address and connects to it. It gets an address that exists nowhere else, and
whoever sees the connection finds the name by it: so the name is judged and resolved outside, once, as with a proxy.

Rules: a name keeps its address for as long as there is room, and has the same number in both families. When as many
names are known as there is room for, the one that was asked for or used longest ago gives its number up, unless a
connection holds it, or a program may still keep the answer that it got: who floods the table with names must not make
another program's address stand for one of them. If there is none, none is to be had for a while. Numbers are given out
in turn, so that one that was given up comes back last.

IPv4: 198.18.0.0/15, set aside for measuring networks, which nobody routes. IPv6: a prefix of our own among the unique
local ones, whose forty random bits are the letters "stock".

Source of truth: RFC 2544 appendix C.2.2, RFC 4193.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.policy.host import Host

IPV4_NETWORK: Final = IPv4Network("198.18.0.0/15")
IPV6_NETWORK: Final = IPv6Network("fd73:746f:636b::/64")
CAPACITY: Final = 100_000
#: Seconds that a program may keep an address, as it is told.
TIME_TO_LIVE: Final = 60
# Those who keep it a little longer than that are served as well.
_KEPT_SECONDS: Final = 2.0 * TIME_TO_LIVE
# The lowest are left to whoever sets up the network: its own address, a gateway.
_FIRST: Final = 256


class FakeAddress(Value):
    """One name's address, in both families."""

    ipv4: IPv4Address
    ipv6: IPv6Address


class FakeAddresses:
    """The table of one session."""

    def __init__(
        self,
        capacity: int = CAPACITY,
        *,
        seconds: float = _KEPT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        largest = IPV4_NETWORK.num_addresses - _FIRST - 1
        if not 1 <= capacity <= largest:
            message = f"there is room for 1 to {largest} names, not {capacity}"
            raise ValueError(message)
        self._capacity = capacity
        self._seconds = seconds
        self._clock = clock
        self._used: dict[int, float] = {}
        self._numbers: OrderedDict[Host, int] = OrderedDict()  # the one used longest ago comes first
        self._names: dict[int, Host] = {}
        self._holds: dict[int, int] = {}
        self._given_up: deque[int] = deque()
        self._next = _FIRST

    def __len__(self) -> int:
        """Return how many names are known."""
        return len(self._numbers)

    def assign(self, name: Host) -> FakeAddress | None:
        """Return the address of a name, a new one if need be; ``None`` if all are in use."""
        number = self._numbers.get(name)
        if number is None:
            number = self._new_number()
            if number is None:
                return None
            self._numbers[name] = number
            self._names[number] = name
        self._use(name, number)
        return _address(number)

    def name_of(self, address: str) -> Host | None:
        """Return the name that an address stands for, ``None`` if it is none of ours or was given up."""
        number = _number(address)
        if number is None or number not in self._names:
            return None
        name = self._names[number]
        self._use(name, number)
        return name

    def hold(self, address: str) -> Host | None:
        """Return the name of an address, and keep it until ``release`` is called as often as this was."""
        name = self.name_of(address)
        if name is not None:
            number = self._numbers[name]
            self._holds[number] = self._holds.get(number, 0) + 1
        return name

    def release(self, address: str) -> None:
        """Let go of an address that was held."""
        number = _number(address)
        if number is None or number not in self._holds:
            message = f"{address} is not held"
            raise ValueError(message)
        self._holds[number] -= 1
        if not self._holds[number]:
            del self._holds[number]

    def _new_number(self) -> int | None:
        if len(self._numbers) >= self._capacity and not self._give_up_one():
            return None
        if self._next >= IPV4_NETWORK.num_addresses - 1:
            return self._given_up.popleft()
        self._next += 1
        return self._next - 1

    def _give_up_one(self) -> bool:
        for _ in range(len(self._numbers)):
            name, number = next(iter(self._numbers.items()))
            if number in self._holds:
                self._use(name, number)  # it need not be looked at again so soon
                continue
            if self._clock() - self._used[number] < self._seconds:
                return False  # and so are all that come after it
            del self._numbers[name]
            del self._names[number]
            del self._used[number]
            self._given_up.append(number)
            return True
        return False

    def _use(self, name: Host, number: int) -> None:
        self._numbers.move_to_end(name)
        self._used[number] = self._clock()


def _address(number: int) -> FakeAddress:
    return FakeAddress(IPV4_NETWORK[number], IPV6_NETWORK[number])


def _number(address: str) -> int | None:
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    network = IPV4_NETWORK if isinstance(parsed, IPv4Address) else IPV6_NETWORK
    return int(parsed) - int(network.network_address) if parsed in network else None
