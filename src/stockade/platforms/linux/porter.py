"""The porter: hands out sockets that were made inside a session, for the ports that it publishes.

A connection from the host to a server in the session must be made by a socket of the session's network namespace.
The proxy may not enter that, so this process does, and does nothing else. Started by the owner as ``python -I -S`` with
one ``SOCK_SEQPACKET`` socket as descriptor 3; the owner's first packet brings the namespace, the answer says whether
it could be entered. Then the process with the other end asks, with one packet of one byte each: ``4`` for IPv4 and
``6`` for IPv6. The answer is the same byte with a non-blocking TCP socket (``SCM_RIGHTS``), or ``!`` and the kernel's
error number in decimal, without one.

Rules: inside it has no capability, cannot be traced, and holds nothing of the host but its end of the socket; it ends
when nobody holds the other. Source of truth: setns(2), user_namespaces(7), unix(7).
"""

from __future__ import annotations

import os
from _socket import (
    AF_INET,
    AF_INET6,
    AF_UNIX,
    SCM_RIGHTS,
    SOCK_CLOEXEC,
    SOCK_NONBLOCK,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)
from contextlib import suppress
from errno import EINVAL, ETOOMANYREFS

from stockade import passing
from stockade.platforms.linux import kernel
from stockade.platforms.linux.channel import Channel, Packet

IPV4 = b"4"
IPV6 = b"6"
REFUSED = b"!"

_FAMILIES = {IPV4: AF_INET, IPV6: AF_INET6}
_CHANNEL = 3
_REQUEST_BYTES = 16  # one is meant; more is no request
_ENTER = b"e"
_INSIDE = b"i"
_FAILED = b"f"
_START = """\
import os, sys
sys.path.append(sys.argv[1])
from stockade.platforms.linux.porter import main
main()
os._exit(0)
"""
_HINT = "run `stockade doctor`"


class Porter:
    """The owner's side: one porter, from its start to its end."""

    def __init__(self, pid: int, process: int, channel: Channel) -> None:
        """Take over a process that was just started, and its pidfd; see ``start``."""
        self.pid = pid
        self._process = process
        self._channel: Channel | None = channel

    @classmethod
    def start(cls, shared: tuple[int, ...]) -> Porter:
        """Start one for the session with these namespaces (``session.descriptors``), which stay the caller's."""
        pid, channel = _spawn()
        try:
            channel.send(Packet(_ENTER, 0, b"", shared[:1]))
            return cls(pid, os.pidfd_open(pid), channel)
        except OSError as error:
            channel.close()
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            raise _unavailable(error) from error

    def take(self) -> int:
        """Return the end of the socket by which sockets are asked for: the caller's from now on. To be called once.

        Waits until the porter is inside; raises ``UnavailableError`` if it cannot be.
        """
        from stockade.errors import UnavailableError

        if self._channel is None:
            message = "the porter's socket was given away already"
            raise UnavailableError(message, "start another porter")
        packet = self._channel.receive()
        if packet is None or packet.kind != _INSIDE:
            self.close()
            raise _unavailable(None if packet is None else OSError(packet.number, os.strerror(packet.number)))
        descriptor = os.dup(self._channel.fileno())
        self._channel.close()
        self._channel = None
        return descriptor

    def close(self) -> None:
        """End it and wait for that; may be called again. Sockets that it gave out live on."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process < 0:
            return
        from signal import SIGKILL, pidfd_send_signal

        with suppress(ProcessLookupError, ChildProcessError):  # the program may reap its children by itself
            pidfd_send_signal(self._process, SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._process)
        self._process = -1


def _spawn() -> tuple[int, Channel]:
    import sys

    from stockade.platforms.linux.keeper_process import package_root

    words = [sys.executable, "-I", "-S", "-c", _START, package_root()]
    mine, theirs = Channel.pair()
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        streams = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in range(3)]
        actions = [*streams, (os.POSIX_SPAWN_DUP2, theirs.fileno(), _CHANNEL)]
        pid = os.posix_spawn(words[0], words, {}, file_actions=actions, setsid=True)
    except OSError as error:
        mine.close()
        raise _unavailable(error) from error
    finally:
        theirs.close()
        os.close(nothing)
    return pid, mine


def _unavailable(error: OSError | None) -> Exception:
    from stockade.errors import UnavailableError

    reason = "it ended" if error is None else error.strerror
    return UnavailableError(
        f"ports cannot be published: the helper cannot enter the sandbox's network: {reason}",
        passing.hint(error, _HINT),
    )


def main() -> None:
    """Serve until nobody is left to ask; the porter's own side."""
    kernel.close_from(_CHANNEL + 1)
    channel = Channel.adopt(_CHANNEL)
    packet = channel.receive()
    if packet is None or packet.kind != _ENTER:
        return
    try:
        _enter(*packet.descriptors)
    except (OSError, TypeError) as error:
        channel.send(Packet(_FAILED, getattr(error, "errno", None) or EINVAL))
        return
    packet.close()
    channel.send(Packet(_INSIDE, 0))
    try:
        _serve(socket(AF_UNIX, SOCK_SEQPACKET, 0, channel.fileno()))
    except ConnectionError:
        return  # whoever asked is gone


def _enter(net: int) -> None:
    """Become a process of the session without any rights in it, and none outside."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.enter_owner(net)
    kernel.setns(net, kernel.CLONE_NEWNET)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.limit_bounding_set(0)
    kernel.limit_capabilities(0)
    # Entering a user namespace sets this to what the machine has for programs with changed rights (fs.suid_dumpable).
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)


def _serve(end: socket) -> None:
    while request := end.recv(_REQUEST_BYTES):
        try:
            made = socket(_family(request), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)
        except OSError as error:
            end.send(REFUSED + b"%d" % (error.errno or EINVAL))
            continue
        rights = made.fileno().to_bytes(4, "little")
        _answer(end, request, [(SOL_SOCKET, SCM_RIGHTS, rights)])
        made.close()


def _answer(end: socket, request: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
    try:
        end.sendmsg([request], ancillary)
    except OSError as error:
        if error.errno != ETOOMANYREFS:
            raise
        passing.send_again(end, request, ancillary)


def _family(request: bytes) -> int:
    if request not in _FAMILIES:
        raise OSError(EINVAL, "no such family")
    return _FAMILIES[request]
