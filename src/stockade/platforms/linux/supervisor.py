"""The supervisor of a jail: it is asked about every ``connect`` and every change of a file, and answers.

Forked by the launcher, in whose pid namespace it is process 2 and with which it dies. It sees the commands' processes
from above, is seen by none, and has a debugger's right to look into them. Of changes it only takes note: the mounts
decide (see ``onlooker``). What becomes of a ``connect`` it decides and does itself (see ``connection``). If it is
killed, the kernel answers ``ENOSYS`` to whatever would have been asked, and the launcher ends the jail.

Rules: everything is imported and opened before the jail is entered; one thread; it never waits for anybody but its
callers; a call is answered only after its refusal is on its way, so that no command ends before its last report; an
error in here lets a change go on to the mounts, and refuses a connection. A command whose calls take long gets a
process of its own (see ``deputy``).
Source of truth: seccomp_unotify(2), pid_namespaces(7).
"""

from __future__ import annotations

import gc
import os
import resource
import select
from _signal import SIG_IGN, SIGCHLD, signal  # type: ignore[import-not-found] # signal costs 3 ms
from errno import EACCES, ELOOP, EPERM
from time import monotonic

from stockade.platforms.linux import deputy, kernel, message, notification
from stockade.platforms.linux.calls import BIND, CONNECT, CREATE, SOCKET, UNIX_CONNECT, changes, chmods
from stockade.platforms.linux.channel import Channel
from stockade.platforms.linux.connection import Attempt, Connections, path_of, room_for
from stockade.platforms.linux.deputy import Deputy
from stockade.platforms.linux.directory_mode import SETGID, change
from stockade.platforms.linux.memory_reader import read_bytes
from stockade.platforms.linux.notification import let_go, receive
from stockade.platforms.linux.onlooker import Onlooker
from stockade.platforms.linux.quick import quick
from stockade.platforms.linux.refusals import Refusals
from stockade.platforms.linux.syscalls import arch_of
from stockade.platforms.linux.unix_diag import Listeners, in_turn
from stockade.platforms.linux.walk import DearPathError
from stockade.suppress import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stockade.platforms.linux.channel import Packet
    from stockade.platforms.linux.notification import Notification
    from stockade.platforms.linux.supervision import Supervision

#: The place of a datagram socket: it has none, which is why it is refused.
DATAGRAM = b"datagram"
_CAP_SYS_PTRACE = 19
_UNIX = 1
_LONGEST_ADDRESS = 128
_LOOK_AGAIN = 5
_LONGEST_LOOK = 0.001
_TELL_AGAIN = 1000
_MILLISECONDS = 1000
_PROCESSES = b"/proc"


