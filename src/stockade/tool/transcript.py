"""What a command prints, both streams through one pipe, so that their order is kept.

A transcript owns the pipe and, once there is more than can be shown, a file with all of it in the session's temporary
directory. Rules: memory and file are bounded, whatever a command prints; commands can write to that directory, so the
file is made there under a new name, never through a link, and is written by its descriptor alone. Whoever listens is
told each piece as it comes; if that fails, the command goes on, and the failure is told.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.suppress import suppress
from stockade.tool.excerpt import SHOWN, Excerpt

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

#: Bytes of an output that are kept in its file.
KEPT: Final = 64 << 20

_PIECE: Final = 1 << 16
_FRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Transcript:
    """One command's output. ``writer`` goes to the command."""

    def __init__(
        self, folder: str, listener: Callable[[bytes], object] | None = None, *, shown: int = SHOWN, kept: int = KEPT
    ) -> None:
        """Make the pipe; ``folder`` is where a long output is kept."""
        try:
            self._reader, self.writer = os.pipe()
        except OSError as error:
            message = f"the command's streams cannot be opened: {error.strerror}"
            raise UnavailableError(message, "close files, or raise the limit of open files (ulimit -n)") from error
        os.set_blocking(self._reader, False)
        self._folder = folder
        self._listener = listener
        self._shown = shown
        self._kept = kept
        self._excerpt = Excerpt(shown)
        self._descriptor = -1
        self._written = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self.size = 0
        self.file = ""
        self.notes: tuple[str, ...] = ()

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read whenever there is something, from now on; the command has its end."""
        self._close_writer()
        self._loop = loop
        loop.add_reader(self._reader, self._read)

    def finish(self) -> None:
        """Take what is left and close everything. May be called again."""
        self._close_writer()
        if self._reader >= 0:
            while self._read():
                pass
            self._close_reader()
        if self._excerpt.is_binary:
            self._keep()  # what is not shown can at least be looked at
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def is_cut(self) -> bool:
        """Whether not all that came, since it was last taken, is shown."""
        return not self._excerpt.is_whole or self._excerpt.is_binary

    def text(self) -> str:
        """Return what is shown of it."""
        return self._excerpt.text(self.file)

    def take(self) -> str:
        """Return what is shown of what came since this was last called."""
        text = self._excerpt.text(self.file)
        # The next part is shown on its own, but the file has everything, from the beginning.
        if self._excerpt.size:
            self._keep()
        self._excerpt = Excerpt(self._shown)
        return text

    def _read(self) -> bool:
        """Take one piece; return whether there may be another."""
        try:
            piece = os.read(self._reader, _PIECE)
        except BlockingIOError:
            return False
        except OSError:
            piece = b""
        if not piece:
            self._close_reader()
            return False
        self._take(piece)
        return True

    def _take(self, piece: bytes) -> None:
        self.size += len(piece)
        if self._descriptor < 0 and self._excerpt.size + len(piece) > self._shown:
            self._keep()
        self._excerpt.feed(piece)
        self._write(piece)
        if self._listener is not None:
            try:
                self._listener(piece)
            except Exception as error:  # noqa: BLE001 - whoever listens must not break the command
                self._listener = None
                self.notes += (f"the listener failed: {escape(f'{type(error).__name__}: {error}')}",)

    def _keep(self) -> None:
        """Begin the file with what there is."""
        if self.file or not self._folder:
            return
        self.file = os.path.join(self._folder, f"output-{os.urandom(6).hex()}.txt")
        try:
            self._descriptor = os.open(self.file, _FRESH, 0o600)
        except OSError as error:
            self.notes += (f"the whole output is not kept: {error.strerror}",)
            self.file, self._folder = "", ""
            return
        self._write(self._excerpt.kept())

    def _write(self, piece: bytes) -> None:
        room = self._kept - self._written
        if self._descriptor < 0 or not piece or room <= 0:
            return
        try:
            self._written += os.write(self._descriptor, piece[:room])
        except OSError as error:
            self._stop(f"the file of the output is not whole: {error.strerror}")
            return
        if self._written >= self._kept:
            self._stop(f"the file of the output holds its first {self._kept} bytes alone")

    def _stop(self, note: str) -> None:
        self.notes += (note,)
        os.close(self._descriptor)
        self._descriptor = -1

    def _close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def _close_reader(self) -> None:
        if self._reader >= 0:
            if self._loop is not None:
                with suppress(RuntimeError):  # the loop may be closed already
                    self._loop.remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1
