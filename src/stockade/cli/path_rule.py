"""What `allow` and `deny` have in common: a path goes into one list and out of the opposite one."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing
from stockade.cli.context import here

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations


class Options(editing.EditOptions):
    """What the command line parses to."""

    path: str
    read: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="PATH", help="a path; *, **, ? and [a-z] are wildcards")
    parser.add_argument("--read", action="store_true", help="about reading instead of writing")
    editing.configure(parser)


def change(options: Options, shown: Terminal, locations: Locations | None, *, allow: bool) -> int:
    """Put the path into the list, take it out of the opposite one, and say if another rule still decides."""
    from stockade.tool.setting_change import rule_path

    wanted = rule_path(options.path, here(locations), allow=allow, read=options.read)
    return editing.change(options, shown, locations, wanted)