class Supervisor:
    """The loop."""

    def __init__(
        self, launcher: Channel, owner: Channel, supervision: Supervision, *, follows_links: bool = False
    ) -> None:
        """Take the channels to the launcher, and past it to the owner; where links are followed, nothing is quick."""
        self.launcher = launcher
        self.owner = owner
        self.supervision = supervision
        self.onlooker = Onlooker(supervision.view.root, supervision.absent, supervision.capabilities)
        self.own = Listeners()
        host = supervision.view.listeners
        self.connections = Connections(
            supervision.is_listed,
            in_turn(self.own.devices),
            in_turn(host.names if supervision.denied else host.devices),
            room_for(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
            supervision.denied,
            (supervision.view.root, supervision.private),
        )
        self.wary: set[int] = set()
        self.deputies: dict[int, Deputy] = {}
        self.is_deputy = False
        self.is_over = False
        arch = arch_of(os.uname().machine)
        numbers = arch.numbers()
        self.changes = changes(arch)
        self.chmods = chmods(arch)
        self.quick = quick(self.changes, self.onlooker.absent_names)
        if follows_links:
            self.quick = dict.fromkeys(self.changes, _nothing)
        self.listings = supervision.listings
        self.bind, self.connect, self.socket = (numbers[name] for name in (BIND, CONNECT, SOCKET))
        self.refusals = Refusals()
        self.listen_to(launcher, _poller_for(launcher))
        self.listeners: dict[int, int] = {}
        self.commands: dict[int, int] = {}
        self.dirty = False
        self.told = 0.0

    def listen_to(self, launcher: Channel, poller: select.epoll) -> None:
        """Begin to wait for what the launcher says, and for nothing else yet."""
        self.launcher = launcher
        self.poller = poller
        # A poll, because the kernel drops the wish to be woken on the caller's processor on its way through an epoll.
        self.ears = select.poll()
        self.ears.register(self.poller.fileno(), select.POLLIN)

    def serve(self) -> None:
        """Serve until the launcher is gone."""
        poll, listeners, hear, waiting = self.ears.poll, self.listeners, self.hear, self.connections.waiting
        wary, now, long = self.wary, monotonic, deputy.LONG
        while not self.is_over:
            for descriptor, event in poll(self.patience() if waiting or self.dirty else None):
                if descriptor not in listeners:
                    if not self.hear_others():
                        return
                elif event & 1:  # POLLIN; a look into the module would cost as much as all else here
                    if descriptor in wary:
                        self.hear_warily(descriptor)
                        continue
                    began = now()
                    hear(descriptor)
                    if now() - began > long:
                        wary.add(descriptor)
                else:
                    self.drop(descriptor)
            if waiting or self.dirty or self.is_deputy:
                self.look_around()

    def look_around(self) -> None:
        """Do what nobody asks for: look at connections that wait, tell numbers; a deputy ends that has nothing left."""
        if self.connections.waiting:
            self.look_at_due()
        if self.dirty and (monotonic() - self.told) * _MILLISECONDS > _TELL_AGAIN:
            self.tell_numbers()
        if self.is_deputy and not self.listeners and not self.dirty and not self.is_over:
            self.say_flushed(0)
            self.is_over = True

    def hear_warily(self, listener: int) -> None:
        """Take a call of a command that has made this process wait before; the second time, leave it to a deputy."""
        if deputy.slept_long(self.hear, listener) and listener in self.listeners and not self.is_deputy:
            self.depute(listener)

    def depute(self, listener: int) -> None:
        """Have a command served by a process of its own from now on; if there can be none, go on serving it."""
        number = self.commands.get(self.listeners[listener])
        if number is None:
            return  # a first process on its way
        # Before there is a deputy that could have anything to say: what it says comes later than by itself.
        self.launcher.send(message.empty(message.UNSAID))
        ends: tuple[Channel, ...] = ()
        try:
            # Whatever may be refused is had before there are two of us.
            ends = mine, theirs = Channel.pair()
            self.poller.register(mine.fileno(), select.EPOLLIN)
            poller = _poller_for(theirs)
            child = os.fork()
        except OSError:
            for end in ends:
                end.close()
            return
        if child == 0:
            try:
                mine.close()
                self.poller.close()
                self.launcher.close()
                self.listen_to(theirs, poller)
                self.become_deputy(listener)
            finally:
                os._exit(0)
        poller.close()
        theirs.close()
        self.deputies[mine.fileno()] = Deputy(number, mine)
        for descriptor in self.connections.of(listener):
            self.forget(descriptor)
        self.refusals.end(number)
        self.dirty = self.dirty and self.refusals.is_unsaid()
        self.drop(listener)

    def become_deputy(self, listener: int) -> None:
        """Keep what concerns one command, in this fork, and serve it."""
        self.is_deputy = True
        while self.deputies:
            self.deputies.popitem()[1].channel.close()
        for other in self.listeners.keys() - {listener}:
            del self.listeners[other]
            os.close(other)
        number = self.commands[self.listeners[listener]]
        self.refusals.keep(number)
        self.dirty = self.refusals.is_unsaid()
        self.onlooker = Onlooker(self.supervision.view.root, self.supervision.absent, self.supervision.capabilities)
        self.connections.keep(listener)
        for attempt in self.connections.waiting.values():
            self.watch(attempt)
        self.ears.register(listener, select.POLLIN)
        self.serve()

    def hear_deputy(self, descriptor: int) -> bool:
        """Pass on what a deputy says; ``False`` if it was killed: nobody answers its command any more."""
        one = self.deputies[descriptor]
        packet = one.channel.receive()
        if packet is None:
            return False
        if packet.kind == message.REFUSED:
            self.launcher.send(packet)
        elif packet.kind == message.FLUSHED:
            del self.deputies[descriptor]
            self.poller.unregister(descriptor)
            one.channel.close()
            if one.asked:
                self.say_flushed(one.number)
        return True

    def look_at_due(self) -> None:
        """Look at some of those who wait, for a moment; who was not looked at is the first next time."""
        began = monotonic()
        for descriptor in self.connections.due(began):
            self.look_again(descriptor)
            if monotonic() - began > _LONGEST_LOOK:
                return

    def hear_others(self) -> bool:
        """Take what is not asked by commands; ``False`` once the launcher is gone."""
        for descriptor, _ in self.poller.poll(0):
            if descriptor in self.connections.waiting:
                self.look_again(descriptor)
            elif descriptor in self.deputies:
                if not self.hear_deputy(descriptor):
                    return False
            elif descriptor == self.launcher.fileno() and not self.obey():
                return False
        return True

    def patience(self) -> int | None:
        """Return how many milliseconds nothing may happen before something must be looked at."""
        if self.connections.waiting:
            return _LOOK_AGAIN
        return _TELL_AGAIN if self.dirty else None

    def obey(self) -> bool:
        """Do what the launcher says; ``False`` once it is gone."""
        packet = self.launcher.receive()
        if packet is None:
            return False
        if packet.kind == message.LISTENING:
            for listener in packet.descriptors:
                self.listeners[listener] = packet.number
                notification.hurry(listener)
                self.ears.register(listener, select.POLLIN)
        elif packet.kind == message.ASSIGNED:
            self.commands[packet.number] = message.read_assigned(packet)
        elif packet.kind == message.FLUSH:
            self.flush(packet)
        return True

    def flush(self, packet: Packet) -> None:
        """Say the last numbers of a command to the launcher, who says them to the owner."""
        for one in self.deputies.values():
            if one.number == packet.number:
                one.asked = True
                with suppress(OSError):  # it has said its last word already, which is heard next
                    one.channel.send(packet)
                return
        for key, times in self.refusals.end(packet.number):
            self.launcher.send(message.Refused(*key, times).packet(packet.number))
        self.dirty = self.dirty and self.refusals.is_unsaid()
        self.say_flushed(packet.number)
        self.is_over = self.is_deputy

    def say_flushed(self, number: int) -> None:
        """Say that this was all of a command; as long as there is a deputy, the launcher is to ask for every one."""
        self.launcher.send(message.flushed_packet(number, more=self.dirty or bool(self.deputies)))

    def drop(self, listener: int) -> None:
        """Forget a listener under which nobody lives any more."""
        self.ears.unregister(listener)
        self.wary.discard(listener)
        command = self.commands.pop(self.listeners.pop(listener), None)
        if command is not None:
            self.refusals.forget(command)
        os.close(listener)

    def hear(self, listener: int) -> None:
        """Take one call, and answer it."""
        try:
            asked = receive(listener)
        except OSError:
            return  # its caller is gone
        possible = self.quick.get(asked[3])
        if possible is None:
            self.hear_rest(listener, asked)
            return
        chmod = self.chmods.get(asked[3])
        if chmod is not None and asked[notification.ARGUMENTS + chmod[1]] & SETGID:
            self.change_mode(listener, asked)
            return
        try:
            unrefused = possible(asked[1], asked)
        except OSError:
            unrefused = False
        if unrefused:
            let_go(listener, asked[0])
        else:
            self.observe(listener, asked)

    def hear_rest(self, listener: int, asked: Notification) -> None:
        """Answer what is not only looked at."""
        number = asked[notification.NUMBER]
        if number == self.connect:
            self.decide(listener, asked)
        elif number == self.socket:
            self.report(listener, asked, (UNIX_CONNECT, DATAGRAM))
            notification.answer(listener, asked[0], EPERM)
        elif self.listings is not None and number in self.listings.calls:
            self.listings.answer(listener, asked)
        else:
            self.observe(listener, asked)

    def observe(self, listener: int, asked: Notification) -> None:
        """Note what the mounts will refuse, and let the kernel go on, unless that would take its time for long."""
        key = None
        try:
            key = self.refused(asked)
        except DearPathError:
            notification.answer(listener, asked[0], ELOOP)
            return
        except (OSError, ValueError, LookupError):
            key = None  # the caller is gone, or its path cannot be read: then the kernel cannot either
        if key is not None:
            self.report(listener, asked, key)
        error, self.onlooker.error = self.onlooker.error, 0
        if error:
            notification.answer(listener, asked[0], error)
        else:
            notification.let_go(listener, asked[0])

    def change_mode(self, listener: int, asked: Notification) -> None:
        """Set a directory's mode for the caller, or refuse: with the setgid bit, nothing is let go."""
        identity, thread = asked[notification.ID], asked[notification.THREAD]
        use, index = self.chmods[asked[notification.NUMBER]]
        arguments = asked[notification.ARGUMENTS :]
        try:
            key = self.refused(asked)
            if key is not None:
                self.report(listener, asked, key)
            error = change(thread, use, arguments[index], arguments, lambda: notification.is_valid(listener, identity))
        except OSError as failure:
            error = failure.errno or EPERM
        except (ValueError, LookupError):
            error = EPERM
        notification.answer(listener, identity, error)

    def refused(self, asked: Notification) -> tuple[bytes, bytes] | None:
        """Return what the mounts will refuse of a call."""
        thread, number = asked[notification.THREAD], asked[notification.NUMBER]
        uses = self.changes.get(number)
        if uses is not None:
            return self.onlooker.refusal(uses, thread, asked[notification.ARGUMENTS :])
        if number != self.bind:
            return None
        _, address, length, *_ = asked[notification.ARGUMENTS :]
        if not 0 < length <= _LONGEST_ADDRESS:
            return None
        path = path_of(_UNIX, read_bytes(thread, address, length))
        return self.onlooker.walked(CREATE, thread, b"cwd", path) if path else None

    def decide(self, listener: int, asked: Notification) -> None:
        """Connect for the caller, or refuse."""
        identity, thread = asked[notification.ID], asked[notification.THREAD]
        arguments = asked[notification.ARGUMENTS :]
        try:
            attempt, error = self.connections.attempt(listener, identity, thread, arguments)
        except DearPathError:
            notification.answer(listener, identity, ELOOP)
            return
        except (OSError, ValueError, LookupError):
            notification.answer(listener, identity, EACCES)
            return
        if attempt.refused:
            self.report(listener, asked, (UNIX_CONNECT, attempt.refused))
        if error is not None:
            self.answer(attempt, error)
        else:
            self.watch(attempt)

    def watch(self, attempt: Attempt) -> None:
        """Have the kernel tell when a connection stands; of unix sockets it does not."""
        if attempt.sock is not None and attempt.domain != _UNIX:
            # Without room for it (a user's share, which a command can use up) it is looked at in its turn.
            with suppress(OSError):
                self.poller.register(attempt.sock.fileno(), select.EPOLLOUT | select.EPOLLONESHOT)

    def forget(self, descriptor: int) -> None:
        """Look at a connection no longer."""
        attempt = self.connections.waiting[descriptor]
        self.connections.leave(descriptor)
        if attempt.domain != _UNIX:
            # The caller has the same socket open: closing ours would not end the watching of it.
            with suppress(OSError):
                self.poller.unregister(descriptor)
        attempt.close()

    def answer(self, attempt: Attempt, error: int) -> None:
        """Tell a caller how its connection went."""
        if not notification.answer(attempt.listener, attempt.identity, error) and not error:
            self.connections.remember(attempt)

    def look_again(self, descriptor: int) -> None:
        """Look at a connection that takes time."""
        attempt = self.connections.waiting.get(descriptor)
        if attempt is None:
            return
        known = attempt.listener in self.listeners
        valid = known and notification.is_valid(attempt.listener, attempt.identity)
        error = self.connections.look(attempt) if valid else EACCES
        if error is None:
            self.connections.turn(descriptor)
            return
        if valid:
            self.answer(attempt, error)
        self.forget(descriptor)

    def report(self, listener: int, asked: Notification, key: tuple[bytes, bytes]) -> None:
        """Tell the owner what is new, and count the rest."""
        command = self.commands.get(self.listeners[listener])
        if command is None:
            return  # a first process on its way
        if not self.refusals.add(command, asked[notification.THREAD], key):
            self.note()
            return
        try:
            self.owner.send(message.Refused(*key, 1).packet(command), wait=False)
        except OSError:
            self.refusals.give_back(command, key, 1)
            self.note()

    def note(self) -> None:
        """Let the launcher know that there are numbers to be asked for, before it says that a command has ended."""
        if not self.dirty:
            self.dirty = True
            self.launcher.send(message.empty(message.UNSAID))

    def tell_numbers(self) -> None:
        """Tell the owner how often, if it listens."""
        self.told = monotonic()
        for command in self.refusals.commands():
            for key, times in self.refusals.take(command):
                try:
                    self.owner.send(message.Refused(*key, times).packet(command), wait=False)
                except OSError:
                    self.refusals.give_back(command, key, times)
        self.dirty = self.refusals.is_unsaid()


def _poller_for(channel: Channel) -> select.epoll:
    """Return what waits for a channel."""
    poller = select.epoll()
    poller.register(channel.fileno(), select.EPOLLIN)
    return poller


def _nothing(_thread: int, _asked: Notification) -> bool:
    return False


def follow_no_links() -> bool:
    """Have the kernel follow no link in the mounts of this process, so that no path is dear; tell whether it can."""
    try:
        kernel.mount_setattr(kernel.AT_FDCWD, b"/", kernel.AT_RECURSIVE, kernel.MOUNT_ATTR_NOSYMFOLLOW)
    except OSError:
        return False  # before Linux 5.14
    return True


def main(launcher: Channel, owner: Channel, supervision: Supervision) -> None:
    """Serve a jail; the caller ends the process afterwards."""
    gc.disable()
    gc.freeze()
    signal(SIGCHLD, SIG_IGN)  # nobody waits for deputies
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.unshare(kernel.CLONE_NEWNS)
    processes = kernel.new_filesystem(b"proc")
    os.fchdir(processes)
    os.close(processes)
    nothing = kernel.new_filesystem(b"tmpfs", ((b"mode", b"0755"),), kernel.MOUNT_ATTR_RDONLY)
    kernel.move_mount(nothing, kernel.AT_FDCWD, _PROCESSES)
    os.close(nothing)
    supervisor = Supervisor(launcher, owner, supervision, follows_links=not follow_no_links())
    supervisor.connections.never_wait()
    if supervision.listings is not None:
        supervision.listings.open()
    kernel.limit_capabilities(supervision.capabilities | 1 << _CAP_SYS_PTRACE)
    supervisor.serve()
