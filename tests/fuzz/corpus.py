"""Lines that broke the promise once, or came near: each with the reason, and the shells in which harm was seen."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

PLACE = Path(__file__).with_name("corpus")


class Entry(NamedTuple):
    """A line, why it is dangerous, and in which shells it was seen to do harm; ``moves`` if that is to move away."""

    line: str
    why: str
    shells: tuple[str, ...] = ()
    moves: bool = False


def entries() -> tuple[Entry, ...]:
    """Return all of them."""
    tables = [tomllib.loads(path.read_text("utf-8")) for path in sorted(PLACE.glob("*.toml"))]
    return tuple(
        Entry(item["line"], item["why"], tuple(item.get("shells", ())), item.get("moves", False))
        for table in tables
        for item in table["entry"]
    )
