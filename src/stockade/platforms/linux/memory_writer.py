"""Bytes put into another process's memory, as the kernel itself would put them there.

Rules: only where the process itself could write (no ``/proc/PID/mem``, which would write anywhere); all of it or an
error. Source of truth: process_vm_writev(2); it needs the rights of a debugger (CAP_SYS_PTRACE).
"""

from __future__ import annotations

import ctypes
import os
from errno import EFAULT

from stockade.platforms.linux.memory_reader import ARGUMENTS, Part, libc

_write = libc.process_vm_writev
_write.restype = ctypes.c_ssize_t
_write.argtypes = ARGUMENTS


def write_bytes(process: int, address: int, content: bytes) -> None:
    """Write all of it, or raise ``OSError`` as the kernel would for the caller; then a part may be there."""
    if not content:
        return
    here = Part(ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value, len(content))
    there = Part(address, len(content))
    written: int = _write(process, ctypes.addressof(here), 1, ctypes.addressof(there), 1, 0)
    if written != len(content):
        number = ctypes.get_errno() if written < 0 else EFAULT
        raise OSError(number, os.strerror(number))
