"""Becoming a command: from a process that was just forked, or that somebody started for it, to ``sandbox-exec``.

What can be known before is checked before: that the directory can be entered and the program exists. After that only
``sandbox-exec`` can fail, and it says so on the command's own stream of errors.
"""

from __future__ import annotations

import errno
import os

from stockade.annotation import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Named in full, so that no PATH decides what builds the walls.
SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
_DEFAULT_PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"


def problem_with(order: Mapping[str, Any]) -> tuple[str, int]:
    """Return why a command cannot be started, and the kernel's number for that; empty and 0 if nothing is known."""
    directory, program = order["directory"], order["argv"][0]
    if not os.path.isdir(directory):
        return f"cannot enter {directory}", errno.ENOENT
    if not os.access(directory, os.X_OK):
        return f"cannot enter {directory}", errno.EACCES
    path = order["environment"].get("PATH", _DEFAULT_PATH)
    places = [program] if "/" in program else [os.path.join(each or ".", program) for each in path.split(":")]
    there = [place for each in places if os.path.isfile(place := os.path.join(directory, each))]
    if not there:
        return f"{program}: no such program", errno.ENOENT
    if not any(os.access(place, os.X_OK) for place in there):
        return f"{program}: not to be executed", errno.EACCES
    return "", 0


def words_of(order: Mapping[str, Any]) -> list[str]:
    """Return the words of the program that builds the walls and becomes the command."""
    return [order["sandbox"], "-p", order["profile"], *order["argv"]]


def become(order: Mapping[str, Any]) -> None:
    """Set limits and directory, and become the command; raise ``OSError`` if that fails."""
    import resource

    for kind, value in order["limits"]:
        hard = resource.getrlimit(kind)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))
    os.chdir(order["directory"])
    os.execve(order["sandbox"], words_of(order), order["environment"])  # noqa: S606 - that is its purpose
