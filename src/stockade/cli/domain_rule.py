"""What `allow-domain` and `deny-domain` have in common: a host goes into one list and out of the other."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations


class Options(editing.EditOptions):
    """What the command line parses to."""

    domain: str


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("domain", metavar="HOST[:PORT]", help="example.com, or *.example.com for all below it")
    editing.configure(parser)


def change(options: Options, shown: Terminal, locations: Locations | None, *, allow: bool) -> int:
    """Put the pattern into the list, take it out of the opposite one, and say if a deny still decides."""
    from stockade.tool.setting_change import rule_domain

    return editing.change(options, shown, locations, rule_domain(options.domain, allow=allow))
