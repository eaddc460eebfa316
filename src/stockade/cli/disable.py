"""``stockade disable``: the sandbox off, in the local settings."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing

if TYPE_CHECKING:
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

Options = editing.EditOptions
configure = editing.configure


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Turn the sandbox off."""
    from stockade.tool.setting_change import switch_off

    return editing.change(options, shown, locations, switch_off())
