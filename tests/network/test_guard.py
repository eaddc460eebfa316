from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import UnavailableError
from stockade.network.guard import Checked, Danger, check, danger, danger_of_name, opened
from stockade.policy.decision import NetworkDecision, Reason, Verdict, decide
from stockade.policy.domain_pattern import DomainPattern
from stockade.policy.host import Host, HostKind
from stockade.policy.network_rules import NetworkRules
from stockade.policy.port import Port
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.policy.destination import Destination

USER = Origin(Layer.USER, "~/.stockade/settings.json")


def host(text: str) -> Host:
    return Host.parse(text)


def hosts(texts: str) -> tuple[Host, ...]:
    return tuple(map(host, texts.split()))


def rule(text: str) -> Sourced[DomainPattern]:
    return Sourced(DomainPattern.parse(text, deny=True), USER)


def rules(allowed: str = "", denied: str = "") -> NetworkRules:
    return NetworkRules(tuple(map(rule, allowed.split())), tuple(map(rule, denied.split())))


OWN = frozenset(hosts("10.1.2.3 2a00::1 93.184.216.1"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("127.0.0.1", Danger.LOOPBACK, id="loopback"),
        pytest.param("127.255.255.255", Danger.LOOPBACK, id="end of loopback"),
        pytest.param("0.0.0.0", Danger.THIS_NETWORK, id="unspecified"),  # noqa: S104 (an address to test, none to bind)
        pytest.param("0.1.2.3", Danger.THIS_NETWORK, id="this network"),
        pytest.param("169.254.1.1", Danger.LINK_LOCAL, id="link-local"),
        pytest.param("169.254.169.254", Danger.METADATA, id="metadata"),
        pytest.param("169.254.170.2", Danger.METADATA, id="metadata of ECS"),
        pytest.param("100.100.100.200", Danger.METADATA, id="metadata of Alibaba"),
        pytest.param("192.0.0.192", Danger.METADATA, id="metadata of Oracle"),
        pytest.param("168.63.129.16", Danger.METADATA, id="Azure's wire server"),
        pytest.param("224.0.0.251", Danger.MULTICAST, id="multicast"),
        pytest.param("239.255.255.255", Danger.MULTICAST, id="end of multicast"),
        pytest.param("255.255.255.255", Danger.RESERVED, id="broadcast"),
        pytest.param("240.0.0.1", Danger.RESERVED, id="reserved"),
        pytest.param("198.18.0.7", Danger.RESERVED, id="invented by transparent mode"),
        pytest.param("198.19.255.255", Danger.RESERVED, id="end of benchmark range"),
        pytest.param("10.1.2.3", Danger.OWN, id="own, private"),
        pytest.param("93.184.216.1", Danger.OWN, id="own, public"),
        pytest.param("10.1.2.4", None, id="private neighbour"),
        pytest.param("172.16.0.1", None, id="private"),
        pytest.param("192.168.1.1", None, id="private, home"),
        pytest.param("100.64.0.1", None, id="shared"),
        pytest.param("192.0.2.1", None, id="documentation"),
        pytest.param("126.255.255.255", None, id="below loopback"),
        pytest.param("128.0.0.1", None, id="above loopback"),
        pytest.param("198.17.255.255", None, id="below benchmark range"),
        pytest.param("198.20.0.0", None, id="above benchmark range"),
        pytest.param("8.8.8.8", None, id="public"),
        pytest.param("::", Danger.THIS_NETWORK, id="unspecified 6"),
        pytest.param("::1", Danger.LOOPBACK, id="loopback 6"),
        pytest.param("::127.0.0.1", Danger.TUNNEL, id="compatible"),
        pytest.param("::8.8.8.8", Danger.TUNNEL, id="compatible, public"),
        pytest.param("::ffff:0:127.0.0.1", Danger.TUNNEL, id="translated"),
        pytest.param("::ffff:127.0.0.1", Danger.LOOPBACK, id="mapped"),
        pytest.param("::ffff:8.8.8.8", None, id="mapped, public"),
        pytest.param("::ffff:10.1.2.3", Danger.OWN, id="mapped, own"),
        pytest.param("64:ff9b::127.0.0.1", Danger.LOOPBACK, id="NAT64"),
        pytest.param("64:ff9b::169.254.169.254", Danger.METADATA, id="NAT64 of metadata"),
        pytest.param("64:ff9b::10.1.2.3", Danger.OWN, id="NAT64 of own"),
        pytest.param("64:ff9b::8.8.8.8", None, id="NAT64, public"),
        pytest.param("64:ff9b:1::8.8.8.8", Danger.TUNNEL, id="NAT64 of a network's own"),
        pytest.param("2002:7f00:1::", Danger.TUNNEL, id="6to4"),
        pytest.param("2001:0:4136:e378:8000:63bf:80ff:fffe", Danger.TUNNEL, id="Teredo"),
        pytest.param("2a00::5efe:127.0.0.1", Danger.TUNNEL, id="ISATAP"),
        pytest.param("2a00::200:5efe:127.0.0.1", Danger.TUNNEL, id="ISATAP, global"),
        pytest.param("fe80::1", Danger.LINK_LOCAL, id="link-local 6"),
        pytest.param("fe80::a9fe:a9fe", Danger.LINK_LOCAL, id="metadata of OpenStack"),
        pytest.param("fec0::1", Danger.LINK_LOCAL, id="site-local"),
        pytest.param("ff02::1", Danger.MULTICAST, id="multicast 6"),
        pytest.param("fd00:ec2::254", Danger.METADATA, id="metadata of AWS 6"),
        pytest.param("fd20:ce::254", Danger.METADATA, id="metadata of Google 6"),
        pytest.param("100::1", Danger.RESERVED, id="discard"),
        pytest.param("4000::1", Danger.RESERVED, id="not assigned"),
        pytest.param("2a00::1", Danger.OWN, id="own 6"),
        pytest.param("2a00::2", None, id="public 6"),
        pytest.param("fd12:3456::1", None, id="unique local"),
        pytest.param("2606:4700::1111", None, id="public 6, another"),
    ],
)
def test_each_address_has_its_danger(text: str, expected: Danger | None) -> None:
    assert danger(host(text), OWN) is expected


