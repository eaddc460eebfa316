"""``stockade shell``: your shell behind the walls, with job control."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.cli import running

if TYPE_CHECKING:
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

Options = running.RunOptions
configure = running.configure
IS_QUICK = True


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Run the shell on a terminal of its own, or on our streams if they are no terminal."""
    start = running.relayed if os.isatty(0) else running.attached
    return start(options, shown, locations, None)
