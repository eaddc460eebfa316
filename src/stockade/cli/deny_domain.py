"""``stockade deny-domain``: forbid commands to reach a host."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import domain_rule

if TYPE_CHECKING:
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

Options = domain_rule.Options
configure = domain_rule.configure


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Deny the host."""
    return domain_rule.change(options, shown, locations, allow=False)
