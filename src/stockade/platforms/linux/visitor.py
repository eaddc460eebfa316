"""The program that runs a wrapped command: it visits the session's launcher and brings its own streams.

``python -I -S -c ... ROOT DIRECTORY ORDER``: connects to the socket in DIRECTORY, names the ORDER, passes signals on,
and ends as the command did, with the status that a shell gives: 128 and the number for a signal, 126 and 127 for a
program that cannot be run. 125 and one line: the session is over.

Rules: small and quick, for it is started once per command; no command, environment or secret is in its arguments.
"""

from __future__ import annotations

import os
import select
import sys
from _signal import (  # type: ignore[import-not-found] # signal costs 3 ms: it makes enumerations
    SIGCONT,
    SIGHUP,
    SIGINT,
    SIGQUIT,
    SIGSTOP,
    SIGTERM,
    SIGTSTP,
    SIGUSR1,
    SIGUSR2,
    set_wakeup_fd,
    signal,
)
from _socket import AF_UNIX, SOCK_SEQPACKET, socket

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.standard_streams import hold_standard_streams

SOCKET = "door"
FAILURE = 125
_SIGNAL_BASE = 128
_MANY = 4096
_PASSED_ON = (SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT)
_OVER = "the session of this command is over"


def main() -> None:
    """Run the order that the arguments name; ends the process."""
    hold_standard_streams()
    directory, order = sys.argv[2:]
    try:
        status = visit(directory, int(order))
    except OSError:
        status = complain(_OVER, "start a new session and wrap the command again")
    os._exit(status)


def visit(directory: str, order: int) -> int:
    """Run an order and return its status."""
    channel = Channel(connect(directory))
    wake = pass_signals_on(channel)
    channel.send(Packet(message.VISIT, order, b"", (0, 1, 2)))
    packet = wait_for_answer(channel, wake)
    if packet is None:
        return complain(f"{_OVER}, and so the command was ended")
    if packet.kind == message.ENDED:
        code = os.waitstatus_to_exitcode(message.Ended.read(packet).status)
        return code if code >= 0 else _SIGNAL_BASE - code
    failed = message.Failed.read(packet)
    complain(f"the command could not be started: {failed.text()}")
    return failed.exit_status()


def connect(directory: str) -> socket:
    """Connect to the launcher; through the directory's descriptor, for its path may be too long for an address."""
    end = socket(AF_UNIX, SOCK_SEQPACKET, 0)
    place = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        end.connect(f"/proc/self/fd/{place}/{SOCKET}")
    finally:
        os.close(place)
    return end


def wait_for_answer(channel: Channel, wake: int) -> Packet | None:
    """Wait for the answer; signals are served meanwhile, even one that comes just before the waiting begins."""
    poller = select.poll()
    poller.register(channel.fileno(), select.POLLIN)
    poller.register(wake, select.POLLIN)
    while True:
        for descriptor, _ in poller.poll():
            if descriptor != wake:
                return channel.receive()
            os.read(wake, _MANY)


def pass_signals_on(channel: Channel) -> int:
    """Send every signal of ours to the command; stop with it. Return what becomes readable with each."""

    def send(number: int, _frame: object = None) -> None:
        try:
            channel.send(message.signal_packet(0, number))
        except OSError:
            return  # it has ended, and its answer is on the way

    def stop(_number: int, _frame: object) -> None:
        # The command is alone in its session, where the kernel ignores SIGTSTP.
        send(SIGSTOP)
        os.kill(os.getpid(), SIGSTOP)

    wake, waking = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in _PASSED_ON:
        signal(number, send)
    signal(SIGTSTP, stop)
    return wake


def complain(text: str, hint: str = "") -> int:
    """Say what is wrong, and return the status for that."""
    line = f"stockade: {text}\n" + (f"  hint: {hint}\n" if hint else "")
    try:
        os.write(2, line.encode(errors="backslashreplace"))
    except OSError:
        return FAILURE
    return FAILURE
