"""``stockade enable``: the sandbox on, in the local settings."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing

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
    from stockade.tool.setting_change import switch_on

    return editing.change(options, shown, locations, switch_on(options.mode))
