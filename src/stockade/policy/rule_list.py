"""The rules of a policy by what they concern, for whoever lists them."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.policy.command_pattern import CommandPattern
    from stockade.policy.domain_pattern import DomainPattern
    from stockade.policy.model import SandboxPolicy
    from stockade.policy.path_pattern import PathPattern
    from stockade.settings.layer import Sourced

    ListedRule: TypeAlias = Sourced[PathPattern] | Sourced[DomainPattern] | Sourced[CommandPattern]


def rule_list(policy: SandboxPolicy) -> dict[str, Sequence[ListedRule]]:
    """Return all rules, by a title in words; a title may have none."""
    return {
        "may write": policy.files.write_allow,
        "may not write": policy.files.write_deny,
        "may not read": policy.files.read_deny,
        "may read again": policy.files.read_allow,
        "may reach": policy.network.allowed,
        "may not reach": policy.network.denied,
        "unix sockets": policy.sockets.unix,
        "unix sockets denied": policy.sockets.denied_unix,
        "runs outside": policy.commands.excluded,
        "commands allowed": policy.commands.allow,
        "commands denied": policy.commands.deny,
        "commands asked for": policy.commands.ask,
    }
