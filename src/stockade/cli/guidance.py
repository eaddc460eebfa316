"""``stockade guidance``: what to put into an agent's system prompt, from the settings in force."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import flags
from stockade.cli.context import context

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

Options = flags.PolicyOptions


def configure(parser: Parser) -> None:
    """Add the arguments."""
    flags.add_json(parser)
    flags.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Print the text; nothing if the sandbox is off."""
    from stockade.platforms.requirements import find_program
    from stockade.tool.guidance import UNSUITED, guidance

    found = context(options, shown, locations)
    text = guidance(found.policy, unsuited=tuple(name for name in UNSUITED if find_program(name)))
    if options.json:
        shown.json({"enabled": found.policy.mode.enabled, "guidance": text})
    else:
        for line in text.splitlines():
            shown.line(line)
    return 0
