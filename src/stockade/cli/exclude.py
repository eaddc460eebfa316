"""``stockade exclude``: let a command run outside the sandbox."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing
from stockade.escape import escape

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
    from stockade.policy.exclusion import parse_exclusion
    from stockade.policy.rule import prefix_of_permission_update
    from stockade.settings.catalog import EXCLUDED_COMMANDS
    from stockade.settings.edit import AddItems

    text = prefix_of_permission_update(options.pattern) if "(" in options.pattern else options.pattern
    parse_exclusion(text)
    done = f"outside the sandbox from now on: {escape(text)}"
    return editing.change(options, shown, locations, [AddItems(EXCLUDED_COMMANDS, (text,))], done)
