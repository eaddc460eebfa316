"""What the commands that change settings have in common: where they write, and what they say after."""

from __future__ import annotations

import argparse

from stockade.annotation import TYPE_CHECKING
from stockade.cli.context import here, tilde
from stockade.cli.flags import add_json

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations
    from stockade.tool.setting_change import SettingChange


class EditOptions(argparse.Namespace):
    """What every such command takes."""

    home: bool
    json: bool


def configure(parser: Parser) -> None:
    """Add the flags of commands that change settings."""
    parser.add_argument(
        "--home", action="store_true", help="change ~/.stockade/settings.local.json, for all projects of yours"
    )
    add_json(parser)


def change(options: EditOptions, shown: Terminal, locations: Locations | None, wanted: SettingChange) -> int:
    """Write the change into the local settings, say what was done, and warn if another rule still refuses it."""
    from stockade.tool.setting_change import still_refused, write

    place = here(locations)
    written = write(wanted, place, home_wide=options.home)
    if options.json:
        shown.json({"file": written.file, "changed": written.changed})
    else:
        file = tilde(written.file, place.home)
        shown.line(f"{wanted.done} ({file})" if written.changed else f"nothing to change: {file} says so already")
    reason = still_refused(wanted, place)
    if reason is not None:
        shown.warn(f"still refused: {reason}")
    return 0
