"""Processes of a command that left its process group: found by the mark in their environment, and ended.

macOS has no namespaces for processes, and an orphan belongs to launchd. What a command starts inherits its environment,
so a mark in it finds whoever did not take pains to be rid of it. One that did, and left the group, outlives the
command; it stays behind the walls of its profile.

Source of truth: ps(1) of macOS; ``-E`` shows the environment, and of other users' processes nothing.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable

#: The variable that holds the mark.
MARK: Final = "STOCKADE_COMMAND"
LIST: Final = ("/bin/ps", "-axww", "-E", "-o", "pid=,command=")
_ROUNDS: Final = 5
_SIGKILL: Final = 9


def find_strays(listing: str, mark: str) -> tuple[int, ...]:
    """Return the processes in a listing whose environment holds a mark."""
    wanted = f"{MARK}={mark}"
    found = []
    for line in listing.splitlines():
        number, _, words = line.strip().partition(" ")
        if number.isascii() and number.isdigit() and wanted in words.split():
            found.append(int(number))
    return tuple(found)


def list_processes() -> str:
    """Return what ``ps`` says; nothing if there is none."""
    import subprocess

    try:
        ran = subprocess.run(  # noqa: S603 - words of our own
            LIST, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout.decode("utf-8", "replace")


def end_strays(mark: str, listing: Callable[[], str] = list_processes) -> int:
    """End every process with a mark, again and again as they might have started others; return how many were seen."""
    seen: set[int] = set()
    for _ in range(_ROUNDS):
        strays = [pid for pid in find_strays(listing(), mark) if pid != os.getpid()]
        if not strays:
            break
        seen.update(strays)
        for pid in strays:
            with suppress(OSError):
                os.kill(pid, _SIGKILL)
    return len(seen)
