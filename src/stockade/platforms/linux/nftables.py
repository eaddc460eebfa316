"""The nftables rules that hand a session's connections to the proxy, as requests to the kernel.

A rule is a row of expressions that work on registers: load a part of the packet, compare it, act. Here they say: what
goes to the session's own addresses stays as it is; DNS goes to one port of the loopback address, all other TCP to
another. Nothing else is touched.

Rules: no I/O; the batch is taken by the kernel as a whole or not at all. Numbers are in the network's order.
Source of truth: nft(8), linux/netfilter/nfnetlink.h, linux/netfilter/nf_tables.h (whose names the numbers have).
"""

from __future__ import annotations

from stockade.platforms.linux.netlink import (
    NLM_F_ACK,
    NLM_F_APPEND,
    NLM_F_CREATE,
    NLM_F_EXCL,
    Request,
    attribute,
    nested,
)

NETLINK_NETFILTER = 12
NFPROTO_INET = 1
NFPROTO_IPV4 = 2
NFPROTO_IPV6 = 10

TABLE = b"stockade"
CHAIN = b"carry"
#: The step that stands for reaching nftables at all.
OPENING = b"nftables"

_NFNL_SUBSYS_NFTABLES = 10
_NFNL_MSG_BATCH_BEGIN = 0x10
_NFNL_MSG_BATCH_END = 0x11

_NFT_MSG_NEWTABLE = 0
_NFT_MSG_NEWCHAIN = 3
_NFT_MSG_NEWRULE = 6
_NFTA_TABLE_NAME = 1
_NFTA_CHAIN_TABLE = 1
_NFTA_CHAIN_NAME = 3
_NFTA_CHAIN_HOOK = 4
_NFTA_CHAIN_TYPE = 7
_NFTA_HOOK_HOOKNUM = 1
_NFTA_HOOK_PRIORITY = 2
_NFTA_RULE_TABLE = 1
_NFTA_RULE_CHAIN = 2
_NFTA_RULE_EXPRESSIONS = 4
_NFTA_LIST_ELEM = 1
_NFTA_EXPR_NAME = 1
_NFTA_EXPR_DATA = 2
_NFTA_META_DREG = 1
_NFTA_META_KEY = 2
_NFTA_CMP_SREG = 1
_NFTA_CMP_OP = 2
_NFTA_CMP_DATA = 3
_NFTA_PAYLOAD_DREG = 1
_NFTA_PAYLOAD_BASE = 2
_NFTA_PAYLOAD_OFFSET = 3
_NFTA_PAYLOAD_LEN = 4
_NFTA_IMMEDIATE_DREG = 1
_NFTA_IMMEDIATE_DATA = 2
_NFTA_DATA_VALUE = 1
_NFTA_DATA_VERDICT = 2
_NFTA_VERDICT_CODE = 1
_NFTA_REDIR_REG_PROTO_MIN = 1

_NFT_META_NFPROTO = 15
_NFT_META_L4PROTO = 16
_NFT_PAYLOAD_NETWORK_HEADER = 1
_NFT_PAYLOAD_TRANSPORT_HEADER = 2
_NFT_CMP_EQ = 0
_NFT_REG_VERDICT = 0
_NFT_REG_1 = 1
_NFT_RETURN = -5
_NF_INET_LOCAL_OUT = 3
_NF_IP_PRI_NAT_DST = -100

_IPPROTO_TCP = 6
_IPPROTO_UDP = 17
_DNS_PORT = 53
# Where the headers have the destination.
_IPV4_DESTINATION = 16
_IPV6_DESTINATION = 24
_PORT_DESTINATION = 2


class Kept:
    """Destinations that are left alone: the beginnings of addresses, in whole bytes."""

    __slots__ = ("ipv4", "ipv6")

    def __init__(self, ipv4: tuple[bytes, ...], ipv6: tuple[bytes, ...]) -> None:
        """Take them by family."""
        self.ipv4 = ipv4
        self.ipv6 = ipv6


def redirection(family: int, kept: Kept, transparent_port: int, name_port: int) -> tuple[Request, ...]:
    """Return the batch that makes the table of one family; an answer to it says that all is done."""
    rules = [
        *((_keep(family, NFPROTO_IPV4, start), b"rule for own addresses") for start in kept.ipv4),
        *((_keep(family, NFPROTO_IPV6, start), b"rule for own addresses") for start in kept.ipv6),
        (_is_protocol(_IPPROTO_UDP) + _is_to_port(_DNS_PORT) + _redirect(name_port), b"redirection of DNS by UDP"),
        (_is_protocol(_IPPROTO_TCP) + _is_to_port(_DNS_PORT) + _redirect(name_port), b"redirection of DNS by TCP"),
        (_is_protocol(_IPPROTO_TCP) + _redirect(transparent_port), b"redirection of TCP"),
    ]
    made = [_rule(family, expressions, step) for expressions, step in rules if expressions]
    made[-1].flags |= NLM_F_ACK
    return (
        Request(_NFNL_MSG_BATCH_BEGIN, 0, _head(0, _NFNL_SUBSYS_NFTABLES), OPENING),
        _table(family),
        _chain(family),
        *made,
        Request(_NFNL_MSG_BATCH_END, 0, _head(0, _NFNL_SUBSYS_NFTABLES), OPENING),
    )


