"""``stockade deny``: forbid commands to write (or read) a path."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import path_rule

if TYPE_CHECKING:
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

Options = path_rule.Options
configure = path_rule.configure


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Deny the path."""
    return path_rule.change(options, shown, locations, allow=False)
