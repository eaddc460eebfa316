"""Texts and bytes out of another process's memory, read once.

Rules: nothing is trusted about what is read, and nothing is read twice: another thread may change it at any moment.
Source of truth: process_vm_readv(2); it needs the rights of a debugger (CAP_SYS_PTRACE).
"""

from __future__ import annotations

import ctypes
import os
from errno import EFAULT, ENAMETOOLONG

from stockade.annotation import NoReturn

_PAGE = 4096
LONGEST_PATH = 4096
_USUAL = 256

libc = ctypes.CDLL(None, use_errno=True)
#: What both calls take: a process, parts here and parts there, each with their number, and flags.
ARGUMENTS = (
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_void_p,
    ctypes.c_ulong,
    ctypes.c_ulong,
)


class Part(ctypes.Structure):
    """A part of some process's memory, ``struct iovec``."""

    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


_read = libc.process_vm_readv
_read.restype = ctypes.c_ssize_t
_read.argtypes = ARGUMENTS

# Made once: the way through here is taken with every call that changes a file.
_buffer = ctypes.create_string_buffer(_PAGE)
_here = Part(ctypes.addressof(_buffer), _PAGE)
_there = Part(0, 0)
_here_at = ctypes.addressof(_here)
_there_at = ctypes.addressof(_there)


def read_text(process: int, address: int) -> bytes:
    """Return the bytes at an address up to the first zero. Raises ``OSError``, as the kernel would for the caller."""
    room = _PAGE - address % _PAGE
    _there.start = address
    _there.length = room if room < _USUAL else _USUAL  # noqa: FURB136 - min() takes thrice as long
    found: int = _read(process, _here_at, 1, _there_at, 1, 0)
    if found <= 0:
        _fail()
    text = _buffer.value
    # What is behind the bytes that were read is older: a text that reaches there has not ended.
    return text if len(text) < found else _read_on(process, address + found, _buffer.raw[:found])


def _read_on(process: int, address: int, text: bytes) -> bytes:
    """Go on reading, page by page: what lies behind the end of a text need not be there."""
    while len(text) < LONGEST_PATH:
        found = _copy(process, address, _PAGE - address % _PAGE)
        rest, end, _ = _buffer.raw[:found].partition(b"\0")
        text += rest
        if end and len(text) < LONGEST_PATH:
            return text
        address += found
    raise OSError(ENAMETOOLONG, os.strerror(ENAMETOOLONG))


def read_bytes(process: int, address: int, length: int) -> bytes:
    """Return so many bytes, at most a page of them, or raise."""
    if length == 0:
        return b""
    if length > _PAGE or _copy(process, address, length) != length:
        raise OSError(EFAULT, os.strerror(EFAULT))
    return _buffer.raw[:length]


def _copy(process: int, address: int, length: int) -> int:
    _there.start = address
    _there.length = length
    found: int = _read(process, _here_at, 1, _there_at, 1, 0)
    if found <= 0:
        _fail()
    return found


def _fail() -> NoReturn:
    number = ctypes.get_errno() or EFAULT
    raise OSError(number, os.strerror(number))
