"""Requests that the kernel puts to a file system in user space, and the replies to them, as bytes.

Only what a file system needs that shows nothing: names are looked up, attributes are told, the rest is refused.

Rules: pure; what is no whole request raises ``ValueError``; a reply says what the structures of the kernel's
header say, in the byte order of the machine. Source of truth: fuse(4), include/uapi/linux/fuse.h, protocol 7.31.
"""

from __future__ import annotations

from struct import Struct

LOOKUP = 1
FORGET = 2
GETATTR = 3
OPEN = 14
STATFS = 17
GETXATTR = 22
LISTXATTR = 23
INIT = 26
OPENDIR = 27
ACCESS = 34
INTERRUPT = 36
DESTROY = 38
BATCH_FORGET = 42
STATX = 52

#: Nobody waits for a reply to these.
UNANSWERED = frozenset({FORGET, BATCH_FORGET, INTERRUPT})
ROOT = 1
#: The kernel refuses to read into less.
LARGEST_REQUEST = 8192
#: An id that no user namespace maps: everybody sees it as nobody's, and no capability reaches it.
NOBODY = 0xFFFF_FFFF

_MAJOR = 7
_MINOR = 31
_LARGEST_WRITE = 4096
_PARALLEL_LOOKUPS = 1 << 18
_HEADER = Struct("=IIQQIIIHH")
_REPLY = Struct("=IiQ")
_VERSION = Struct("=II")
_INIT = Struct("=IIIIHHIIHHI28x")
_ENTRY = Struct("=QQQQII")
_VALIDITY = Struct("=QII")
_ATTRIBUTES = Struct("=QQQQQQIIIIIIIIII")
_STATFS = Struct("=QQQQQIIII24x")
_BLOCK = 4096
_LONGEST_NAME = 255


class Request:
    """One question: what is asked, about which node, by which thread."""

    __slots__ = ("body", "node", "opcode", "pid", "unique")

    def __init__(self, opcode: int, unique: int, node: int, pid: int, body: bytes = b"") -> None:
        """Take ``pid`` as the number of the thread that asks, 0 if it has none for whoever mounted."""
        self.opcode = opcode
        self.unique = unique
        self.node = node
        self.pid = pid
        self.body = body

    @classmethod
    def read(cls, data: bytes) -> Request:
        """Read it."""
        if len(data) < _HEADER.size:
            message = "a request ends within its header"
            raise ValueError(message)
        length, opcode, unique, node, _, _, pid, _, _ = _HEADER.unpack_from(data)
        if length != len(data):
            message = "a request is not as long as it says"
            raise ValueError(message)
        return cls(opcode, unique, node, pid, data[_HEADER.size :])

    def packed(self) -> bytes:
        """Write it, as the kernel does."""
        length = _HEADER.size + len(self.body)
        return _HEADER.pack(length, self.opcode, self.unique, self.node, 0, 0, self.pid, 0, 0) + self.body

    @property
    def name(self) -> bytes:
        """The name that is looked up."""
        return self.body.partition(b"\0")[0]


class Attributes:
    """What stat(2) tells of a node."""

    __slots__ = ("mode", "node", "time")

    def __init__(self, node: int, mode: int, time: int) -> None:
        """Take the mode with its kind, and one time for all three."""
        self.node = node
        self.mode = mode
        self.time = time

    def packed(self) -> bytes:
        """Write them."""
        times = (self.time, self.time, self.time, 0, 0, 0)
        return _ATTRIBUTES.pack(self.node, 0, 0, *times, self.mode, 1, NOBODY, NOBODY, 0, _BLOCK, 0)


def error(unique: int, number: int) -> bytes:
    """Refuse, with an error number of the kernel's."""
    return _REPLY.pack(_REPLY.size, -number, unique)


def _success(unique: int, body: bytes) -> bytes:
    return _REPLY.pack(_REPLY.size + len(body), 0, unique) + body


def init(request: Request) -> bytes:
    """Agree on the protocol; an older kernel than 7.31 speaks its own, a newer major one is asked to come down."""
    major, minor = _VERSION.unpack_from(request.body) if len(request.body) >= _VERSION.size else (_MAJOR, _MINOR)
    minor = min(minor, _MINOR) if major == _MAJOR else _MINOR
    return _success(request.unique, _INIT.pack(_MAJOR, minor, 0, _PARALLEL_LOOKUPS, 0, 0, _LARGEST_WRITE, 1, 0, 0, 0))


def entry(unique: int, attributes: Attributes, valid: int) -> bytes:
    """Tell that a name leads to a node, which holds for ``valid`` seconds."""
    return _success(unique, _ENTRY.pack(attributes.node, 0, valid, valid, 0, 0) + attributes.packed())


def status(unique: int, attributes: Attributes, valid: int) -> bytes:
    """Tell the attributes of a node, which hold for ``valid`` seconds."""
    return _success(unique, _VALIDITY.pack(valid, 0, 0) + attributes.packed())


def space(unique: int) -> bytes:
    """Tell that there is no room."""
    return _success(unique, _STATFS.pack(0, 0, 0, 0, 0, _BLOCK, _LONGEST_NAME, _BLOCK, 0))
