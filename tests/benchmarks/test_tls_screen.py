"""The program works from its command line to its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_kind_has_its_row(first_column: Callable[..., list[str]]) -> None:
    rows = first_column("tls_screen.py", "--rounds", "1")
    assert rows[2:] == ["joined, not looked at", "joined, looked at", "a handshake in memory", "both together"]
