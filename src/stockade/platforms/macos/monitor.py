"""The system's log, followed for one session: a ``log stream`` whose words become reports.

It is started with the session and takes a moment to come up; what is refused before is not told. When it dies it is
started again, later each time up to a minute, and at once after it had lived for a while. Nothing that it says or fails
to do stops a command: to report is no wall.

Source of truth: log(1). The predicate lets through only messages that end in the session's suffix.
"""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.macos.log_event import LogReader
from stockade.platforms.macos.log_report import report_of
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import Popen

    from stockade.platforms.backend import Report

LOG: Final = "/usr/bin/log"
_CHUNK: Final = 65536
_FIRST_DELAY: Final = 0.5
_LONGEST_DELAY: Final = 60.0
_LONG_LIFE: Final = 10.0


def words(suffix: str, program: str = LOG) -> tuple[str, ...]:
    """Return the words that follow the log for a session."""
    return (program, "stream", "--style", "ndjson", "--predicate", f'eventMessage ENDSWITH "{suffix}"')


class Monitor:
    """See the module. ``receive`` is to be called when ``fileno`` is readable, and now and then."""

    def __init__(
        self, suffix: str, program: str = LOG, clock: Callable[[], float] = time.monotonic, *, start: bool = True
    ) -> None:
        """Start following, unless ``start`` says not yet; ``receive`` will."""
        self._suffix = suffix
        self._words = words(suffix, program)
        self._clock = clock
        self._process: Popen[bytes] | None = None
        self._reader = LogReader(suffix)
        self._began = 0.0
        self._delay = _FIRST_DELAY
        self._next = 0.0
        self._closed = False
        if start:
            self._start()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the log has said something; -1 while there is none."""
        return self._process.stdout.fileno() if self._process is not None and self._process.stdout is not None else -1

    def receive(self) -> tuple[Report, ...]:
        """Return what was refused since; start the stream again if it is time to. Never waits."""
        if self._process is None:
            if not self._closed and self._clock() >= self._next:
                self._start()
            return ()
        found: list[Report] = []
        while True:
            try:
                data = os.read(self.fileno(), _CHUNK)
            except BlockingIOError:
                return tuple(found)
            except OSError:
                data = b""
            if not data:
                self._lose()
                return tuple(found)
            found += (report for event in self._reader.feed(data) if (report := report_of(event)) is not None)

    def close(self) -> None:
        """Follow no more; may be called again."""
        self._closed = True
        self._end()

    def _start(self) -> None:
        import subprocess

        self._began = self._clock()
        self._reader = LogReader(self._suffix)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - words of our own
                self._words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
            )
        except OSError:
            self._wait_longer()
            return
        os.set_blocking(self.fileno(), False)

    def _lose(self) -> None:
        self._end()
        if self._clock() - self._began >= _LONG_LIFE:
            self._delay = _FIRST_DELAY
        self._wait_longer()

    def _wait_longer(self) -> None:
        self._next = self._clock() + self._delay
        self._delay = min(self._delay * 2, _LONGEST_DELAY)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(OSError):
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