def test_a_mapped_address_that_somebody_built_by_hand_is_judged_as_its_ipv4() -> None:
    assert danger(Host("::ffff:7f00:1", HostKind.IPV6)) is Danger.LOOPBACK


@given(st.ip_addresses())
def test_every_address_can_be_judged(address: object) -> None:
    danger(host(str(address)), OWN)


@given(st.ip_addresses(v=4))
def test_hiding_an_ipv4_address_in_ipv6_never_helps(address: object) -> None:
    plain = danger(host(str(address)))
    for prefix in ("64:ff9b::", "::ffff:"):
        assert danger(host(f"{prefix}{address}")) is plain
    for prefix in ("::", "::ffff:0:", "64:ff9b:1::", "2a00::5efe:"):
        assert danger(host(f"{prefix}{address}")) is not None


def test_a_name_has_no_address_to_judge() -> None:
    with pytest.raises(TypeError, match="resolve it first"):
        danger(host("example.com"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("localhost", Danger.LOOPBACK),
        ("app.localhost", Danger.LOOPBACK),
        ("metadata.google.internal", Danger.METADATA),
        ("notlocalhost", None),
        ("example.com", None),
    ],
)
def test_some_names_are_known_to_lead_to_a_forbidden_place(name: str, expected: Danger | None) -> None:
    assert danger_of_name(host(name)) is expected


@pytest.mark.parametrize(
    ("given_rules", "port", "resolved", "left"),
    [
        pytest.param(rules("a.com"), 443, "8.8.8.8 8.8.4.4", "8.8.8.8 8.8.4.4", id="all good"),
        pytest.param(rules("a.com"), 443, "8.8.8.8 8.8.8.8", "8.8.8.8", id="each once"),
        pytest.param(rules("a.com"), 443, "127.0.0.1 8.8.8.8", "8.8.8.8", id="the bad ones are left out"),
        pytest.param(rules("a.com"), 443, "127.0.0.1", "", id="loopback"),
        pytest.param(rules("a.com"), 443, "10.1.2.3 ::1", "", id="own and loopback"),
        pytest.param(rules("a.com 127.0.0.1:443"), 443, "127.0.0.1", "127.0.0.1", id="literal with port"),
        pytest.param(rules("a.com 127.0.0.1"), 443, "127.0.0.1", "127.0.0.1", id="literal"),
        pytest.param(rules("a.com 127.0.0.1:80"), 443, "127.0.0.1", "", id="literal with another port"),
        pytest.param(rules("a.com 127.0.0.2"), 443, "127.0.0.1", "", id="another literal"),
        pytest.param(rules("a.com [::1]"), 443, "::1", "::1", id="literal 6"),
        pytest.param(rules("a.com 127.0.0.1"), 443, "64:ff9b::7f00:1", "", id="the literal in disguise"),
        pytest.param(rules("a.com localhost"), 443, "127.0.0.1", "", id="a name opens no address"),
        pytest.param(rules("* a.com"), 443, "127.0.0.1", "", id="not even every name"),
        pytest.param(rules("a.com", "8.8.8.8"), 443, "8.8.8.8 8.8.4.4", "8.8.4.4", id="denied address"),
        pytest.param(rules("a.com 127.0.0.1", "127.0.0.1"), 443, "127.0.0.1", "", id="denied wins over allowed"),
    ],
)
def test_only_addresses_that_pass_are_left(given_rules: NetworkRules, port: int, resolved: str, left: str) -> None:
    decision = decide(given_rules, "a.com", port, can_ask=False)
    checked = check(decision, given_rules, hosts(resolved), OWN)
    assert checked.addresses == hosts(left)
    assert (checked.decision.verdict is Verdict.ALLOW) is bool(left)


