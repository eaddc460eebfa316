"""A process whose memory is slow to reach: who reads or writes it sleeps meanwhile."""

from __future__ import annotations

from typing import Final

#: The beginning of a Python program. While a thread of it runs ``change``, until ``stopped`` is set, half a gigabyte of
#: mappings changes all the time, and the kernel keeps others out of the process's memory.
SLOW_MEMORY: Final = """
import ctypes, mmap, os, threading
SIZE = 1 << 29
libc = ctypes.CDLL(None)
room = mmap.mmap(-1, SIZE)
start = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(room)))
libc.madvise(start, ctypes.c_size_t(SIZE), 15)  # small pages
ctypes.memset(start, 1, SIZE)
stopped = threading.Event()

def change():
    while not stopped.is_set():
        for protection in (1, 3):
            libc.mprotect(start, ctypes.c_size_t(SIZE), protection)
"""
