"""Where a command reads its input from."""

from __future__ import annotations

import os


def open_input(data: bytes | None) -> int:
    """Return a descriptor that gives these bytes and then the end; the caller closes it."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    file = _memory_file()
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _memory_file() -> int:
    """Return an empty file that no directory lists. macOS has none in memory, so an unlinked one serves there."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stockade-input", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
