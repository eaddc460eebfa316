"""Can walls be built on this Mac, and if not, why and what to do.

Whether they can is tried, not reasoned: ``sandbox-exec`` is given a profile that allows everything, then a real one. If
the first is refused, this process is inside a sandbox already, and there is no second one in the first. If only the
real one is, this version of macOS does not know a word of it, and says which.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final, Literal
from stockade.escape import escape
from stockade.platforms.macos.monitor import LOG
from stockade.platforms.macos.seatbelt import UNTAGGED, base
from stockade.platforms.macos.start import SANDBOX_EXEC
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

_TRUE: Final = "/usr/bin/true"
_OPEN: Final = "(version 1)\n(allow default)\n"
_PATIENCE: Final = 20.0
_REPORT: Final = "please report it with the output of `stockade doctor --json` and of `sw_vers`"


class Finding(Value):
    """One thing that was found: ``ok``, ``note`` (worth knowing), ``missing`` (a comfort) or ``blocked``."""

    level: Literal["ok", "note", "missing", "blocked"]
    what: str
    why: str
    remedy: str = ""


def real_profile() -> str:
    """Return a profile with every word that ours may hold."""
    rules = (
        f'(deny default (with message "{UNTAGGED}"))',
        base(),
        '(deny file-read* (require-all (subpath "/private/none") (require-not (regex "^/none/[^/]+(/|$)"))))',
        '(allow file-read-metadata file-write* (require-any (literal "/private/none") (literal "/none")))',
        r'(deny file-read* (regex "^/none/([^/\x80-\xff]|[\xc0-\xff][\x80-\xbf]+|\\.(a|b)?)*(/|$)"))',
        '(deny file-write-unlink (literal "/private/none"))',
        '(allow network-outbound (remote ip "localhost:9"))',
        '(allow network-bind network-inbound (local ip "*:*"))',
        '(allow network-bind network-inbound (local unix-socket (subpath "/private/none")))',
        '(allow network-outbound (remote unix-socket (subpath "/private/none")))',
        '(allow network-outbound (remote unix-socket (path-regex "^/none")))',
    )
    return "\n".join(("(version 1)", *rules)) + "\n"


def diagnose(
    run: Callable[[tuple[str, ...]], tuple[int, str]] | None = None, sandbox: str = SANDBOX_EXEC, log: str = LOG
) -> tuple[Finding, ...]:
    """Return what was found; ``run`` runs words and returns their status and what they said."""
    return (_walls(run or _run, sandbox), _log(log))


def _walls(run: Callable[[tuple[str, ...]], tuple[int, str]], sandbox: str) -> Finding:
    if not os.access(sandbox, os.X_OK):
        return Finding("blocked", "walls", f"{sandbox} is not there", "it is part of macOS: repair the system")
    status, said = run((sandbox, "-p", _OPEN, _TRUE))
    if status:
        why = f"no profile can be applied here: {_short(said)}"
        return Finding("blocked", "walls", why, "leave the sandbox that this runs in: there is no second in a first")
    status, said = run((sandbox, "-p", real_profile(), _TRUE))
    if status:
        return Finding("blocked", "walls", f"this macOS does not take our profile: {_short(said)}", _REPORT)
    return Finding("ok", "walls", "sandbox-exec takes our profile")


def _log(log: str) -> Finding:
    if os.access(log, os.X_OK):
        return Finding("ok", "reports", "what is refused is told by the system's log")
    return Finding("missing", "reports", f"{log} is not there: what is refused is not told", "repair the system")


def _short(said: str) -> str:
    return escape(" ".join(said.split()), 300) or "it said nothing"


def _run(words: tuple[str, ...]) -> tuple[int, str]:
    import subprocess

    try:
        ran = subprocess.run(  # noqa: S603 - words of our own
            words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PATIENCE
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return 1, str(problem)
    return ran.returncode, (ran.stdout + ran.stderr).decode("utf-8", "replace")