def _head(family: int, resource: int = 0) -> bytes:
    """Return a ``struct nfgenmsg``."""
    return bytes((family, 0)) + resource.to_bytes(2, "big")


def _request(kind: int, flags: int, body: bytes, step: bytes) -> Request:
    return Request(_NFNL_SUBSYS_NFTABLES << 8 | kind, NLM_F_CREATE | flags, body, OPENING + b" " + step)


def _table(family: int) -> Request:
    return _request(_NFT_MSG_NEWTABLE, NLM_F_EXCL, _head(family) + _text(_NFTA_TABLE_NAME, TABLE), b"table")


def _chain(family: int) -> Request:
    hook = nested(
        _NFTA_CHAIN_HOOK,
        _number(_NFTA_HOOK_HOOKNUM, _NF_INET_LOCAL_OUT),
        _number(_NFTA_HOOK_PRIORITY, _NF_IP_PRI_NAT_DST),
    )
    names = _text(_NFTA_CHAIN_TABLE, TABLE) + _text(_NFTA_CHAIN_NAME, CHAIN)
    body = _head(family) + names + hook + _text(_NFTA_CHAIN_TYPE, b"nat")
    return _request(_NFT_MSG_NEWCHAIN, NLM_F_EXCL, body, b"nat chain")


def _rule(family: int, expressions: bytes, step: bytes) -> Request:
    names = _text(_NFTA_RULE_TABLE, TABLE) + _text(_NFTA_RULE_CHAIN, CHAIN)
    body = _head(family) + names + nested(_NFTA_RULE_EXPRESSIONS, expressions)
    return _request(_NFT_MSG_NEWRULE, NLM_F_APPEND, body, step)


def _keep(family: int, kind: int, start: bytes) -> bytes:
    """Return the expressions that leave a destination alone; none in the table of another kind."""
    if family not in {kind, NFPROTO_INET}:
        return b""
    place = _IPV4_DESTINATION if kind == NFPROTO_IPV4 else _IPV6_DESTINATION
    only = _meta(_NFT_META_NFPROTO) + _equals(bytes((kind,))) if family == NFPROTO_INET else b""
    stop = nested(_NFTA_DATA_VERDICT, _number(_NFTA_VERDICT_CODE, _NFT_RETURN))
    return (
        only + _payload(_NFT_PAYLOAD_NETWORK_HEADER, place, len(start)) + _equals(start) + _set(_NFT_REG_VERDICT, stop)
    )


def _is_protocol(protocol: int) -> bytes:
    return _meta(_NFT_META_L4PROTO) + _equals(bytes((protocol,)))


def _is_to_port(port: int) -> bytes:
    return _payload(_NFT_PAYLOAD_TRANSPORT_HEADER, _PORT_DESTINATION, 2) + _equals(port.to_bytes(2, "big"))


def _redirect(port: int) -> bytes:
    value = attribute(_NFTA_DATA_VALUE, port.to_bytes(2, "big"))
    return _set(_NFT_REG_1, value) + _expression(b"redir", _number(_NFTA_REDIR_REG_PROTO_MIN, _NFT_REG_1))


def _meta(key: int) -> bytes:
    return _expression(b"meta", _number(_NFTA_META_DREG, _NFT_REG_1), _number(_NFTA_META_KEY, key))


def _payload(base: int, offset: int, length: int) -> bytes:
    return _expression(
        b"payload",
        _number(_NFTA_PAYLOAD_DREG, _NFT_REG_1),
        _number(_NFTA_PAYLOAD_BASE, base),
        _number(_NFTA_PAYLOAD_OFFSET, offset),
        _number(_NFTA_PAYLOAD_LEN, length),
    )


def _equals(value: bytes) -> bytes:
    return _expression(
        b"cmp",
        _number(_NFTA_CMP_SREG, _NFT_REG_1),
        _number(_NFTA_CMP_OP, _NFT_CMP_EQ),
        nested(_NFTA_CMP_DATA, attribute(_NFTA_DATA_VALUE, value)),
    )


def _set(register: int, data: bytes) -> bytes:
    return _expression(b"immediate", _number(_NFTA_IMMEDIATE_DREG, register), nested(_NFTA_IMMEDIATE_DATA, data))


def _expression(name: bytes, *attributes: bytes) -> bytes:
    return nested(_NFTA_LIST_ELEM, _text(_NFTA_EXPR_NAME, name), nested(_NFTA_EXPR_DATA, *attributes))


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, (value & 0xFFFF_FFFF).to_bytes(4, "big"))


def _text(kind: int, value: bytes) -> bytes:
    return attribute(kind, value + b"\0")
