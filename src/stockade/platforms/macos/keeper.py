"""The keeper of a session: a process that starts its commands, tells how they end, and ends them all when it is left.

Every command is the leader of a session and process group of its own. When it has ended, its group is ended, and what
left the group is looked for (``strays``). When the owner is gone, however it went, so is the other end of the socket:
then everything is ended, and the keeper with it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.platforms.macos import framing
from stockade.platforms.macos.start import become, problem_with
from stockade.platforms.macos.strays import end_strays
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Sequence

LINK: Final = 3
_NOT_FOUND, _NOT_RUN, _NO_ENTRY = 127, 126, 2
_MOST_DESCRIPTORS: Final = 4096


class Keeper:
    """What runs, and whom to tell."""

    def __init__(self, end: socket.socket) -> None:
        """Take the socket to the owner."""
        self._end = end
        self._commands: dict[int, dict[str, Any]] = {}

    def serve(self, wake: int) -> None:
        """Do what the owner says, until it is gone; ``wake`` becomes readable when a child has ended."""
        poller = select.poll()
        poller.register(wake, select.POLLIN)
        poller.register(self._end, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poller.poll()}
            if wake in ready:
                os.read(wake, 4096)
                self.reap()
            if self._end.fileno() in ready:
                heard = framing.receive(self._end)
                if heard is None:
                    break
                self.do(*heard)
        self.end_all()

    def do(self, order: dict[str, Any], descriptors: list[int]) -> None:
        """Do one thing."""
        if order["do"] == "launch":
            self._launch(order, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            return
        for pid, command in self._commands.items():
            if command["ticket"] == order["ticket"]:
                self._signal(pid, signal.SIGKILL if order["do"] == "end" else order["number"])
                if order["do"] == "end":
                    end_strays(command["mark"])

    def reap(self) -> None:
        """Tell of every command that has ended, after all that it started was ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            command = self._commands.pop(pid, None)
            if command is None:
                continue
            self._signal(pid, signal.SIGKILL)
            end_strays(command["mark"])
            scale = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere: getrusage(2)
            self._tell(
                ticket=command["ticket"],
                status=status,
                user_time=usage.ru_utime,
                system_time=usage.ru_stime,
                peak_memory=usage.ru_maxrss * scale,
            )

    def end_all(self) -> None:
        """End every command and everything that they started."""
        for pid in self._commands:
            self._signal(pid, signal.SIGKILL)
        for command in self._commands.values():
            end_strays(command["mark"])

    def _launch(self, order: dict[str, Any], streams: Sequence[int]) -> None:
        failure, error = problem_with(order)
        if failure:
            code = _NOT_FOUND if error == _NO_ENTRY else _NOT_RUN
            self._tell(ticket=order["ticket"], status=code << 8, failure=failure, error=error)
            return
        pid = os.fork()
        if not pid:
            _child(order, streams)
        self._commands[pid] = {"ticket": order["ticket"], "mark": order["mark"]}

    def _signal(self, pid: int, number: int) -> None:
        with suppress(OSError):
            os.killpg(pid, number)

    def _tell(self, **answer: object) -> None:
        with suppress(OSError):  # whoever is gone is noticed where something is received
            framing.send(self._end, answer)


def _child(order: dict[str, Any], streams: Sequence[int]) -> None:
    """Become the command; never returns."""
    try:
        os.setsid()
        for number, descriptor in enumerate(_clear_of_targets(streams)):
            os.dup2(descriptor, number, inheritable=True)
        if order["terminal"]:
            import fcntl
            import termios

            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        os.closerange(3, _MOST_DESCRIPTORS)
        for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        become(order)
    except BaseException as problem:  # noqa: BLE001 - nothing of the keeper's may go on in the child
        os.write(2, f"stockade: cannot start the command: {problem}\n".encode())
    finally:
        os._exit(_NOT_RUN)


def _clear_of_targets(streams: Sequence[int]) -> list[int]:
    """Return the streams at numbers that are not about to be overwritten."""
    return [stream if stream > len(streams) else os.dup(os.dup(os.dup(stream))) for stream in streams]


def main() -> None:
    """Be the keeper, with the socket to the owner at ``LINK``."""
    end = socket.socket(fileno=LINK)
    end.set_inheritable(False)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    Keeper(end).serve(wake)
