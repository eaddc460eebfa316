from __future__ import annotations

import ctypes
import mmap
import os
from errno import EFAULT, ENAMETOOLONG

import pytest

from stockade.platforms.linux.memory_reader import read_bytes, read_text

PAGE = 4096


@pytest.fixture
def pages() -> tuple[mmap.mmap, int]:
    """Three pages of this process, and where they are."""
    memory = mmap.mmap(-1, 3 * PAGE)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))


@pytest.mark.parametrize("offset", [0, 1, PAGE - 1, PAGE - 2, PAGE - 100])
@pytest.mark.parametrize("text", [b"", b"x", b"/a/path", b"y" * 99, b"z" * 4095])
def test_a_text_is_read_wherever_it_lies(pages: tuple[mmap.mmap, int], offset: int, text: bytes) -> None:
    memory, start = pages
    memory[:] = b"?" * len(memory)
    memory[offset : offset + len(text) + 1] = text + b"\0"
    assert read_text(os.getpid(), start + offset) == text


def test_a_text_without_an_end_is_too_long(pages: tuple[mmap.mmap, int]) -> None:
    memory, start = pages
    memory[:] = b"?" * len(memory)
    with pytest.raises(OSError, match="too long") as raised:
        read_text(os.getpid(), start)
    assert raised.value.errno == ENAMETOOLONG


@pytest.mark.parametrize("address", [0, 8, 1 << 62])
def test_no_memory_is_a_bad_address(address: int) -> None:
    with pytest.raises(OSError, match="Bad address"):
        read_text(os.getpid(), address)
    with pytest.raises(OSError, match="Bad address") as raised:
        read_bytes(os.getpid(), address, 16)
    assert raised.value.errno == EFAULT
    assert read_bytes(os.getpid(), address, 0) == b""


def test_bytes_are_read_across_pages(pages: tuple[mmap.mmap, int]) -> None:
    memory, start = pages
    memory[PAGE - 3 : PAGE + 3] = b"abcdef"
    assert read_bytes(os.getpid(), start + PAGE - 3, 6) == b"abcdef"
