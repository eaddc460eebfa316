"""Addresses that a name may not lead to: this machine, its neighbours on the link, and the cloud's secrets.

Whoever runs the name server of an allowed name chooses where it leads. So each address is judged after the
name was resolved, and the judged address is the one that is dialled. An address that is forbidden is opened
by one thing alone: that very address, with this port or with none, in the allowed list; not by a name that
leads to it, and not by an answer to a question.

Forbidden: loopback, "this network", link-local and site-local, multicast, broadcast and reserved ranges; the
addresses at which clouds and local services hand out credentials; every address of this host, on an interface or by a
route alone (``local_route``); the ranges for benchmarks, from which transparent mode takes the addresses that it
invents; all of IPv6 that is neither global unicast nor unique local; IPv6 forms that carry IPv4 through a tunnel. An
IPv4-mapped address is that IPv4, and one behind the well-known NAT64 prefix is judged as the IPv4 in it too, because
hosts without IPv4 reach everything that way.

Not forbidden: private ranges (RFC 1918, RFC 6598, RFC 4193). Names of one's own network are what people allow
most after public ones, and only an allowed name leads there. Nor ranges for documentation: they lead nowhere,
or into a virtual machine's own network. NAT64 prefixes of a network's own choosing cannot
be told from other addresses; nor can the address of a host on which this one is a guest.

Addresses that the denied list holds stay denied under any name.

Source of truth: the IANA special-purpose registries (RFC 6890), RFC 6052, RFC 8215, RFC 3056, RFC 4380,
RFC 5214, and the manuals of each cloud.
"""

from __future__ import annotations

from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError
from stockade.policy.decision import NetworkDecision, Reason, Verdict, decide_destination
from stockade.policy.destination import Destination
from stockade.policy.host import Host, HostKind
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from stockade.policy.network_rules import NetworkRules
    from stockade.policy.port import Port


class Danger(Enum):
    """What makes an address forbidden, in words that complete "this address is"."""

    LOOPBACK = "a loopback address"
    THIS_NETWORK = "an address of this network, which means this host"
    LINK_LOCAL = "a link-local address"
    METADATA = "an address at which a cloud or a local service hands out credentials"
    OWN = "an address of this host"
    MULTICAST = "a multicast address"
    RESERVED = "an address that no host may have"
    TUNNEL = "an IPv6 address that hides an IPv4 address"


class Checked(Value):
    """Where an allowed connection may go: ``addresses`` is empty if, and only if, ``decision`` denies."""

    decision: NetworkDecision
    addresses: tuple[Host, ...] = ()


