"""What a session leaves behind if its owner is killed, removed by whoever finds it: its keeper, or the next session.

Everything is recognised by locks that died with their owners, so this may run at any time, in any process, twice.
"""

from __future__ import annotations

from stockade.errors import StockadeError
from stockade.platforms import temporary
from stockade.platforms.linux import placeholders
from stockade.platforms.runtime_directory import runtime_directory
from stockade.suppress import suppress


def clean_up(base: str) -> None:
    """Remove placeholders and directories of sessions that are dead; ``base`` holds the temporary ones."""
    with suppress(StockadeError, OSError):
        placeholders.sweep()
    with suppress(OSError):
        temporary.sweep(base)
    with suppress(StockadeError, OSError):
        layers = runtime_directory()
        if layers != base:
            temporary.sweep(layers)
