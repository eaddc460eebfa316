"""The file of results: one section for each benchmark, which rewrites its own and leaves the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_TITLE = "# Results\n\nWritten by the programs beside this file; each rewrites its own section.\n"


def replaced(text: str, heading: str, body: str) -> str:
    """Return the text with the section of that heading replaced, or added at the end."""
    section = f"## {heading}\n\n{body.strip()}\n"
    parts = re.split(r"^(?=## )", text or _TITLE, flags=re.MULTILINE)
    kept = [section if part.startswith(f"## {heading}\n") else part for part in parts]
    if section not in kept:
        kept.append(section)
    return "\n".join(part.strip("\n") + "\n" for part in kept)


def write(file: Path, heading: str, body: str) -> None:
    """Rewrite one section of the file."""
    before = file.read_text("utf-8") if file.exists() else ""
    file.write_text(replaced(before, heading, body), "utf-8")
