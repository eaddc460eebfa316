"""A terminal between the user's and the command's.

The command gets a terminal of its own, so job control works inside and nothing inside can type into the user's
shell or leave the user's terminal in a strange state: its modes are put back however the command ends.

Rules: what either side does not take yet is held back, never more than a little of it, so that neither can block the
other; when the user's side is gone, the command's terminal is hung up, as when a window is closed.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import termios
import time
import tty

from stockade.annotation import TYPE_CHECKING, Final
from stockade.cli import running
from stockade.sandbox.limits import Limit
from stockade.sandbox.session import milliseconds
from stockade.suppress import suppress

if TYPE_CHECKING:
    from stockade.cli.terminal import Terminal
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.blocking_process import BlockingProcess
    from stockade.sandbox.result import Result
    from stockade.settings.sources import Locations

_PIECE: Final = 1 << 16
_WINDOW: Final = 8  # struct winsize: four shorts
_END_OF_INPUT: Final = b"\x04"
_DESERTED: Final = 0.05
_USER: Final = 0
_SCREEN: Final = 1


def relayed(
    options: running.RunOptions, shown: Terminal, locations: Locations | None, command: running.Command | None
) -> int:
    """Run a command on a terminal of its own; return its exit status."""

    def conduct(sandbox: BlockingSandbox, command: running.Command, forwarding: running.Forwarding) -> Result:
        user = UserTerminal(_USER)
        forwarding.hold()
        with sandbox.spawn(command, pty=True) as process, user:
            forwarding.to(sandbox)(process.running)
            forwarding.pause, forwarding.resume = user.restore, user.take
            try:
                return Relay(sandbox, process, user, options.timeout, forwarding).run()
            finally:
                forwarding.pause = forwarding.resume = None

    return running.conducted(options, shown, locations, command, conduct)


class UserTerminal:
    """The terminal that somebody sits at, if there is one: every key is handed through while it is taken."""

    def __init__(self, descriptor: int) -> None:
        """Remember how it is set."""
        self._descriptor = descriptor
        self.modes = termios.tcgetattr(descriptor) if os.isatty(descriptor) else None

    def __enter__(self) -> None:
        """Take it."""
        self.take()

    def __exit__(self, *_: object) -> None:
        """Give it back as it was."""
        self.restore()

    def take(self) -> None:
        """Hand every key through. In the background this waits until somebody brings us to the front."""
        if self.modes is not None:
            with suppress(termios.error):
                tty.setraw(self._descriptor, termios.TCSADRAIN)  # what was typed ahead is kept

    def restore(self) -> None:
        """Set it as it was."""
        if self.modes is not None:
            with suppress(termios.error):  # it is gone, which nobody can undo
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self.modes)


class Relay:
    """Carries bytes between the user's streams and the command's terminal until the command has ended."""

    def __init__(
        self,
        sandbox: BlockingSandbox,
        process: BlockingProcess,
        user: UserTerminal,
        timeout: float | None = None,
        forwarding: running.Forwarding | None = None,
    ) -> None:
        """Set the command's terminal as the user's is set."""
        self._forwarding = forwarding
        self._sandbox = sandbox
        self._process = process
        self._terminal = process.terminal
        self._interactive = user.modes is not None
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._unsent = bytearray()
        self._listening = True
        self._open = True
        self._deserted = False
        self._at_line_start = True
        os.set_blocking(self._terminal, False)
        if user.modes is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._terminal, termios.TCSANOW, user.modes)

    def run(self) -> Result:
        """Carry until the end; return how the command ended."""
        before = signal.signal(signal.SIGWINCH, self._resize)
        self._resize()
        try:
            while (result := self._process.poll()) is None:
                self._carry()
            while self._open and self._to_user():
                """The last words, until nothing is left."""
        finally:
            signal.signal(signal.SIGWINCH, before)
        return result

    def _carry(self) -> None:
        """Wait for something to happen, and do what follows from it."""
        poller = select.poll()
        poller.register(self._sandbox.session.fileno(), select.POLLIN)
        if self._forwarding is not None:
            poller.register(self._forwarding.wake, select.POLLIN)
        if self._open and not self._deserted:
            poller.register(self._terminal, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        if self._open and self._listening and len(self._unsent) < _PIECE:
            poller.register(_USER, select.POLLIN)
        waits = [self._left(), self._sandbox.session.look(), _DESERTED if self._deserted else None]
        self._deserted = False
        for descriptor, event in poller.poll(milliseconds(*waits)):
            if descriptor == _USER:
                self._from_user()
            elif descriptor == self._terminal and self._open:
                self._attend(event)
            elif self._forwarding is not None and descriptor == self._forwarding.wake:
                self._forwarding.drain()

    def _left(self) -> float | None:
        """Return the seconds to wait; end the command if its time is over."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            self._deadline = None
            self._sandbox.session.end(self._process.running, Limit.TIME)
            return None
        return left

    def _attend(self, event: int) -> None:
        if event & select.POLLOUT:
            self._to_command()
        if event & ~select.POLLOUT and not self._to_user() and event & select.POLLHUP:
            # Nobody has the terminal open now, which is no end: a program may open it again by its name.
            self._deserted = True

    def _from_user(self) -> None:
        """Take what the user types; where the input has ended, end the command's line input too."""
        try:
            piece = os.read(_USER, _PIECE)
        except OSError:
            piece = b""
        if piece:
            self._at_line_start = piece.endswith(b"\n")
            self._unsent += piece
        elif self._interactive:
            self._hang_up()
        else:
            self._listening = False
            # In the middle of a line the first one only hands the line over.
            self._unsent += _END_OF_INPUT if self._at_line_start else _END_OF_INPUT * 2

    def _to_command(self) -> None:
        try:
            del self._unsent[: os.write(self._terminal, self._unsent[:_PIECE])]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()  # nobody is behind the terminal any more

    def _to_user(self) -> bool:
        """Show what the command says; ``False`` if there is nothing to show now."""
        try:
            piece = os.read(self._terminal, _PIECE)
        except OSError:
            return False
        view = memoryview(piece)
        try:
            while view:
                view = view[os.write(_SCREEN, view) :]
        except OSError:
            self._hang_up()
        return bool(piece)

    def _hang_up(self) -> None:
        """Close the command's terminal, which tells all that runs on it."""
        if self._open:
            self._open = False
            self._process.close()

    def _resize(self, _number: int = 0, _frame: object = None) -> None:
        for descriptor in (_USER, _SCREEN, 2):
            if self._open and os.isatty(descriptor):
                with suppress(OSError):
                    size = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(_WINDOW))
                    fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
                return
