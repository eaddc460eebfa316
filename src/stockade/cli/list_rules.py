"""``stockade list``: the rules in force, each with the file that it comes from."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import flags
from stockade.cli.context import context
from stockade.escape import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.cli.context import Context
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.policy.command_pattern import CommandPattern
    from stockade.policy.domain_pattern import DomainPattern
    from stockade.policy.model import SandboxPolicy
    from stockade.policy.path_pattern import PathPattern
    from stockade.settings.layer import Sourced
    from stockade.settings.sources import Locations

    Rules = Sequence[Sourced[PathPattern] | Sourced[DomainPattern] | Sourced[CommandPattern]]

Options = flags.PolicyOptions


def configure(parser: Parser) -> None:
    """Add the arguments."""
    flags.add_json(parser)
    flags.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Print the rules by what they concern."""
    found = context(options, shown, locations)
    groups = {title: rules for title, rules in _groups(found.policy).items() if rules}
    if options.json:
        shown.json({title: [_facts(rule) for rule in rules] for title, rules in groups.items()})
        return 0
    for title, rules in groups.items():
        shown.line(shown.paint(title, "bold"))
        for text, origin in _rows(rules, found):
            shown.line(f"  {text}  {shown.paint(origin, 'dim')}")
    return 0


def _groups(policy: SandboxPolicy) -> dict[str, Rules]:
    return {
        "may write": policy.files.write_allow,
        "may not write": policy.files.write_deny,
        "may not read": policy.files.read_deny,
        "may read again": policy.files.read_allow,
        "may reach": policy.network.allowed,
        "may not reach": policy.network.denied,
        "unix sockets": policy.sockets.unix,
        "runs outside": policy.commands.excluded,
        "commands allowed": policy.commands.allow,
        "commands denied": policy.commands.deny,
        "commands asked for": policy.commands.ask,
    }


def _rows(rules: Rules, found: Context) -> list[tuple[str, str]]:
    shown = [(escape(rule.value.text), found.origin(rule.origin)) for rule in rules]
    width = min(max(len(text) for text, _ in shown), 48)
    return [(text.ljust(width), origin) for text, origin in shown]


def _facts(rule: Sourced[PathPattern] | Sourced[DomainPattern] | Sourced[CommandPattern]) -> dict[str, str]:
    return {
        "rule": rule.value.text,
        "layer": str(rule.origin.layer),
        "file": rule.origin.file,
        "path": rule.origin.path,
    }
