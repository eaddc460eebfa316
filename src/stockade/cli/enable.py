"""``stockade enable``: the sandbox on, in the local settings."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing
from stockade.cli.flags import MODES

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations


class Options(editing.EditOptions):
    """What the command line parses to."""

    mode: str | None


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--mode",
        choices=("auto", "strict"),
        help="auto: sandboxed commands need no approval; strict: each is asked for, and none may run outside",
    )
    editing.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Turn the sandbox on."""
    from stockade.settings.catalog import CATALOG, ENABLED
    from stockade.settings.edit import SetValue

    values = MODES[options.mode] if options.mode else {ENABLED.name: True}
    edits = [SetValue(CATALOG[name], value=value) for name, value in values.items()]
    return editing.change(options, shown, locations, edits, "the sandbox is on")
