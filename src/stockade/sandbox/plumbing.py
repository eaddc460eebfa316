"""The three streams of a command that is talked to while it runs: its ends, and ours.

Rules: the command's ends block, as programs expect, and are given up once the command has its own; ours are closed
by whoever took them, or all at once by ``close``.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

#: A stream that this program holds the other end of. The number is that of ``subprocess.PIPE``.
PIPE: Final = -1
#: Standard error goes where standard output goes. The number is that of ``subprocess.STDOUT``.
STDOUT: Final = -2

_LAST_STREAM: Final = 2
_NAMES: Final = ("stdin", "stdout", "stderr")


class Plumbing:
    """``inside`` are the command's three streams; ``stdin``, ``stdout``, ``stderr`` our ends, -1 where we have none."""

    def __init__(self) -> None:
        """Begin with none; see ``lay`` and ``terminal``."""
        self.inside: list[int] = []
        self.stdin = -1
        self.stdout = -1
        self.stderr = -1
        self.is_terminal = False
        self._owned: list[int] = []

    @classmethod
    def lay(cls, stdin: int | None, stdout: int | None, stderr: int | None) -> Plumbing:
        """Make streams as asked for: ``PIPE``, ``None`` for nothing (``/dev/null``), or an open descriptor."""
        self = cls()
        try:
            for index, wish in enumerate((stdin, stdout, stderr)):
                self.inside.append(self._stream(index, wish))
        except BaseException:
            self.close()
            raise
        return self

    @classmethod
    def terminal(cls, ours: int, theirs: int, numbers: Collection[int] = (0, 1, 2)) -> Plumbing:
        """Take both ends of a terminal: one stream in both directions, and no standard error apart.

        ``numbers`` are the streams that it is for; the others are those of this process.
        """
        self = cls()
        self.inside = [theirs if number in numbers else number for number in range(3)]
        self._owned = [theirs]
        self.is_terminal = True
        self.stdin, self.stdout = os.dup(ours), ours
        return self

    def give_up_inside(self) -> None:
        """Close the command's ends, once it has its own."""
        while self._owned:
            os.close(self._owned.pop())

    def close(self) -> None:
        """Close everything that is still open."""
        self.give_up_inside()
        for end in self._ends():
            os.close(end)
        self.stdin = self.stdout = self.stderr = -1

    def _ends(self) -> Iterator[int]:
        yield from (end for end in (self.stdin, self.stdout, self.stderr) if end >= 0)

    def _stream(self, index: int, wish: int | None) -> int:
        if wish is None:
            return self._own(os.open(os.devnull, (os.O_WRONLY if index else os.O_RDONLY) | os.O_CLOEXEC))
        if wish == PIPE:
            return self._pipe(index)
        if wish == STDOUT and index == _NAMES.index("stderr"):
            return self.inside[1]
        if wish < 0:
            message = f"{_NAMES[index]} cannot be {wish}"
            raise StockadeError(message, "give PIPE, None, or an open descriptor; STDOUT is for stderr alone")
        return wish

    def _pipe(self, index: int) -> int:
        reader, writer = os.pipe()
        ours, theirs = (reader, writer) if index else (writer, reader)
        setattr(self, _NAMES[index], ours)
        return self._own(theirs)

    def _own(self, descriptor: int) -> int:
        self._owned.append(descriptor)
        return descriptor


def resize(terminal: int, rows: int, columns: int) -> None:
    """Tell a terminal, and what runs on it, how large its window is."""
    import fcntl
    import termios

    size = b"".join(number.to_bytes(2, "little") for number in (rows, columns, 0, 0))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)


def require_streams(streams: Sequence[int]) -> None:
    """Refuse a directory as a stream: whoever holds one open reaches all that is below it, around every wall."""
    for number, stream in enumerate(streams):
        if stat.S_ISDIR(os.fstat(stream).st_mode):
            message = f"standard stream {number} is a directory"
            raise StockadeError(message, "give the command a file, a pipe or a terminal")


def require_pipe(descriptor: int) -> None:
    """Refuse to pass anything but a pipe: what else is open may reach farther than what it was opened for."""
    try:
        kind = os.fstat(descriptor).st_mode if descriptor > _LAST_STREAM else 0
    except OSError as error:
        message = f"descriptor {descriptor} cannot be passed to the command: {error.strerror}"
        raise StockadeError(message, "pass one that is open") from error
    if not stat.S_ISFIFO(kind):
        message = f"descriptor {descriptor} cannot be passed to the command: it is no pipe"
        raise StockadeError(message, "name the file itself, or send it through a pipe: <(cat FILE)")
