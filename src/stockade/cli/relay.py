"""A terminal between the user's and the command's.

The command gets a terminal of its own, so job control works inside and nothing inside can type into the user's
shell or leave the user's terminal in a strange state: its modes are put back however the command ends.

Rules: what either side does not take yet is held back, never more than a little of it, so that neither can block the
other; when the user's side is gone, the command's terminal is hung up, as when a window is closed. The user's terminal
is ours only while we are in front of it: as a job in the background we read no key and set no mode. Where a stream is
redirected, keys may be for another program of the pipeline, and are left alone until the command wants some. A command
that is stopped (Ctrl-Z) stops us too, and gives the user's shell back.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # signal makes enumerations, which costs a millisecond
import fcntl
import os
import select
import stat
import termios
import time
import tty

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.cli.terminal_modes import is_in_front
from stockade.sandbox.blocking_process import BlockingProcess
from stockade.sandbox.limits import Limit
from stockade.sandbox.plumbing import Plumbing
from stockade.sandbox.session import milliseconds
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.cli import running
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.result import Result

_PIECE: Final = 1 << 16
_MOST_PIECES: Final = 16
_WINDOW: Final = 8  # struct winsize: four shorts
_END_OF_INPUT: Final = b"\x04"
_DESERTED: Final = 0.05
_BEHIND: Final = 0.2
#: Seconds in which a command hears that its terminal is gone before it fails to write there.
_GRACE: Final = 0.1
#: Seconds that a screen has to take some of the last words of a command that was ended.
_LAST_WORDS: Final = 0.5
_STREAMS: Final = (0, 1, 2)


def relay(
    sandbox: BlockingSandbox,
    order: running.Order,
    forwarding: running.Forwarding,
    timeout: float | None,
    own: tuple[int, ...] = _STREAMS,
) -> Result:
    """Run a command with a terminal of its own as these streams, and wait for its end."""
    user = UserTerminal(next(filter(_is_readable, own), own[0]), is_shared=1 not in own)
    forwarding.hold()
    with _spawned(sandbox, order, user, own) as process, user:
        forwarding.to(sandbox)(process.running)
        carrier = Relay(sandbox, process, user, timeout, forwarding, own)
        forwarding.pause, forwarding.resume = carrier.step_back, carrier.come_back
        try:
            return carrier.run()
        finally:
            forwarding.pause = forwarding.resume = None


def _is_readable(descriptor: int) -> bool:
    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY


class UserTerminal:
    """The terminal that somebody sits at, if there is one: every key is handed through while it is taken."""

    def __init__(self, descriptor: int, *, is_shared: bool = False) -> None:
        """Remember how it is set, if we are in front: else it is set as the shell wants it that reads a line there.

        ``is_shared``: another program of the pipeline may write there meanwhile, whose lines are to begin at the left.
        """
        self._is_shared = is_shared
        self.descriptor = descriptor
        self.is_terminal = os.isatty(descriptor)
        self.modes: list[Any] | None = None
        #: Whether keys are to be read from it, which in the background would stop us.
        self.is_taken = False
        self._remember()

    def __enter__(self) -> None:
        """Begin, without taking it yet."""

    def __exit__(self, *_: object) -> None:
        """Give it back as it was."""
        self.restore()

    def take(self) -> None:
        """Hand every key through, if we are in front."""
        self._remember()
        self.is_taken = not self.is_terminal or is_in_front(self.descriptor)
        if self.is_terminal and self.is_taken:
            with suppress(termios.error):
                tty.setraw(self.descriptor, termios.TCSADRAIN)  # what was typed ahead is kept
                if self._is_shared and self.modes is not None:
                    modes = termios.tcgetattr(self.descriptor)
                    modes[tty.OFLAG] = self.modes[tty.OFLAG]
                    termios.tcsetattr(self.descriptor, termios.TCSADRAIN, modes)

    def _remember(self) -> None:
        if self.is_terminal and self.modes is None and is_in_front(self.descriptor):
            with suppress(termios.error):
                self.modes = termios.tcgetattr(self.descriptor)

    def restore(self) -> None:
        """Set it as it was, unless it is another job's now."""
        taken, self.is_taken = self.is_taken, False
        if self.modes is not None and taken and is_in_front(self.descriptor):
            with suppress(termios.error):  # it is gone, which nobody can undo
                termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self.modes)


