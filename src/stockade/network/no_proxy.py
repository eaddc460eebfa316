"""``NO_PROXY``: the destinations that are reached without the upstream proxy.

Rules, the common ground of those who read it: entries between commas or spaces; ``*`` is every host; a name
stands for itself and all below it, with or without ``.`` or ``*.`` before it; an address stands for itself; a
range (``10.0.0.0/8``) for all in it; ``:port`` at the end of a name or address limits it to that port. Names are
not resolved to be compared with ranges. An entry that means none of this is left out, and so its hosts go through
the proxy; ``left_out`` keeps it, to be shown.

Source of truth: curl's manual (NO_PROXY), Go's httpproxy; there is no standard.
"""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from stockade.annotation import TYPE_CHECKING
from stockade.errors import InvalidTextError
from stockade.policy.host import Host, HostKind
from stockade.policy.port import Port, split_port
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.destination import Destination


class NoProxy(Value):
    """What one ``NO_PROXY`` says. Build it with ``NoProxy.parse``."""

    everything: bool = False
    hosts: tuple[tuple[Host, Port | None], ...] = ()
    ranges: tuple[IPv4Network | IPv6Network, ...] = ()
    left_out: tuple[str, ...] = ()

    def covers(self, destination: Destination) -> bool:
        """Say whether a destination is reached without a proxy."""
        return self.everything or self._names(destination) or self._holds(destination.host)

    def _names(self, destination: Destination) -> bool:
        return any(
            _same_or_below(destination.host, host) and port in (None, destination.port) for host, port in self.hosts
        )

    def _holds(self, host: Host) -> bool:
        return host.kind is not HostKind.NAME and any(ip_address(host.text) in network for network in self.ranges)

    @classmethod
    def parse(cls, text: str) -> NoProxy:
        """Read the list; no text is an error."""
        hosts: list[tuple[Host, Port | None]] = []
        ranges: list[IPv4Network | IPv6Network] = []
        left_out: list[str] = []
        everything = False
        for entry in text.replace(",", " ").split():
            read = _read(entry)
            if read is None:
                left_out.append(entry)
            elif read == "*":
                everything = True
            elif isinstance(read, tuple):
                hosts.append(read)
            elif not isinstance(read, str):
                ranges.append(read)
        return cls(everything, tuple(hosts), tuple(ranges), tuple(left_out))


def _read(entry: str) -> str | tuple[Host, Port | None] | IPv4Network | IPv6Network | None:
    if entry == "*":
        return entry
    if "/" in entry:
        try:
            return ip_network(entry.replace("[", "").replace("]", ""), strict=False)
        except ValueError:
            return None
    bare = entry.removeprefix("*").removeprefix(".")
    try:
        if bare.count(":") > 1 and not bare.startswith("["):
            return Host.parse(bare), None
        host_text, port_text = split_port(bare)
        return Host.parse(host_text), None if port_text is None else Port.parse(port_text)
    except InvalidTextError:
        return None


def _same_or_below(host: Host, parent: Host) -> bool:
    below = host.kind is parent.kind is HostKind.NAME and host.text.endswith(f".{parent.text}")
    return host == parent or below
