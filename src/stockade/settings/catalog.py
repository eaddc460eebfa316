"""Every setting there is: name, kind, default, meaning, and which of its values loosen.

This table is the only place that lists settings. Decoding, merging, trust, locks, the JSON Schema,
the reference in the documentation and `status` are all derived from it.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final, Generic, TypeVar
from stockade.enumeration import Enum
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


class Kind(Enum):
    """What JSON a setting takes, and how layers of it merge."""

    FLAG = "true or false"
    NUMBER = "a whole number"
    TEXT = "a non-empty string"
    TEXTS = "a list of non-empty strings"  # concatenated over layers
    ARGV = "a list of strings"  # one value: the highest layer's list, whole
    TABLE = "an object whose values are lists of strings"  # merged per key, lists concatenated


class Loosens(Enum):
    """Which values would widen the policy, if they came from somebody who is not trusted."""

    WHEN_TRUE = "when true"
    WHEN_FALSE = "when false"
    WHEN_LESS = "when less than the default"
    ALWAYS = "always"
    NEVER = "never"


class Key(Value, Generic[T]):
    """One setting. ``name`` is its dotted JSON path. ``placed``: what its texts mean depends on where they stand."""

    name: str
    kind: Kind
    default: T
    loosens: Loosens
    meaning: str
    low: int = 0
    high: int = 0
    placed: bool = False

    @property
    def path(self) -> str:
        """The JSON path that errors show."""
        return f"$.{self.name}"

    @property
    def expected(self) -> str:
        """What a value of this setting must be, in words."""
        return f"{self.kind.value} from {self.low} to {self.high}" if self.high else self.kind.value


Texts = tuple[str, ...]

ENABLED: Final = Key("sandbox.enabled", Kind.FLAG, False, Loosens.WHEN_FALSE, "Run commands inside the sandbox.")
AUTO_ALLOW: Final = Key(
    "sandbox.autoAllowBashIfSandboxed",
    Kind.FLAG,
    True,
    Loosens.WHEN_TRUE,
    "Sandboxed commands need no approval.",
)
ALLOW_UNSANDBOXED: Final = Key(
    "sandbox.allowUnsandboxedCommands",
    Kind.FLAG,
    True,
    Loosens.WHEN_TRUE,
    "A call may ask to run outside the sandbox.",
)
FAIL_IF_UNAVAILABLE: Final = Key(
    "sandbox.failIfUnavailable",
    Kind.FLAG,
    True,
    Loosens.WHEN_FALSE,
    "Enabled but not enforceable here: refuse to run. When false: warn loudly and run bare.",
)
EXCLUDED_COMMANDS: Final = Key[Texts](
    "sandbox.excludedCommands", Kind.TEXTS, (), Loosens.ALWAYS, "Commands that run outside the sandbox."
)
UNIX_SOCKETS: Final = Key[Texts](
    "sandbox.network.allowUnixSockets",
    Kind.TEXTS,
    (),
    Loosens.ALWAYS,
    "Unix sockets that commands may connect to.",
    placed=True,
)
ALL_UNIX_SOCKETS: Final = Key(
    "sandbox.network.allowAllUnixSockets",
    Kind.FLAG,
    False,
    Loosens.WHEN_TRUE,
    "Commands may connect to any unix socket.",
)
DENIED_UNIX_SOCKETS: Final = Key[Texts](
    "sandbox.network.denyUnixSockets",
    Kind.TEXTS,
    (),
    Loosens.NEVER,
    "Unix sockets that commands may never connect to; a deny wins over every allow.",
    placed=True,
)
LOCAL_BINDING: Final = Key(
    "sandbox.network.allowLocalBinding",
    Kind.FLAG,
    False,
    Loosens.WHEN_TRUE,
    "Ports that a command opens may be published to the host.",
)
HTTP_PROXY_PORT: Final = Key[int | None](
    "sandbox.network.httpProxyPort",
    Kind.NUMBER,
    None,
    Loosens.ALWAYS,
    "Use an existing HTTP proxy on localhost instead of ours. It is not filtered by Stockade.",
    low=1,
    high=65535,
)
SOCKS_PROXY_PORT: Final = Key[int | None](
    "sandbox.network.socksProxyPort",
    Kind.NUMBER,
    None,
    Loosens.ALWAYS,
    "Use an existing SOCKS proxy on localhost instead of ours. It is not filtered by Stockade.",
    low=1,
    high=65535,
)
ALLOWED_DOMAINS: Final = Key[Texts](
    "sandbox.network.allowedDomains", Kind.TEXTS, (), Loosens.ALWAYS, "Hosts that commands may reach."
)
DENIED_DOMAINS: Final = Key[Texts](
    "sandbox.network.deniedDomains", Kind.TEXTS, (), Loosens.NEVER, "Hosts that commands may never reach."
)
ALLOW_WRITE: Final = Key[Texts](
    "sandbox.filesystem.allowWrite",
    Kind.TEXTS,
    (),
    Loosens.ALWAYS,
    "Paths that commands may write, besides the working directory, which is not among them where it is your home "
    "directory, holds it, or lies in a name that is protected there.",
    placed=True,
)
DENY_WRITE: Final = Key[Texts](
    "sandbox.filesystem.denyWrite",
    Kind.TEXTS,
    (),
    Loosens.NEVER,
    "Paths that commands may never write.",
    placed=True,
)
DENY_READ: Final = Key[Texts](
    "sandbox.filesystem.denyRead",
    Kind.TEXTS,
    (),
    Loosens.NEVER,
    "Paths that commands may not read.",
    placed=True,
)
ALLOW_READ: Final = Key[Texts](
    "sandbox.filesystem.allowRead",
    Kind.TEXTS,
    (),
    Loosens.ALWAYS,
    "Paths inside a read deny that are open again.",
    placed=True,
)
ALLOW_GIT_CONFIG: Final = Key(
    "sandbox.filesystem.allowGitConfig",
    Kind.FLAG,
    False,
    Loosens.WHEN_TRUE,
    'Lift the protection of .git/config and .git/config.worktree, so that `git config` works inside; short for ".git/'
    'config" in allowProtected.',
)
ALLOW_PROTECTED: Final = Key[Texts](
    "sandbox.filesystem.allowProtected",
    Kind.TEXTS,
    (),
    Loosens.ALWAYS,
    "Protected names (such as .vscode, .gitmodules, .mcp.json, .claude/commands, .git/config, .git/hooks) that "
    "commands may write in every writable place, and paths (./packages/x) at and below which they may write all of "
    "them. Programs of the host obey what is in them. Stockade's own settings and installation stay closed.",
    placed=True,
)
PRIVATE_TMP: Final = Key(
    "sandbox.filesystem.privateTmp",
    Kind.FLAG,
    True,
    Loosens.WHEN_TRUE,
    "Linux: commands may write in /tmp. What they write there is the session's own and goes with it; what the host has "
    "there can be read and stays as it is. When false, with allowAllUnixSockets, or where the kernel allows no such "
    "thing, /tmp is read-only.",
)
ALLOW_OWN_INSTALLATION: Final = Key(
    "sandbox.filesystem.dangerouslyAllowOwnInstallation",
    Kind.FLAG,
    False,
    Loosens.WHEN_TRUE,
    "For developers of Stockade: commands may change the very program that builds their walls, where it lies in a "
    "writable place.",
)
PRIVATE_CACHE: Final = Key(
    "sandbox.filesystem.privateCache",
    Kind.FLAG,
    True,
    Loosens.WHEN_TRUE,
    "Package managers keep their caches from one session to the next, in a place of this project's own that no other "
    "project's commands and no program of the host use. When false, caches go with the session.",
)
IGNORE_VIOLATIONS: Final = Key[dict[str, Texts]](
    "sandbox.ignoreViolations",
    Kind.TABLE,
    {},
    Loosens.ALWAYS,
    'Violations not worth reporting: "*" or a command pattern, and texts that they contain.',
)
WEAKER_NESTED: Final = Key(
    "sandbox.enableWeakerNestedSandbox",
    Kind.FLAG,
    False,
    Loosens.WHEN_TRUE,
    "Accept weaker walls where an unprivileged container allows no others.",
)
RIPGREP_COMMAND: Final = Key[str | None](
    "sandbox.ripgrep.command", Kind.TEXT, None, Loosens.ALWAYS, "The ripgrep to use where one is used."
)
RIPGREP_ARGS: Final = Key[Texts](
    "sandbox.ripgrep.args", Kind.ARGV, (), Loosens.ALWAYS, "Arguments for that ripgrep, before ours."
)
SEARCH_DEPTH: Final = Key(
    "sandbox.mandatoryDenySearchDepth",
    Kind.NUMBER,
    3,
    Loosens.WHEN_LESS,
    "How many directory levels below each writable root protected files are looked for.",
    low=1,
    high=10,
)
ALLOW_FLAG_SETTINGS: Final = Key(
    "sandbox.allowFlagSettings",
    Kind.FLAG,
    True,
    Loosens.WHEN_TRUE,
    "The file named by the variable STOCKADE_FLAG_SETTINGS counts. Only managed settings can say so; elsewhere it has "
    "no effect.",
)
ALLOW: Final = Key[Texts](
    "permissions.allow",
    Kind.TEXTS,
    (),
    Loosens.ALWAYS,
    "Rules that allow, such as Edit(./out).",
    placed=True,
)
DENY: Final = Key[Texts](
    "permissions.deny", Kind.TEXTS, (), Loosens.NEVER, "Rules that deny; a deny always wins.", placed=True
)
ASK: Final = Key[Texts]("permissions.ask", Kind.TEXTS, (), Loosens.NEVER, "Rules that ask each time.", placed=True)

CATALOG: Final[Mapping[str, Key[object]]] = {
    key.name: key  # type: ignore[misc]  # a Key of anything is stored as a Key of object
    for key in (
        ENABLED,
        AUTO_ALLOW,
        ALLOW_UNSANDBOXED,
        FAIL_IF_UNAVAILABLE,
        EXCLUDED_COMMANDS,
        UNIX_SOCKETS,
        ALL_UNIX_SOCKETS,
        DENIED_UNIX_SOCKETS,
        LOCAL_BINDING,
        HTTP_PROXY_PORT,
        SOCKS_PROXY_PORT,
        ALLOWED_DOMAINS,
        DENIED_DOMAINS,
        ALLOW_WRITE,
        DENY_WRITE,
        DENY_READ,
        ALLOW_READ,
        ALLOW_GIT_CONFIG,
        ALLOW_PROTECTED,
        PRIVATE_TMP,
        ALLOW_OWN_INSTALLATION,
        PRIVATE_CACHE,
        IGNORE_VIOLATIONS,
        WEAKER_NESTED,
        RIPGREP_COMMAND,
        RIPGREP_ARGS,
        SEARCH_DEPTH,
        ALLOW_FLAG_SETTINGS,
        ALLOW,
        DENY,
        ASK,
    )
}

#: Set by an administrator or a fleet, any of these locks the sandbox settings.
LOCKING: Final = (ENABLED, AUTO_ALLOW, ALLOW_UNSANDBOXED)

#: Only managed settings can set these; elsewhere they have no effect.
MANAGED_ONLY: Final = (ALLOW_FLAG_SETTINGS,)

#: The ways out of the walls. Under a lock only its own layer and those above can open them, for no deny of the
#: administrator would hold behind them. Left out, because denies hold against them or nothing leaves by them:
#: - allowedDomains, allowWrite, allowRead, permissions.allow: they open a wall here or there; a deny wins.
#: - autoAllowBashIfSandboxed, allowUnsandboxedCommands: who is asked, and whether; a lock is made of them, so that who
#:   cares sets them, and a higher layer wins.
#: - allowLocalBinding: the host comes in by a port, nothing goes out by it.
#: - privateTmp: what commands write there never reaches the host.
#: - ignoreViolations: what is said, not what is allowed.
#: - privateCache: what commands keep is read by commands of the same project, which write the project anyway.
#: - ripgrep: accepted for files of other tools; no program is started for it (``stockade.filesystem.search``).
LEAVING: Final = (
    ENABLED,  # false: no walls at all
    EXCLUDED_COMMANDS,  # run outside
    FAIL_IF_UNAVAILABLE,  # false: run bare where walls cannot be had
    WEAKER_NESTED,  # walls that the administrator did not mean
    UNIX_SOCKETS,  # a daemon behind a socket (containers, keys, a desktop's bus) acts outside for who asks it
    ALL_UNIX_SOCKETS,
    HTTP_PROXY_PORT,  # a proxy that is not ours knows no denied domain
    SOCKS_PROXY_PORT,
    ALLOW_GIT_CONFIG,  # what git on the host obeys later runs outside
    ALLOW_PROTECTED,  # likewise what editors and agents obey
    ALLOW_OWN_INSTALLATION,  # the program that builds the walls
    SEARCH_DEPTH,  # less: protected files below are not found
)

#: What a mode sets: `strict` leaves no way out and asks each time; `auto` trusts the walls; `off` has none.
MODES: Final[dict[str, dict[str, bool]]] = {
    "auto": {ENABLED.name: True, AUTO_ALLOW.name: True},
    "strict": {ENABLED.name: True, AUTO_ALLOW.name: False, ALLOW_UNSANDBOXED.name: False},
    "off": {ENABLED.name: False},
}
