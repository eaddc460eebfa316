"""What to do about a refused path: the smallest setting that would allow it, or who alone can.

Each remedy is one line. A path in it is written as a JSON string that can be pasted into a settings file, with the
characters of patterns escaped, so that it means that very path.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape, visible
from stockade.policy.installation import NAME, SETTING
from stockade.policy.path_pattern import PathPattern
from stockade.policy.protected_names import OWN, REPOSITORY
from stockade.settings.layer import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.policy.protected import Protection
    from stockade.settings.layer import Sourced


#: What keeps git on the host from taking a directory for a repository that only looks like one.
EXPLICIT: Final = "git config --global safe.bareRepository explicit"
#: The flags of the command line that deny, by the setting that each stands for.
_FLAGS: Final = {
    "denyWrite": "--deny-write",
    "denyRead": "--deny-read",
    "denyUnixSockets": "--deny-unix-socket",
}


def for_closed(cwd: str, *, is_home: bool) -> str:
    """Return why a working directory is not writable, and what opens it."""
    what = "is your home directory" if is_home else "holds your home directory"
    where = f'the working directory "{escape(cwd)}"'
    return f"commands cannot write in {where}, for it {what}; work in one below, or open it with --allow-write ."


def for_closed_within(cwd: str, name: str, *, lifting: bool) -> str:
    """Return why a working directory in a protected name of the home is not writable, and what opens it."""
    from stockade.policy.home_names import AT_HOME

    flag = f"--allow-protected {_shell(name)}" if lifting else "--allow-write ."
    where, lies = f'the working directory "{escape(cwd)}"', f"for it lies in {escape(name)} of your home directory"
    return f"commands cannot write in {where}, {lies}, and {AT_HOME[name]}; work elsewhere, or open it with {flag}"


def for_outside(place: str, protection: Protection | None, homes: Iterable[str] = ()) -> str:
    """Return what would make a place writable. What would be protected then is never proposed.

    A place that is or holds one of the ``homes`` is proposed with the danger.
    """
    if protection is not None:
        return f"cannot be allowed by allowWrite: {protection.name} is protected because {protection.why}"
    text = PathPattern.literal(place).text
    setting = f"add {quoted(text)} to sandbox.filesystem.allowWrite"
    # Unseen characters would have to be typed: then the settings file is the only honest way.
    remedy = f"{setting}, or run: stockade allow {_shell(text)}" if all(map(visible, text)) else setting
    below = place.rstrip("/") + "/"
    return (
        f"{remedy}; beware: that opens your home directory"
        if any(f"{one}/".startswith(below) for one in homes)
        else remedy
    )


def for_protection(protection: Protection) -> str:
    """Return what lifts a protection, together with the danger, or why it stays closed."""
    if protection.name == NAME:
        return f"install Stockade outside this place, with pipx for example; its developers set {SETTING} to true"
    leads = "" if protection.path == protection.place else f" (by the link {quoted(protection.path)})"
    if protection.name.startswith(f"{OWN}/"):
        return f"cannot be allowed: {protection.name} is protected{leads} because {protection.why}"
    if _is_on_the_way(protection):
        made = f"make the directory {quoted(protection.place)} outside the sandbox first"
        return f"{made}: who makes it could make {protection.name}{leads}, and {protection.why}"
    if protection.name in REPOSITORY:
        return f"run outside: {EXPLICIT}; or {for_lifting(protection.name)}; beware: {protection.why}"
    return f"{for_lifting(protection.lifted_by or protection.name)}; beware{leads}: {protection.why}"


def for_lifting(entry: str) -> str:
    """Return how to lift the protection of a name, or all that is protected at a path."""
    text = PathPattern.literal(entry).text if entry.startswith("/") else entry
    setting = f"add {quoted(text)} to sandbox.filesystem.allowProtected"
    # Unseen characters would have to be typed: then the settings file is the only honest way.
    return f"{setting}, or run with --allow-protected {_shell(text)}" if all(map(visible, text)) else setting


def for_removal(directory: str, lister: str = "") -> str:
    """Return how to remove a nested repository or worktree as a whole; ``lister`` is whose list the worktree is on."""
    if not all(map(visible, directory + lister)):
        return "remove it outside the sandbox"
    steps = [f"rm -rf -- {_shell(directory)}"] if directory else []
    steps += [f"git -C {_shell(lister)} worktree prune"] if lister else []
    return f"to remove all of it, run outside the sandbox: {' && '.join(steps)}"


def _is_on_the_way(protection: Protection) -> bool:
    """Tell whether it is not the name itself that is protected, but a missing directory that would hold it."""
    if protection.lifted_by or protection.path != protection.place or "/" not in protection.name:
        return False
    return protection.path.rpartition("/")[2].casefold() != protection.name.rpartition("/")[2].casefold()


def for_deny(rule: Sourced[PathPattern], setting: str) -> str:
    """Return who can take a deny away, and where it stands."""
    origin, text = rule.origin, quoted(rule.value.text)
    if origin.layer is Layer.POLICY:
        return f"only the administrator can allow it ({escape(origin.file)})"
    if origin.layer is Layer.DEFAULTS:
        return "cannot be allowed: Stockade takes its settings from there, which are changed outside alone"
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
