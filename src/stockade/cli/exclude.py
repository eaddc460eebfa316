"""``stockade exclude``: let a command run outside the sandbox."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations


class Options(editing.EditOptions):
    """What the command line parses to."""

    pattern: str


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("pattern", metavar="PATTERN", help="'docker *', 'npm:*', 'npm run test', or Bash(npm run:*)")
    editing.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Exclude the command."""
    from stockade.tool.setting_change import exclude

    return editing.change(options, shown, locations, exclude(options.pattern))
