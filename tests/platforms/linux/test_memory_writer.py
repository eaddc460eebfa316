from __future__ import annotations

import ctypes
import mmap
import os
from errno import EFAULT, ESRCH

import pytest

from stockade.platforms.linux.memory_writer import write_bytes

PAGE = 4096


@pytest.fixture
def pages() -> tuple[mmap.mmap, int]:
    """Two pages of this process, and where they are."""
    memory = mmap.mmap(-1, 2 * PAGE)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


def test_bytes_are_written_across_pages(pages: tuple[mmap.mmap, int]) -> None:
    memory, start = pages
    write_bytes(os.getpid(), start + PAGE - 3, b"ab\0def")
    assert memory[PAGE - 4 : PAGE + 4] == b"\0ab\0def\0"


@pytest.mark.parametrize("address", [0, 8, 1 << 62, (1 << 64) - 2])
def test_no_memory_is_a_bad_address(address: int) -> None:
    with pytest.raises(OSError, match="Bad address") as raised:
        write_bytes(os.getpid(), address, b"abcd")
    assert raised.value.errno == EFAULT
    write_bytes(os.getpid(), address, b"")


@pytest.mark.parametrize("offset", [0, PAGE - 2])
def test_what_its_process_cannot_write_is_not_written(pages: tuple[mmap.mmap, int], offset: int) -> None:
    """``/proc/PID/mem`` would write there."""
    memory, start = pages
    libc = ctypes.CDLL(None)
    first = 0 if offset == 0 else PAGE
    assert libc.mprotect(ctypes.c_void_p(start + first), ctypes.c_size_t(PAGE), mmap.PROT_READ) == 0
    with pytest.raises(OSError, match="Bad address"):
        write_bytes(os.getpid(), start + offset, b"abcd")
    assert memory[first : first + PAGE] == bytes(PAGE)


def test_who_is_gone_is_told(pages: tuple[mmap.mmap, int]) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with pytest.raises(OSError, match="No such process") as raised:
        write_bytes(child, pages[1], b"abcd")
    assert raised.value.errno == ESRCH
