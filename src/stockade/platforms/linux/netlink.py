"""Netlink: requests to the kernel's network, as bytes, and the answers to them.

A request is a header, a fixed part and attributes; an attribute is its length, its number and its bytes, padded to
four. Lengths, types and flags are in the machine's own order, what nfnetlink carries is in the network's.

Rules: nothing is imported that is written in Python, because the keeper imports this at every start; the kernel answers
before ``send`` returns, so nothing waits. A refusal is an ``OSError`` whose ``filename`` is the step in words.
Source of truth: netlink(7), linux/netlink.h.
"""

from __future__ import annotations

import os
from _socket import AF_NETLINK, SOCK_CLOEXEC, SOCK_RAW, socket
from errno import EIO
from sys import byteorder

NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_EXCL = 0x200
NLM_F_CREATE = 0x400
NLM_F_APPEND = 0x800
NLA_F_NESTED = 0x8000

_NLMSG_ERROR = 2
_HEADER_BYTES = 16  # struct nlmsghdr
_ATTRIBUTE_BYTES = 4  # struct nlattr
_ALIGNMENT = 4
_ANSWER_BYTES = 8192


class Request:
    """One message without its number: what the kernel shall do, and that in words for when it does not."""

    __slots__ = ("body", "flags", "kind", "step")

    def __init__(self, kind: int, flags: int, body: bytes, step: bytes) -> None:
        """Take the fixed part and the attributes as one body."""
        self.kind = kind
        self.flags = flags
        self.body = body
        self.step = step


def attribute(number: int, value: bytes) -> bytes:
    """Return one attribute."""
    length = _ATTRIBUTE_BYTES + len(value)
    return length.to_bytes(2, byteorder) + number.to_bytes(2, byteorder) + value + bytes(-length % _ALIGNMENT)


def nested(number: int, *attributes: bytes) -> bytes:
    """Return an attribute that consists of others."""
    return attribute(number | NLA_F_NESTED, b"".join(attributes))


def encode(requests: tuple[Request, ...]) -> bytes:
    """Return the bytes of a row of requests, numbered from 1."""
    parts: list[bytes] = []
    for number, request in enumerate(requests, 1):
        parts += (
            (_HEADER_BYTES + len(request.body)).to_bytes(4, byteorder),
            request.kind.to_bytes(2, byteorder),
            (request.flags | NLM_F_REQUEST).to_bytes(2, byteorder),
            number.to_bytes(4, byteorder),
            bytes(4),
            request.body,
        )
    return b"".join(parts)


def read_answers(data: bytes) -> list[tuple[int, int]]:
    """Return for each answer the number of its request and the kernel's error number, 0 if it was done."""
    answers = []
    position = 0
    while position + _HEADER_BYTES <= len(data):
        length = int.from_bytes(data[position : position + 4], byteorder)
        kind = int.from_bytes(data[position + 4 : position + 6], byteorder)
        number = int.from_bytes(data[position + 8 : position + 12], byteorder)
        if kind == _NLMSG_ERROR:
            start = position + _HEADER_BYTES
            answers.append((number, -int.from_bytes(data[start : start + 4], byteorder, signed=True)))
        position += max(length + -length % _ALIGNMENT, _HEADER_BYTES)
    return answers


def perform(protocol: int, requests: tuple[Request, ...], opening: bytes) -> None:
    """Have requests done in this network namespace; one of them must ask for an answer (``NLM_F_ACK``).

    ``opening`` is the step that stands for reaching the kernel at all.
    """
    try:
        answers = _exchange(protocol, encode(requests))
    except OSError as error:
        number = error.errno or EIO
        raise OSError(number, os.strerror(number), opening) from error
    for place, number in answers:
        if number:
            step = requests[place - 1].step if 0 < place <= len(requests) else opening
            raise OSError(number, os.strerror(number), step)
    if not answers:
        raise OSError(EIO, "the kernel gave no answer", opening)


def _exchange(protocol: int, data: bytes) -> list[tuple[int, int]]:
    control = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol)
    try:
        control.bind((0, 0))
        control.send(data)
        control.setblocking(False)
        answers: list[tuple[int, int]] = []
        while True:
            try:
                answers += read_answers(control.recv(_ANSWER_BYTES))
            except BlockingIOError:
                return answers
    finally:
        control.close()
