"""What to do about a refused path: the smallest setting that would allow it, or who alone can.

Each remedy is one line. A path in it is written as a JSON string that can be pasted into a settings file, with the
characters of patterns escaped, so that it means that very path.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape, visible
from stockade.policy.installation import NAME, SETTING
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer

if TYPE_CHECKING:
    from stockade.policy.protected import Protection
    from stockade.settings.layer import Sourced


#: The flags of the command line that deny, by the setting that each stands for.
_FLAGS: Final = {
    "denyWrite": "--deny-write",
    "denyRead": "--deny-read",
    "denyUnixSockets": "--deny-unix-socket",
}


def for_outside(place: str, protection: Protection | None) -> str:
    """Return what would make a place writable; nothing does if it would be protected then."""
    if protection is not None:
        return for_protection(protection)
    text = PathPattern.literal(place).text
    setting = f"add {quoted(text)} to sandbox.filesystem.allowWrite"
    # Unseen characters would have to be typed: then the settings file is the only honest way.
    return f"{setting}, or run: stockade allow {_shell(text)}" if all(map(visible, text)) else setting


def for_protection(protection: Protection) -> str:
    """Return why a protected name stays closed, or the setting that lifts it."""
    if protection.name == NAME:
        return f"install Stockade outside this place, with pipx for example; its developers set {SETTING} to true"
    if protection.lifted_by:
        return f"set {protection.lifted_by} to true"
    leads = "" if protection.path == protection.place else f" (by the link {quoted(protection.path)})"
    return f"cannot be allowed: {protection.name} is protected{leads} because {protection.why}"


def for_deny(rule: Sourced[PathPattern], setting: str) -> str:
    """Return who can take a deny away, and where it stands."""
    origin, text = rule.origin, quoted(rule.value.text)
    if origin.layer is Layer.POLICY:
        return f"only the administrator can allow it ({escape(origin.file)})"
    if origin.layer is Layer.DEFAULTS:
        return "cannot be allowed: this deny is built in"
    if origin.layer is Layer.COMMAND_LINE:
        return f"leave out {escape(origin.file) or _FLAGS.get(setting.rpartition('.')[2], 'the flag for')} {text}"
    where = escape(origin.path.removeprefix("$.")) or setting
    return f"remove {text} from {where} in {escape(origin.file) or origin.layer}"


def for_read_deny(rule: Sourced[PathPattern], path: str, *, below: bool) -> str:
    """Return what would open a path again; a re-allow helps only ``below`` the place that the deny names."""
    if below and rule.origin.layer is not Layer.POLICY:
        return f"add {quoted(PathPattern.literal(path).text)} to sandbox.filesystem.allowRead"
    return for_deny(rule, "sandbox.filesystem.denyRead")


def for_missing(rule: Sourced[PathPattern], missing: str) -> str:
    """Return what to do where a missing directory would hold a denied place."""
    made = rule.value.path.startswith(f"{missing}/")
    return f"make the directory {quoted(missing)} outside the sandbox first" if made else for_deny(rule, "the denies")


def for_loop(link: str) -> str:
    """Return what to do about links that run in a circle."""
    return f"remove the link {quoted(link)}"


def quoted(text: str) -> str:
    """Return the text as a JSON string of visible characters, without angle brackets."""
    return '"' + "".join(map(_json, text)) + '"'


def _json(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if visible(char) and char not in "<>":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _shell(text: str) -> str:
    import shlex

    return shlex.quote(text)
