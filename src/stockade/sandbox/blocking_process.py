"""A command that runs while the program talks to it, for programs without asyncio.

``with sandbox.spawn("make") as process: for line in process.stdout: ...``

Rules: the streams are ordinary files, and reading them waits; leaving ``with`` ends the command with all that it
started. As with the sandbox itself, one thread at a time waits and signals; the streams may be used by others.
"""

from __future__ import annotations

import io
import select
import time
from errno import EIO

from stockade.annotation import TYPE_CHECKING, Any, BinaryIO, Final, Self
from stockade.errors import StockadeError
from stockade.sandbox import plumbing
from stockade.sandbox.session import milliseconds
from stockade.suppress import suppress

if TYPE_CHECKING:
    from types import TracebackType

    from stockade.sandbox.plumbing import Plumbing
    from stockade.sandbox.result import Result
    from stockade.sandbox.session import Running, Session

_SIGTERM: Final = 15


class _TerminalEnd(io.FileIO):
    """Our end of a terminal, which reads as ended once nobody is behind it."""

    def readinto(self, buffer: Any) -> int | None:
        """Read what is there."""
        try:
            return super().readinto(buffer)
        except OSError as error:
            if error.errno != EIO:
                raise
            return 0

    def readall(self) -> bytes:
        """Read to the end."""
        pieces = []
        while piece := self.read(io.DEFAULT_BUFFER_SIZE):
            pieces.append(piece)
        return b"".join(pieces)

    def read(self, size: int | None = -1) -> bytes:
        """Read some bytes, or all."""
        if size is None or size < 0:
            return self.readall()
        buffer = bytearray(size)
        return bytes(buffer[: self.readinto(buffer) or 0])


class BlockingProcess:
    """One command that runs. ``stdin``, ``stdout`` and ``stderr`` are ``None`` where no pipe was asked for.

    ``stdin`` is buffered, unless it is a terminal: ``flush`` it, or close it.
    """

    def __init__(self, session: Session, running: Running, streams: Plumbing) -> None:
        """Take over a command that was just started; made by ``BlockingSandbox.spawn``."""
        self._session = session
        self.running = running
        self._terminal = streams.is_terminal
        self.stdin = self._writer(streams.stdin)
        self.stdout = self._reader(streams.stdout)
        self.stderr = self._reader(streams.stderr)

    @property
    def terminal(self) -> int:
        """The descriptor of our end of the command's terminal."""
        if not self._terminal or self.stdout is None:
            message = "the command has no terminal"
            raise StockadeError(message, "spawn it with pty=True")
        return self.stdout.fileno()

    @property
    def command(self) -> str:
        """The command, as it was given."""
        return self.running.command

    def __enter__(self) -> Self:
        """Use it for as long as the block lasts."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the command if it still runs, wait for that, and close the streams."""
        self.kill()
        with suppress(StockadeError):  # closed, or never started: either way it does not run
            self.wait()
        self.close()

    def close(self) -> None:
        """Close the streams; the command may go on without them."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):  # what it did not take of its input
                    stream.close()

    def poll(self) -> Result | None:
        """Return how it ended, or ``None`` if it has not. Never waits."""
        if self.running.outcome is None:
            self._session.pump()
        return None if self.running.outcome is None else self.running.result()

    def wait(self, timeout: float | None = None) -> Result:
        """Wait until the command and all that it started are gone.

        Raises TimeoutError after ``timeout`` seconds, and leaves the command running then. A command that writes more
        than a pipe holds waits for a reader: read its streams first.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        poller = select.poll()
        if self.running.outcome is None:
            poller.register(self._session.fileno(), select.POLLIN)
        while self.running.outcome is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                message = f"the command still runs after {timeout} seconds"
                raise TimeoutError(message)
            if poller.poll(milliseconds(left, self._session.look())):
                self._session.pump()
        return self.running.result()

    def signal(self, number: int) -> None:
        """Pass a signal on to the command and what it runs in front. Nothing happens once it has ended."""
        self._session.signal(self.running, number)

    def terminate(self) -> None:
        """Ask the command to end (SIGTERM)."""
        self.signal(_SIGTERM)

    def kill(self) -> None:
        """End the command and everything that it started."""
        self._session.end(self.running)

    def resize(self, rows: int, columns: int) -> None:
        """Tell the command how large its terminal is."""
        plumbing.resize(self.terminal, rows, columns)

    def _writer(self, descriptor: int) -> BinaryIO | None:
        if descriptor < 0:
            return None
        return open(descriptor, "wb", buffering=0 if self._terminal else -1)

    def _reader(self, descriptor: int) -> BinaryIO | None:
        if descriptor < 0:
            return None
        kind = _TerminalEnd if self._terminal else io.FileIO
        return io.BufferedReader(kind(descriptor, "rb"))