_METADATA_V4: Final = frozenset(
    map(
        IPv4Address,
        (
            "169.254.169.254",  # most clouds
            "169.254.170.2",  # ECS tasks
            "169.254.170.23",  # EKS pods
            "100.100.100.200",  # Alibaba
            "192.0.0.192",  # Oracle, classic
            "168.63.129.16",  # Azure's wire server
            "100.100.100.100",  # Tailscale's local service
        ),
    )
)
_METADATA_V6: Final = tuple(
    map(
        IPv6Network,
        (
            "fd00:ec2::/32",  # AWS: metadata, EKS pods, name server, clock
            "fd20:ce::254/128",  # Google
            "fd00:c1::a9fe:a9fe/128",  # Oracle
            "fd00:42::42/128",  # Scaleway
            "fd00:a9fe:a9fe::1/128",  # Akamai
            "fd7a:115c:a1e0::53/128",  # Tailscale's local service
        ),
    )
)
_RANGES_V4: Final = tuple(
    (IPv4Network(text), danger)
    for text, danger in (
        ("0.0.0.0/8", Danger.THIS_NETWORK),
        ("127.0.0.0/8", Danger.LOOPBACK),
        ("169.254.0.0/16", Danger.LINK_LOCAL),
        ("192.0.0.0/24", Danger.RESERVED),
        ("192.88.99.0/24", Danger.RESERVED),
        ("198.18.0.0/15", Danger.RESERVED),
        ("224.0.0.0/4", Danger.MULTICAST),
        ("240.0.0.0/4", Danger.RESERVED),
    )
)
_RANGES_V6: Final = tuple(
    (IPv6Network(text), danger)
    for text, danger in (
        ("::/128", Danger.THIS_NETWORK),
        ("::1/128", Danger.LOOPBACK),
        ("::/96", Danger.TUNNEL),  # IPv4-compatible
        ("::ffff:0:0:0/96", Danger.TUNNEL),  # IPv4-translated
        ("64:ff9b:1::/48", Danger.TUNNEL),  # where the IPv4 stands in it is each network's own choice
        ("2001::/32", Danger.TUNNEL),  # Teredo
        ("2002::/16", Danger.TUNNEL),  # 6to4
        ("2001:2::/48", Danger.RESERVED),
        ("fe80::/10", Danger.LINK_LOCAL),
        ("fec0::/10", Danger.LINK_LOCAL),  # site-local, which means as little
        ("ff00::/8", Danger.MULTICAST),
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_USABLE_V6: Final = (IPv6Network("2000::/3"), IPv6Network("fc00::/7"))
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
_V4_BITS: Final = 0xFFFF_FFFF
_LOCAL_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"})
_METADATA_NAMES: Final = frozenset(
    {
        "instance-data",
        "instance-data.ec2.internal",
        "metadata",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.oraclecloud.com",
        "metadata.platformequinix.com",
        "metadata.tencentyun.com",
        "metadata.azure.internal",
    }
)


def danger(address: Host, own: AbstractSet[Host] = frozenset()) -> Danger | None:
    """Say what is wrong with an address, if anything is; ``own`` are the addresses of this host."""
    if address.kind is HostKind.NAME:
        message = f"{address} is a name: resolve it first"
        raise TypeError(message)
    if address.kind is HostKind.IPV4:
        found = _danger_v4(IPv4Address(address.text))
    else:
        found = _danger_v6(IPv6Address(address.text), own)
    return Danger.OWN if found is None and address in own else found


def danger_of_name(host: Host) -> Danger | None:
    """Say what is wrong with a name that somebody else will resolve: it is known to lead to a forbidden place."""
    if host.text in _LOCAL_NAMES or host.text.endswith(".localhost"):
        return Danger.LOOPBACK
    return Danger.METADATA if host.text in _METADATA_NAMES else None


def check(
    decision: NetworkDecision,
    rules: NetworkRules,
    addresses: Iterable[Host],
    own: AbstractSet[Host] = frozenset(),
    leads_here: Callable[[Destination], bool] | None = None,
) -> Checked:
    """Judge where an allowed destination leads: keep the addresses that may be dialled, or deny if none may.

    ``addresses`` are what the destination's host was resolved to, or that host itself if it is an address.
    ``leads_here`` is asked about each that nothing else is wrong with; one that it cannot tell of is not dialled.
    """
    destination = decision.destination
    if destination is None:
        return Checked(decision)
    good: list[Host] = []
    refusal: NetworkDecision | None = None
    for address in dict.fromkeys(addresses):
        target = Destination(address, destination.port)
        refused = _refused(decision, rules, target, own) or _refused_by_route(decision, rules, target, leads_here)
        if refused is None:
            good.append(address)
        refusal = refusal or refused
    if good or refusal is None:
        return Checked(decision, tuple(good))
    return Checked(refusal)


def opened(rules: NetworkRules, address: Host, port: Port) -> bool:
    """Say whether the allowed list holds this very address on this port."""
    return any(rule.value.host == address and rule.value.matches(address, port) for rule in rules.allowed)


def _refused(
    decision: NetworkDecision, rules: NetworkRules, target: Destination, own: AbstractSet[Host]
) -> NetworkDecision | None:
    verdict = decide_destination(rules, target, can_ask=False)
    if verdict.reason is Reason.DENIED:
        return decision.but(
            reason=verdict.reason, rule=verdict.rule, detail=f"it leads to {target.host}", remedy=verdict.remedy
        )
    if opened(rules, target.host, target.port):
        return None
    found = danger(target.host, own)
    return None if found is None else decision.forbidden(target.host, found.value)


def _refused_by_route(
    decision: NetworkDecision,
    rules: NetworkRules,
    target: Destination,
    leads_here: Callable[[Destination], bool] | None,
) -> NetworkDecision | None:
    if leads_here is None or decision.verdict is Verdict.DENY or opened(rules, target.host, target.port):
        return None
    carried = None if target.host.kind is HostKind.IPV4 else _carried(IPv6Address(target.host.text))
    targets = (target,) if carried is None else (target, Destination(carried, target.port))
    try:
        here = any(map(leads_here, targets))
    except StockadeError as error:
        return unjudged(decision, error)
    return decision.forbidden(target.host, Danger.OWN.value) if here else None


def unjudged(decision: NetworkDecision, error: StockadeError) -> NetworkDecision:
    """Deny what cannot be judged."""
    return decision.but(reason=Reason.FORBIDDEN_ADDRESS, rule=None, detail=error.message, remedy=error.hint)


def _carried(address: IPv6Address) -> Host | None:
    """Return the IPv4 address that this one stands for, if it does."""
    carried = address.ipv4_mapped or (IPv4Address(int(address) & _V4_BITS) if address in _NAT64 else None)
    return None if carried is None else Host(str(carried), HostKind.IPV4)


def _danger_v4(address: IPv4Address) -> Danger | None:
    if address in _METADATA_V4:
        return Danger.METADATA
    return next((danger for network, danger in _RANGES_V4 if address in network), None)


def _danger_v6(address: IPv6Address, own: AbstractSet[Host]) -> Danger | None:
    carried = _carried(address)
    if carried is not None:
        return danger(carried, own)
    if any(address in network for network in _METADATA_V6):
        return Danger.METADATA
    found = next((danger for network, danger in _RANGES_V6 if address in network), None)
    if found is not None:
        return found
    if (int(address) >> 32) & _V4_BITS in _ISATAP:
        return Danger.TUNNEL
    return None if any(address in network for network in _USABLE_V6) else Danger.RESERVED