def test_the_denial_names_the_address_and_the_one_setting_that_helps() -> None:
    given_rules = rules("db.example.com")
    decision = decide(given_rules, "db.example.com", 5432, can_ask=False)
    checked = check(decision, given_rules, hosts("127.0.0.1"))
    assert checked == Checked(
        NetworkDecision(
            Reason.FORBIDDEN_ADDRESS,
            "db.example.com:5432",
            decision.destination,
            detail="127.0.0.1 is a loopback address",
            remedy='add "127.0.0.1:5432" to sandbox.network.allowedDomains (stockade allow-domain 127.0.0.1:5432)',
        )
    )
    assert str(checked.decision) == (
        "denied: db.example.com:5432: it leads to an address that no name can open: 127.0.0.1 is a loopback address; "
        'add "127.0.0.1:5432" to sandbox.network.allowedDomains (stockade allow-domain 127.0.0.1:5432)'
    )


def test_the_denial_of_a_denied_address_names_the_rule() -> None:
    given_rules = rules("a.com", "8.8.8.8")
    decision = decide(given_rules, "a.com", 443, can_ask=False)
    denied = check(decision, given_rules, hosts("8.8.8.8")).decision
    assert (denied.reason, denied.rule, denied.detail) == (Reason.DENIED, rule("8.8.8.8"), "it leads to 8.8.8.8")


def test_a_literal_opens_its_own_port_alone() -> None:
    given_rules = rules("127.0.0.1:5432")
    assert opened(given_rules, host("127.0.0.1"), Port(5432))
    assert not opened(given_rules, host("127.0.0.1"), Port(5433))


def leading(*here: str) -> Callable[[Destination], bool]:
    return lambda target: str(target) in here


def cannot_tell(target: Destination) -> bool:
    message = f"no netlink for {target}"
    raise UnavailableError(message, "allow it")


@pytest.mark.parametrize(
    ("given_rules", "resolved", "left"),
    [
        pytest.param(rules("a.com"), "198.51.100.7 8.8.8.8", "8.8.8.8", id="a route makes it ours"),
        pytest.param(rules("a.com"), "2001:db8::7", "", id="IPv6"),
        pytest.param(rules("a.com"), "64:ff9b::198.51.100.7", "", id="the IPv4 behind NAT64"),
        pytest.param(rules("a.com 198.51.100.7"), "198.51.100.7", "198.51.100.7", id="opened by itself"),
        pytest.param(rules("a.com 198.51.100.7:443"), "198.51.100.7", "198.51.100.7", id="opened with its port"),
        pytest.param(rules("a.com 198.51.100.7:80"), "198.51.100.7", "", id="opened for another port"),
        pytest.param(rules("a.com"), "198.51.100.8", "198.51.100.8", id="its neighbour"),
    ],
)
def test_a_route_makes_an_address_ours(given_rules: NetworkRules, resolved: str, left: str) -> None:
    decision = decide(given_rules, "a.com", 443, can_ask=False)
    here = leading("198.51.100.7:443", "[2001:db8::7]:443")
    checked = check(decision, given_rules, hosts(resolved), OWN, here)
    assert checked.addresses == hosts(left)
    if not left:
        assert checked.decision.detail == f"{host(resolved)} is an address of this host"


def test_an_address_of_which_nobody_can_tell_is_not_dialled() -> None:
    given_rules = rules("a.com 8.8.8.8")
    decision = decide(given_rules, "a.com", 443, can_ask=False)
    assert check(decision, given_rules, hosts("8.8.8.8 8.8.4.4"), OWN, cannot_tell).addresses == hosts("8.8.8.8")
    denied = check(decision, given_rules, hosts("8.8.4.4"), OWN, cannot_tell).decision
    assert (denied.reason, denied.detail, denied.remedy) == (
        Reason.FORBIDDEN_ADDRESS,
        "no netlink for 8.8.4.4:443",
        "allow it",
    )


def test_nobody_is_asked_where_a_denied_address_leads() -> None:
    given_rules = rules("a.com", "8.8.8.8")
    for target in ("b.com", "8.8.8.8"):
        decision = decide(given_rules, target, 443, can_ask=False)
        assert check(decision, given_rules, hosts("8.8.4.4"), OWN, cannot_tell).decision == decision
