"""A plan becomes the specification of a jail: the policy's mounts, and those that every session needs.

Every session sees its own temporary directory and nothing else of the user's private directories: neither the
files of other sessions nor the journals by which sandboxes count each other.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.filesystem.plan import Operation
from stockade.platforms.linux.cell import bare_roots
from stockade.platforms.linux.mount import JailSpec, Mount
from stockade.platforms.linux.program import name
from stockade.policy.path_pattern import PathPattern
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stockade.filesystem.plan import Placeholder, Plan
    from stockade.platforms.backend import Observe
    from stockade.platforms.linux.cell import Unlisted
    from stockade.platforms.linux.mount import Operation as MountOperation
    from stockade.platforms.linux.placeholders import Lease
    from stockade.policy.model import SandboxPolicy

#: A pin is a mount of its own in the mode that surrounds it, and only writable places need one.
_OPERATIONS: Final[dict[Operation, MountOperation]] = {
    Operation.READ_ONLY: "read-only",
    Operation.WRITABLE: "writable",
    Operation.HIDDEN: "guarded",
    Operation.PIN: "writable",
    Operation.LINK: "link",
    Operation.PRIVATE: "private",
    Operation.ABSENT: "absent",
    Operation.WITHHELD: "withheld",
}


_NAMES: Final = "/etc/resolv.conf"
_OWN_NAMES: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "resolv.conf")


def names_file() -> str:
    """Return the file that says who answers questions about names. Without one the C libraries ask localhost anyway."""
    path = os.path.realpath(_NAMES)
    return path if os.path.isfile(path) else ""


def specify(  # noqa: PLR0913 - what a jail is made of, all named
    policy: SandboxPolicy,
    plan: Plan,
    *,
    temporary: str,
    cache: str = "",
    private: Iterable[str],
    placed: Iterable[Mount],
    names: str = "",
    sockets: Iterable[PathPattern] = (),
    denied: Iterable[PathPattern] = (),
    unlisted: Unlisted = (),
    observe: Observe = "auto",
    layers: str = "",
) -> JailSpec:
    """Return the jail for a plan.

    ``private`` are directories of the user's that no command may see but for ``temporary`` and ``cache`` in them, which
    are the session's own; ``placed`` are the mounts on placeholders.
    ``names`` is the file that says who answers questions about names; one of ours takes its place. ``sockets`` are the
    unix sockets that may be reached by path, ``denied`` those that may not in any case. ``unlisted`` are
    placeholders that are not listed. ``observe``: how much of what the walls refuse to change is told. ``layers`` is
    the directory for what commands write in a private place.
    """
    closed = _texts(denied)
    mounts = {mount.path: Mount(_OPERATIONS[mount.operation], mount.path, mount.reason) for mount in plan.mounts}
    for place in [path for path, mount in mounts.items() if mount.operation == "private"]:
        mounts[place] = mounts[place].but(source=layers)
    hidden = {path: Mount("hidden", path, "the sandboxes' own") for path in private}
    mounts |= hidden | _pins(hidden, mounts)
    mounts |= {mount.target: mount for mount in placed}
    mounts[temporary] = Mount("writable", temporary, "the session's temporary directory")
    if cache:
        mounts[cache] = Mount("writable", cache, "the project's private cache")
    if names:
        mounts.setdefault(names, Mount("read-only", names, "names are answered from the policy", _OWN_NAMES))
    return JailSpec(
        tuple(mounts[path] for path in sorted(mounts, key=_surrounding_first)),
        fresh_processes=not policy.mode.weaker_nested,
        confinement=name(
            # Where one is denied somebody must look at each, and none may send to a path without connecting.
            "all" if policy.sockets.all_unix and not closed else "stream",
            tracing=not policy.mode.weaker_nested,
            observe=observe,
            unlisted=bool(unlisted),
        ),
        sockets=_texts(sockets),
        denied_sockets=closed,
        unlisted=unlisted,
    )


def _pins(hidden: Iterable[str], mounts: Mapping[str, Mount]) -> dict[str, Mount]:
    """Hold the directories between a writable place and a hidden one in it: renamed, they would take it along.

    From then on another session would not find it there, and not hide it where it is.
    """
    pins: dict[str, Mount] = {}
    for path in hidden:
        around, between = os.path.dirname(path), []
        while around not in mounts and around != "/":
            between.append(around)
            around = os.path.dirname(around)
        if around in mounts and mounts[around].operation == "writable":
            pins |= {inner: Mount("writable", inner, "holds what is the sandboxes' own") for inner in between}
    return pins


def _texts(patterns: Iterable[PathPattern]) -> tuple[str, ...]:
    """Return patterns of places as texts that mean the same."""
    return tuple(pattern.path if pattern.is_glob else PathPattern.literal(pattern.path).text for pattern in patterns)


class Placed(Value):
    """What is laid on placeholders, and where none could be made: the directory read-only, its own ones open again.

    ``unlisted`` are those that are not listed inside.
    """

    mounts: tuple[Mount, ...]
    notes: tuple[str, ...] = ()
    unlisted: Unlisted = ()


def placed(plan: Plan, lease: Lease, stages: Mapping[str, str]) -> Placed:
    """Return the mounts that keep missing names missing, and lay ``stages`` (by their targets) over others."""
    planned = {placeholder.path: placeholder for placeholder in plan.placeholders}
    mounts = [Mount("staged", path, planned[path].reason, source) for path, source in stages.items()]
    kept = [path for path in lease.targets if path not in stages]
    mounts += (Mount(_kept(planned[path]), path, planned[path].reason) for path in kept)
    frozen: dict[str, str] = {}
    for placeholder in lease.impossible:
        reason = f"{escape(placeholder.path)} must not be made, and cannot be kept: {placeholder.reason}"
        frozen.setdefault(os.path.dirname(placeholder.path), reason)
    for parent, reason in frozen.items():
        mounts += _frozen(parent, reason, {mount.path for mount in plan.mounts})
    notes = tuple(f"{escape(parent)} is read-only: {why}" for parent, why in frozen.items())
    return Placed(tuple(mounts), notes, bare_roots(plan, lease.targets))


def _kept(placeholder: Placeholder) -> MountOperation:
    if placeholder.hidden:
        return "withheld"
    return "read-only" if placeholder.content else "absent"


def _frozen(parent: str, reason: str, planned: set[str]) -> list[Mount]:
    """Make a directory read-only, but leave its directories as they were."""
    with os.scandir(parent) as entries:
        inner = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    opened = [Mount("writable", path, reason) for path in inner if path not in planned]
    return [Mount("read-only", parent, reason), *opened]


def _surrounding_first(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))
