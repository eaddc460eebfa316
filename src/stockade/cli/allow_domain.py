"""``stockade allow-domain``: let commands reach a host."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import domain_rule

if TYPE_CHECKING:
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

Options = domain_rule.Options
configure = domain_rule.configure


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Allow the host."""
    return domain_rule.change(options, shown, locations, allow=True)
