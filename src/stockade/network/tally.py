"""Refusals, told once and then counted.

A program that is refused tries again, often in a loop. So the first refusal of a destination to a command is told at
once, and those that follow are told together, once in a while, as a number. Numbers add up: each tells how many there
were since the one before. So many destinations are remembered; of one that was forgotten the next refusal is told as
if it were the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from stockade.policy.decision import NetworkDecision

#: Is told of a denial, the id of the command (empty if unknown), and how many of them there were.
Report: TypeAlias = Callable[["NetworkDecision", str, int], None]

_REMEMBERED: Final = 1024
_SECONDS: Final = 1.0


class _Entry:
    def __init__(self, decision: NetworkDecision, command: str) -> None:
        self.decision = decision
        self.command = command
        self.untold = 0


class Tally:
    """Counts for one event loop."""

    def __init__(self, report: Report, *, remembered: int = _REMEMBERED, seconds: float = _SECONDS) -> None:
        """Tell ``report``, and further numbers every so many seconds."""
        self._report = report
        self._remembered = remembered
        self._seconds = seconds
        self._entries: dict[tuple[str, str, str], _Entry] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, decision: NetworkDecision, command: str) -> None:
        """Count one refusal."""
        key = (decision.asked, decision.reason.name, command)
        entry = self._entries.pop(key, None)
        if entry is None:
            entry = _Entry(decision, command)
            self._tell(entry, 1)
        else:
            entry.untold += 1
            self._start()
        self._entries[key] = entry  # the one used last stands last
        while len(self._entries) > self._remembered:
            self._settle(self._entries.pop(next(iter(self._entries))))

    def flush(self) -> None:
        """Tell all that was only counted so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for entry in tuple(self._entries.values()):
            self._settle(entry)

    def _start(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self.flush)

    def _settle(self, entry: _Entry) -> None:
        untold, entry.untold = entry.untold, 0
        if untold:
            self._tell(entry, untold)

    def _tell(self, entry: _Entry, times: int) -> None:
        try:
            self._report(entry.decision, entry.command, times)
        except Exception as error:  # noqa: BLE001 - whoever listens must not be able to break a refusal
            context = {"message": "a report of a refusal failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
