"""Changes of settings that people ask for in a few words: each first a value, then written to the local file.

The command line and ``/sandbox`` say the same things to the same functions. Rules: a path is stored absolute, because
what is relative would move with the session; what goes into one list comes out of the opposite one; what was just
allowed and is refused all the same, by another rule, is said.
"""

from __future__ import annotations

import os.path

from stockade.annotation import TYPE_CHECKING
from stockade.escape import escape
from stockade.settings.catalog import (
    ALLOW,
    ALLOW_READ,
    ALLOW_WRITE,
    ALLOWED_DOMAINS,
    CATALOG,
    DENIED_DOMAINS,
    DENY_READ,
    DENY_WRITE,
    ENABLED,
    EXCLUDED_COMMANDS,
    MODES,
)
from stockade.settings.edit import AddItems, RemoveItems, SetValue
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stockade.policy.domain_pattern import DomainPattern
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.edit import Edit
    from stockade.settings.local_file import Written
    from stockade.settings.sources import Locations


class SettingChange(Value):
    """Edits, and what they do in words; ``refusal`` tells from a policy what still refuses what was allowed."""

    edits: tuple[Edit, ...]
    done: str
    refusal: Callable[[SandboxPolicy], str | None] | None = None


def write(change: SettingChange, locations: Locations, *, home_wide: bool = False) -> Written:
    """Make the change in the local file. Raises LockedError that names the file, SettingsError or StockadeError."""
    from stockade.policy.effective import effective
    from stockade.settings.local_file import apply

    lock = effective(locations).loaded.lock
    return apply(locations, change.edits, lock=lock, home_wide=home_wide)


def still_refused(change: SettingChange, locations: Locations) -> str | None:
    """Return what refuses all the same what was just allowed, if anything does."""
    if change.refusal is None:
        return None
    from stockade.policy.effective import effective

    return change.refusal(effective(locations).policy)


def switch_on(mode: str | None = None) -> SettingChange:
    """Turn the sandbox on; a mode is one of ``MODES``."""
    values = MODES[mode] if mode else {ENABLED.name: True}
    edits = tuple(SetValue(CATALOG[name], value=value) for name, value in values.items())
    return SettingChange(edits, "the sandbox is off" if mode == "off" else "the sandbox is on")


def switch_off() -> SettingChange:
    """Turn the sandbox off."""
    return SettingChange((SetValue(ENABLED, value=False),), "the sandbox is off")


def rule_path(text: str, locations: Locations, *, allow: bool, read: bool = False) -> SettingChange:
    """Let commands write (or read) a path, or forbid it. Raises InvalidTextError if it is none."""
    stored = _spelled(text, locations)
    allowing, denying = (ALLOW_READ, DENY_READ) if read else (ALLOW_WRITE, DENY_WRITE)
    chosen, opposite = (allowing, denying) if allow else (denying, allowing)
    done = f"commands {'may' if allow else 'may not'} {'read' if read else 'write'} {escape(stored)}"
    edits = (AddItems(chosen, (stored,)), RemoveItems(opposite, (stored,)))
    return SettingChange(edits, done, (lambda policy: _refused_path(policy, stored, read=read)) if allow else None)


def rule_domain(text: str, *, allow: bool) -> SettingChange:
    """Let commands reach a host, or forbid it. Raises InvalidTextError if it is no pattern of one."""
    from stockade.policy.domain_pattern import DomainPattern

    pattern = DomainPattern.parse(text, deny=not allow)
    chosen, opposite = (ALLOWED_DOMAINS, DENIED_DOMAINS) if allow else (DENIED_DOMAINS, ALLOWED_DOMAINS)
    spellings = tuple(dict.fromkeys((pattern.text, text)))
    edits = (AddItems(chosen, (pattern.text,)), RemoveItems(opposite, spellings))
    done = f"commands {'may' if allow else 'may not'} reach {pattern.text}"
    return SettingChange(edits, done, (lambda policy: _refused_domain(policy, pattern)) if allow else None)


def exclude(text: str) -> SettingChange:
    """Let commands run outside: a pattern, or the ``Bash(...)`` rule of one. Raises InvalidTextError."""
    from stockade.policy.exclusion import parse_exclusion
    from stockade.policy.rule import prefix_of_permission_update

    pattern = prefix_of_permission_update(text) if "(" in text else text
    parse_exclusion(pattern)
    return SettingChange(
        (AddItems(EXCLUDED_COMMANDS, (pattern,)),), f"outside the sandbox from now on: {escape(pattern)}"
    )


def allow_commands(patterns: Sequence[str]) -> SettingChange:
    """Let commands run without being asked for. Raises InvalidTextError for what is no pattern, or is one of all."""
    from stockade.errors import InvalidTextError
    from stockade.policy.command_pattern import CommandPattern

    for pattern in patterns:
        if CommandPattern.parse(pattern).is_universal:
            message = f"the rule Bash({pattern}) would allow every command"
            raise InvalidTextError(message, "name a command")
    rules = tuple(f"Bash({pattern})" for pattern in patterns)
    return SettingChange((AddItems(ALLOW, rules),), f"allowed from now on: {', '.join(map(escape, rules))}")


def _refused_path(policy: SandboxPolicy, text: str, *, read: bool) -> str | None:
    from stockade.policy.files import Access, judge
    from stockade.policy.path_pattern import PathPattern
    from stockade.policy.places import Disk

    pattern = PathPattern.parse(text, cwd=policy.cwd, home=policy.home)
    if pattern.is_glob:
        return None
    verdict = judge(policy.files, Access.READ if read else Access.WRITE, pattern.path, Disk())
    return None if verdict.allowed else str(verdict)


def _refused_domain(policy: SandboxPolicy, pattern: DomainPattern) -> str | None:
    """Return the deny rule that holds against the very pattern, if there is one."""
    for rule in policy.network.denied:
        if rule.value == pattern or rule.value.any_host:
            return f"{rule.value.text} is denied by {rule.origin}"
    return None


def _spelled(text: str, place: Locations) -> str:
    """Return the path as it is stored. A name that exists as it stands is one, even if it could be a pattern."""
    from stockade.policy.name_glob import escaped
    from stockade.policy.path_pattern import PathPattern

    in_home = text == "~" or text.startswith("~/")
    anchor, rest = (place.home, text[1:]) if in_home else ("", os.path.normpath(os.path.join(place.cwd, text)))
    exists = bool(text) and "\0" not in text and os.path.lexists(anchor + rest)
    if not exists:
        PathPattern.parse(text, cwd=place.cwd, home=place.home)
    return ("~" if in_home else "") + (escaped(rest) if exists else rest)