def _spawned(
    sandbox: BlockingSandbox, order: running.Order, user: UserTerminal, own: tuple[int, ...]
) -> BlockingProcess:
    """Start the command on a terminal that is set, and as large, as the user's from the command's first moment on."""
    ours, theirs = sandbox.session.open_terminal()
    if user.modes is not None:
        with suppress(termios.error):
            termios.tcsetattr(theirs, termios.TCSANOW, user.modes)
    _fit(ours)
    streams = Plumbing.terminal(ours, theirs, own)
    try:
        started = sandbox.session.start(
            order.command, streams.inside, env=order.environment, terminal=True, pass_fds=order.pass_fds
        )
    except BaseException:
        streams.close()
        raise
    streams.give_up_inside()
    return BlockingProcess(sandbox.session, started, streams)


def _fit(terminal: int) -> None:
    """Make the command's terminal as large as the user's."""
    for descriptor in _STREAMS:
        if os.isatty(descriptor):
            with suppress(OSError):
                size = fcntl.ioctl(descriptor, termios.TIOCGWINSZ, bytes(_WINDOW))
                fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
            return


class Relay:
    """Carries bytes between the user's streams and the command's terminal until the command has ended."""

    def __init__(
        self,
        sandbox: BlockingSandbox,
        process: BlockingProcess,
        user: UserTerminal,
        timeout: float | None,
        forwarding: running.Forwarding,
        own: tuple[int, ...],
    ) -> None:
        """Begin with nothing carried; ``own`` are the streams of ours that the command's terminal stands for."""
        self._forwarding = forwarding
        self._sandbox = sandbox
        self._process = process
        self._terminal = process.terminal
        self._user = user
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._unsent = bytearray()
        self._unshown = memoryview(b"")
        self._screen = _unhindered(next((number for number in (1, 2) if number in own), 0))
        self._listening = _is_readable(user.descriptor)
        #: Whether the keys are for the command: with a stream of another kind they are only if it wants some.
        self._wants_keys = own == _STREAMS
        self._open = True
        self._closing: float | None = None
        self._deserted = False
        self._is_over = False
        self._at_line_start = True
        self._look_again = time.monotonic() + _BEHIND
        os.set_blocking(self._terminal, False)

    def run(self) -> Result:
        """Carry until the end; return how the command ended."""
        before = signal.signal(signal.SIGWINCH, self._resize)
        self._resize()  # it may have changed meanwhile
        try:
            while (result := self._process.poll()) is None:
                self._heed(self._process.running.news)
                self._carry()
            self._finish()
        finally:
            signal.signal(signal.SIGWINCH, before)
            os.close(self._screen)
        return result

    def _finish(self) -> None:
        """Show the last words until nothing is left; if the command was ended, do not wait long for the screen."""
        while self._to_user() or self._unshown:
            if not self._unshown:
                continue
            poller = select.poll()
            poller.register(self._screen, select.POLLOUT)
            poller.register(self._forwarding.wake, select.POLLIN)
            if not poller.poll(milliseconds(_LAST_WORDS if self._is_over or self._forwarding.is_urged else None)):
                return
            self._forwarding.drain()
            self._show()

    def step_back(self) -> bool:
        """Give the terminal back, for somebody stops us; ``False`` if the command is to stop first, as by Ctrl-Z."""
        self._user.restore()
        if not self._wants_keys:
            self._process.signal(signal.SIGTSTP)
        return self._wants_keys

    def come_back(self) -> None:
        """Somebody has continued us: in front the terminal is ours again, whatever it was set to meanwhile."""
        if self._wants_keys:
            self._user.take()
        self._resize()

    def _heed(self, news: list[str]) -> None:
        """Take the terminal once the command has started: until then Ctrl-C is for us, who can do something about it.

        The longest that we wait for that is the time in which we look again.
        """
        while news:
            if news.pop(0) == "started":
                self._wants_keys = True
                self._user.take()
            else:
                self._suspend()

    def _suspend(self) -> None:
        """Stop with our whole job, because the command was stopped; continue it as soon as somebody continues us.

        Where nobody is there who could continue us, the kernel does not stop us, and the command goes on at once.
        """
        for _ in range(_MOST_PIECES):  # another process may still talk, without end
            if not self._to_user():
                break
        self._user.restore()
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)
        self.come_back()
        self._process.signal(signal.SIGCONT)

    def _carry(self) -> None:
        """Wait for something to happen, and do what follows from it."""
        waits = [self._left(), self._closed_soon(), self._behind(), self._sandbox.session.look()]
        poller = select.poll()
        poller.register(self._sandbox.session.fileno(), select.POLLIN)
        poller.register(self._forwarding.wake, select.POLLIN)
        if self._open and not self._deserted:
            wanted = (0 if self._unshown else select.POLLIN) | (select.POLLOUT if self._unsent else 0)
            poller.register(self._terminal, wanted)
        if self._unshown:
            poller.register(self._screen, select.POLLOUT)
        if self._open and self._listening and self._user.is_taken and len(self._unsent) < _PIECE:
            poller.register(self._user.descriptor, select.POLLIN)
        waits.append(_DESERTED if self._deserted else None)
        self._deserted = False
        events = poller.poll(milliseconds(*waits))
        actions: dict[int, Callable[[int], object]] = {
            self._user.descriptor: self._from_user,
            self._terminal: self._attend,
            self._screen: lambda _: self._show(),
            self._forwarding.wake: lambda _: self._forwarding.drain(),
        }
        for descriptor, event in events:
            if descriptor in actions:
                actions[descriptor](event)

    def _behind(self) -> float | None:
        """Return the seconds until we look again whether we are in front: a shell's ``fg`` does not always tell."""
        if self._user.is_taken or not self._wants_keys:
            return None
        left = self._look_again - time.monotonic()
        if left > 0:
            return left
        self._look_again = time.monotonic() + _BEHIND
        self.come_back()
        return _BEHIND

    def _left(self) -> float | None:
        """Return the seconds to wait; end the command if its time is over."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            self._deadline = None
            self._is_over = True
            self._sandbox.session.end(self._process.running, Limit.TIME)
            return None
        return left

    def _attend(self, event: int) -> None:
        if not self._open:
            return
        if event & select.POLLOUT:
            self._to_command()
        if not event & ~select.POLLOUT:
            return
        shown = 0
        while shown < _MOST_PIECES and self._to_user():
            shown += 1
        if not shown and event & select.POLLHUP:
            # Nobody has the terminal open now, which is no end: a program may open it again by its name.
            self._deserted = True

    def _from_user(self, _event: int) -> None:
        """Take what the user types; where the input has ended, end the command's line input too."""
        if not (self._open and self._user.is_taken):
            return  # a signal came in between
        try:
            piece = os.read(self._user.descriptor, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if piece:
            self._at_line_start = piece.endswith(b"\n")
            self._unsent += piece
        elif self._user.is_terminal:
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
        if not self._open or self._unshown:
            return False
        try:
            piece = os.read(self._terminal, _PIECE)
        except OSError:
            return False
        if piece and not self._user.is_taken and self._wants_keys:
            self._user.take()  # before anybody answers what it asks
        self._unshown = memoryview(piece)
        self._show()
        return bool(piece)

    def _show(self) -> None:
        """Write to the screen what it takes now."""
        try:
            while self._unshown:
                self._unshown = self._unshown[os.write(self._screen, self._unshown) :]
        except BlockingIOError:
            return
        except OSError:
            self._unshown = memoryview(b"")
            self._hang_up()

    def _hang_up(self) -> None:
        """Tell the command that its terminal goes, and soon close it, which tells all that runs on it."""
        if self._open:
            self._open = False
            self._closing = time.monotonic() + _GRACE
            for number in (signal.SIGHUP, signal.SIGCONT):
                self._process.signal(number)

    def _closed_soon(self) -> float | None:
        """Return the seconds until the command's terminal is to be closed; close it if that is now."""
        left = None if self._closing is None else self._closing - time.monotonic()
        if left is not None and left <= 0:
            self._closing = left = None
            self._process.close()
        return left

    def _resize(self, _number: int = 0, _frame: object = None) -> None:
        if self._open:
            _fit(self._terminal)


def _unhindered(screen: int) -> int:
    """Return a descriptor of the screen that does not wait, so that none of our duties does; else one that may.

    Others have the same terminal or pipe open and expect it to wait, so it is opened once more.
    """
    if os.isatty(screen) or stat.S_ISFIFO(os.fstat(screen).st_mode):
        with suppress(OSError):
            return os.open(f"/dev/fd/{screen}", os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    return os.dup(screen)
