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
    from stockade.policy.rule_list import ListedRule
    from stockade.settings.sources import Locations

Options = flags.PolicyOptions


def configure(parser: Parser) -> None:
    """Add the arguments."""
    flags.add_json(parser)
    flags.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Print the rules by what they concern."""
    from stockade.policy.rule_list import rule_list

    found = context(options, shown, locations)
    groups = {title: rules for title, rules in rule_list(found.policy).items() if rules}
    if options.json:
        shown.json({title: [_facts(rule) for rule in rules] for title, rules in groups.items()})
        return 0
    for title, rules in groups.items():
        shown.line(shown.paint(title, "bold"))
        for text, origin in _rows(rules, found):
            shown.line(f"  {text}  {shown.paint(origin, 'dim')}")
    return 0


def _rows(rules: Sequence[ListedRule], found: Context) -> list[tuple[str, str]]:
    shown = [(escape(rule.value.text), found.origin(rule.origin)) for rule in rules]
    width = min(max(len(text) for text, _ in shown), 48)
    return [(text.ljust(width), origin) for text, origin in shown]


def _facts(rule: ListedRule) -> dict[str, str]:
    return {
        "rule": rule.value.text,
        "layer": str(rule.origin.layer),
        "file": rule.origin.file,
        "path": rule.origin.path,
    }
