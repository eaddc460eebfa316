"""Flags that are settings: the highest layer, written on the command line."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.cli.options import Options
from stockade.settings.catalog import (
    ALLOW_PROTECTED,
    ALLOW_READ,
    ALLOW_WRITE,
    ALLOWED_DOMAINS,
    DENIED_DOMAINS,
    DENIED_UNIX_SOCKETS,
    DENY_READ,
    DENY_WRITE,
    ENABLED,
    LOCAL_BINDING,
    MODES,
    UNIX_SOCKETS,
)
from stockade.settings.document import Document
from stockade.settings.layer import Layer

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.settings.catalog import Key, Texts

LISTS: Final[dict[str, tuple[Key[Texts], str]]] = {
    "allow_write": (ALLOW_WRITE, "PATH"),
    "deny_write": (DENY_WRITE, "PATH"),
    "allow_read": (ALLOW_READ, "PATH"),
    "deny_read": (DENY_READ, "PATH"),
    "allow_protected": (ALLOW_PROTECTED, "NAME"),
    "allow_domain": (ALLOWED_DOMAINS, "HOST"),
    "deny_domain": (DENIED_DOMAINS, "HOST"),
    "allow_unix_socket": (UNIX_SOCKETS, "PATH"),
    "deny_unix_socket": (DENIED_UNIX_SOCKETS, "PATH"),
}


class PolicyOptions(Options):
    """What the flags of this module parse to."""

    settings: str | None
    ignore_project: bool
    sandbox: bool | None
    sandbox_mode: str | None
    json: bool


def configure(parser: Parser) -> None:
    """Add the flags that every command takes which looks at the policy."""
    group = parser.add_argument_group("settings for this call, above all files")
    group.add_argument("-s", "--settings", metavar="FILE", help="a settings file; srt's flat shape is read too")
    group.add_argument(
        "--ignore-project", action="store_true", help="leave the settings files of the project, and above it, out"
    )
    group.add_argument("--sandbox", action="either", help="turn the sandbox on or off")
    group.add_argument("--sandbox-mode", choices=tuple(MODES), help="auto, strict or off")
    for name, (key, metavar) in LISTS.items():
        flag = f"--{name.replace('_', '-')}"
        group.add_argument(flag, dest=name, action="append", default=[], metavar=metavar, help=key.meaning)


def add_json(parser: Parser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print facts for programs")


def document(options: PolicyOptions) -> Document | None:
    """Return what the flags say as a document of the highest layer, or None if they say nothing."""
    values: dict[str, object] = dict(MODES[options.sandbox_mode]) if options.sandbox_mode else {}
    if options.sandbox is not None:
        values[ENABLED.name] = options.sandbox
    if getattr(options, "publish", None):  # only commands that run something take it
        values[LOCAL_BINDING.name] = True
    for name, (key, _) in LISTS.items():
        items: list[str] = getattr(options, name)
        if items:
            values[key.name] = tuple(items)
    return Document(Layer.COMMAND_LINE, "", values) if values else None
