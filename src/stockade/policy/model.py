"""The policy: everything that decides where a command runs and what it may touch.

Built by :func:`stockade.policy.compile.compile_policy` and by nothing else. Immutable: a change of
settings makes another policy. Compared whole; every rule carries the file that it came from.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.command_pattern import CommandPattern
    from stockade.policy.files import FileRules
    from stockade.policy.network_rules import NetworkRules
    from stockade.policy.path_pattern import PathPattern
    from stockade.settings.layer import Sourced


class Mode(Value):
    """The switches: whether there is a sandbox, how strict it is, and whether caches outlive it."""

    enabled: bool
    auto_allow: bool
    allow_unsandboxed: bool
    fail_if_unavailable: bool
    weaker_nested: bool
    private_cache: bool = True


class Sockets(Value):
    """What may be connected to besides network destinations, and by which proxies. A deny wins over every allow."""

    unix: tuple[Sourced[PathPattern], ...]
    all_unix: bool
    local_binding: bool
    http_proxy_port: int | None
    socks_proxy_port: int | None
    denied_unix: tuple[Sourced[PathPattern], ...] = ()


class CommandRules(Value):
    """Rules about whole commands: which run outside, which need approval."""

    excluded: tuple[Sourced[CommandPattern], ...]
    allow: tuple[Sourced[CommandPattern], ...]
    deny: tuple[Sourced[CommandPattern], ...]
    ask: tuple[Sourced[CommandPattern], ...]


class SandboxPolicy(Value):
    """What the settings mean in one working directory; ``notes`` name the rules in them that mean nothing."""

    mode: Mode
    files: FileRules
    network: NetworkRules
    sockets: Sockets
    commands: CommandRules
    ignored_violations: tuple[Sourced[tuple[str, str]], ...] = ()
    ripgrep: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cwd(self) -> str:
        """The working directory of the session, to which relative paths refer."""
        return self.files.cwd

    @property
    def home(self) -> str:
        """The home directory, to which ``~`` refers."""
        return self.files.home
