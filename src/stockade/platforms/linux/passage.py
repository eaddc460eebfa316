"""The passage to user namespaces: which program makes them, and what to say if none may.

Usually the helpers make theirs themselves. Where AppArmor keeps user namespaces from all programs but bubblewrap
(Ubuntu 24.04 and later), and the profile of bubblewrap hands that right on to what it starts, the helpers are started
through it. The profile that newer Ubuntus ship takes all capabilities from what bubblewrap starts, so that nobody gets
around the rule; then there is no passage, and the administrator is told what to allow.

Rules: the first try is the direct one and costs nothing more; another passage is tried only after a refusal that
a security module may have given; what worked is remembered for this process.
"""

from __future__ import annotations

import os
from errno import EACCES, EPERM

from stockade.annotation import TYPE_CHECKING, Literal
from stockade.errors import UnavailableError, shortage
from stockade.platforms.linux import bubblewrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.platforms.linux.diagnosis import Finding

Passage = Literal["direct", "bubblewrap"]

#: Steps that security modules and containers refuse, by the names that the helpers report.
_MAKING = "namespaces"
_SHOWING = "fresh /proc"
_DOCTOR = "run `stockade doctor`: it names the cause and the exact commands"
_usual: Passage = "direct"


def usual() -> Passage:
    """Return the passage that worked last in this process."""
    return _usual


def remember(passage: Passage) -> None:
    """Take this passage first from now on."""
    global _usual  # noqa: PLW0603 - a fact about the machine, found once
    _usual = passage


def after(passage: Passage, step: str, error: int) -> Passage | None:
    """Return what to try after a refusal; nothing if there is nothing, or the refusal was about something else."""
    barred = step == _MAKING and error in {EPERM, EACCES}
    return "bubblewrap" if barred and passage == "direct" and find() else None


def find() -> str:
    """Return where bubblewrap is, or nothing."""
    return next((path for path in bubblewrap.PLACES if os.access(path, os.X_OK)), "")


def words_for(passage: Passage, words: Sequence[str]) -> list[str]:
    """Return the words that start a program by a passage. Raises if bubblewrap is wanted and not there."""
    if passage == "direct":
        return list(words)
    bwrap = find()
    if not bwrap:
        message = "bubblewrap is not installed"
        raise UnavailableError(message, "install the package bubblewrap")
    return bubblewrap.through(bwrap, words)


def refusal(step: str, error: int, text: str) -> UnavailableError:
    """Return why the walls cannot be built, in one line, and what to do.

    For a refused user namespace the machine is looked at, which takes about 100 ms.
    """
    short = shortage(OSError(error, "")) if error else None
    if short is not None:
        return short  # the helpers have this process's limits
    plain = f"cannot build the walls: {text}"
    if step == _SHOWING and error == EPERM:
        from stockade.platforms.linux.barrier import WEAKER_LOSS, WEAKER_SETTING

        why = "parts of /proc are masked here, as containers do, so the kernel allows no fresh one"
        hint = f"{WEAKER_SETTING} to do without: {WEAKER_LOSS}; or see `stockade doctor` for a stronger way"
        return UnavailableError(f"{plain}: {why}", hint)
    found = _first_barrier() if step == _MAKING else None
    return UnavailableError(f"cannot build the walls: {found.what}: {found.why}" if found else plain, _DOCTOR)


def _first_barrier() -> Finding | None:
    from stockade.platforms.linux.diagnosis import Level, diagnose
    from stockade.platforms.linux.probe import read_facts

    findings = diagnose(read_facts(build=False)).findings
    return next((finding for finding in findings if finding.level is Level.BLOCKED), None)
