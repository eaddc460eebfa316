"""What `allow-domain` and `deny-domain` have in common: a host goes into one list and out of the other."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing
from stockade.cli.context import here

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.policy.domain_pattern import DomainPattern
    from stockade.policy.model import SandboxPolicy
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
    from stockade.policy.domain_pattern import DomainPattern
    from stockade.settings.catalog import ALLOWED_DOMAINS, DENIED_DOMAINS
    from stockade.settings.edit import AddItems, RemoveItems

    pattern = DomainPattern.parse(options.domain, deny=not allow)
    chosen, opposite = (ALLOWED_DOMAINS, DENIED_DOMAINS) if allow else (DENIED_DOMAINS, ALLOWED_DOMAINS)
    spellings = tuple(dict.fromkeys((pattern.text, options.domain)))
    edits = [AddItems(chosen, (pattern.text,)), RemoveItems(opposite, spellings)]
    verb = "may" if allow else "may not"
    status = editing.change(options, shown, locations, edits, f"commands {verb} reach {pattern.text}")
    if allow:
        editing.warn_if(shown, here(locations), lambda policy: _refusal(policy, pattern))
    return status


def _refusal(policy: SandboxPolicy, pattern: DomainPattern) -> str | None:
    """Return the deny rule that holds against the very pattern, if there is one."""
    for rule in policy.network.denied:
        if rule.value == pattern or rule.value.any_host:
            return f"{rule.value.text} is denied by {rule.origin}"
    return None
