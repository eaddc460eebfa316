"""The program works from its command line to its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_attack_has_its_row(first_column: Callable[..., list[str]]) -> None:
    rows = first_column("holdup.py", "--count", "5", "--memory", "16")
    assert [row for row in rows if row.startswith(("nothing", "links", "memory"))] == [
        "nothing",
        "links that lead up, made",
        "links that lead up, only looked at",
        "links that lead up and down, made",
        "links that lead up and down, only looked at",
        "links through deep directories, made",
        "links through deep directories, only looked at",
        "memory that changes",
    ]
