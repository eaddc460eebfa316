from __future__ import annotations

import os

import pytest

from stockade.sandbox.input import open_input


@pytest.mark.parametrize("data", [None, b"", b"x", b"a" * 3_000_000])
def test_gives_the_bytes_and_then_the_end(data: bytes | None) -> None:
    descriptor = open_input(data)
    with open(descriptor, "rb") as file:
        assert file.read() == (data or b"")
    assert not os.path.exists(f"/proc/self/fd/{descriptor}")
