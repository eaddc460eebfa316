"""The launcher: process 1 of the session's pid namespace, inside the jail, with its capabilities.

It keeps one first process ready (see ``first_process``), unless no next command is expected, hands each request to it,
and answers when the command and all that it started are gone. Copies of the jail's mounts are used again by later
commands, for copying them is what grows with the number of protected places.

A copy that a command had while others ran is *held*: one of those may have a descriptor of it. It stays alive, so that
it gets the covers that are laid again later, until no command runs; only when very many are held, the oldest serves
another command.

Rules: single-threaded and small, for it forks once per command; everything is imported and opened
before the jail is entered; not dumpable and in no command's pid namespace, so nothing inside can see
it; it never waits for an owner that does not listen, or both could wait for ever; when it ends, for
whatever reason, the kernel ends the whole session with it.
"""

from __future__ import annotations

import gc
import os
import select
import stat
from errno import EMFILE

from stockade.platforms.linux import first_process, kernel, message, private_place, supervisor
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.cover_watch import CoverWatch
from stockade.platforms.linux.hearing import Hearing
from stockade.platforms.linux.reception import FIRST_NUMBER, Reception
from stockade.platforms.linux.supervised import Supervised

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stockade.platforms.linux.supervision import Supervision

_SIGKILL = 9
_STREAMS = 3
_IDLE_COPIES = 8
_MOST_HELD = 64
_MICROSECONDS = 1_000_000
_ALONE = b"another supervisor listens around this sandbox, and the kernel allows but one"


class _Job:
    """A first process, waiting or at work."""

    __slots__ = ("accompanied", "channel", "namespace", "number", "pid", "report", "serial")

    def __init__(self, serial: int, pid: int, channel: Channel, namespace: int | None) -> None:
        self.serial = serial
        self.pid = pid
        self.channel = channel
        self.namespace = namespace
        self.number: int | None = None
        self.report: Packet | None = None
        #: Another command ran at some moment of this one's life.
        self.accompanied = False


class Launcher:
    """The loop that serves one session."""

    def __init__(self, owner: Channel, setting: first_process.Setting, warden: Channel | None = None) -> None:
        """Take the channel to the owner of the session, and that to the warden if there is one."""
        self.owner = owner
        self.setting = setting
        self.poller = select.poll()
        self.poller.register(owner.fileno(), select.POLLIN)
        self.origin = os.pidfd_open(os.getpid())
        self.spare: _Job | None = None
        self.copies: list[int] = []
        self.covers = CoverWatch(setting.places)
        self.held: list[int] = []
        #: A cover was laid again. It is not locked in the copies of that time: they must not end before the commands.
        self.covered_again = False
        #: Commands of other jails run, or ran while this one was built: they may have descriptors of any copy.
        self.accompanied = not setting.reuse
        self.jobs: dict[int, _Job] = {}
        self.numbers: dict[int, _Job] = {}
        self.leaving: dict[int, _Job] = {}
        self.unsaid: list[Packet] = []
        self.reception = Reception(self)
        self.serial = 0
        self.supervisor: Supervised | None = None
        self.hearing = Hearing(warden, self)
        if warden is not None:
            self.poller.register(warden.fileno(), select.POLLIN)

    def prove(self, supervision: Supervision | None = None) -> Packet:
        """Make the first first-process and answer whether it could build its walls."""
        self.spare = self.fork()
        if supervision is not None:
            self.supervisor = self.fork_supervisor(supervision)
        packet = self.spare.channel.receive()
        if packet is not None and packet.kind == message.LISTENING:
            self.pass_listener(self.spare, packet)
            packet = self.spare.channel.receive()
        if packet is None:
            return message.Failed(0, b"first process").packet(0)
        if packet.kind == message.COPIED:
            (self.spare.namespace,) = packet.descriptors
            note = _ALONE if self.setting.supervised and self.supervisor is None else self.setting.note
            # After the fork: a command that could reach it would see the place without its covers.
            private = (private_place.copy(self.setting.private),) if self.setting.private else ()
            return message.Ready(note, self.setting.common, (os.dup(self.origin),), _terminals(), private).packet()
        return packet

    def fork_supervisor(self, supervision: Supervision) -> Supervised:
        """Make the one who answers what commands ask, and give up what only that one needs."""
        mine, theirs = Channel.pair()
        if os.fork() == 0:
            try:
                mine.close()
                os.close(self.origin)
                self.hearing.close()
                for job in self.jobs.values():
                    job.channel.close()
                supervisor.main(theirs, self.owner, supervision)
            finally:
                os._exit(0)
        theirs.close()
        supervision.close()
        self.poller.register(mine.fileno(), select.POLLIN)
        return Supervised(mine)

    def pass_listener(self, job: _Job, packet: Packet) -> None:
        """Pass the listener of a first process on; one that has none shows that no supervisor can be had."""
        if self.supervisor is None:
            packet.close()
        elif packet.descriptors:
            self.supervisor.take(job.serial, packet)
        else:
            self.poller.unregister(self.supervisor.fileno())
            self.supervisor.close()
            self.supervisor = None

    def serve(self) -> None:
        """Serve until the owner is gone."""
        while True:
            for descriptor, event in self.poller.poll(self.covers.patience(busy=bool(self.numbers))):
                if descriptor in self.jobs:
                    self.hear(self.jobs[descriptor])
                elif descriptor in self.leaving:
                    self.bury(descriptor)
                elif not self.hear_helpers(descriptor, event) and not self.hear_others(descriptor, event):
                    return
            if self.covers.is_due():
                self.look_at_covers()
            self.say_rest()
            if self.spare is None and self.setting.spare:
                # Who was just given a request may be waiting for this very processor, and forking takes a while.
                os.sched_yield()
                self.replace_spare()

    def hear_helpers(self, descriptor: int, event: int) -> bool:
        """Attend to the warden, the reception or the watch of the covers, if it is one of theirs."""
        if descriptor == self.hearing.fileno():
            self.hear_warden(gone=bool(event & select.POLLHUP))
        elif descriptor == self.covers.descriptor:
            if self.covers.hear():
                self.look_at_covers()
        else:
            return self.reception.serve(descriptor)
        return True

    def look_at_covers(self) -> None:
        """Lay covers again that fell with what the host replaced, and tell the owner; else end the commands."""
        begun = self.covers.begun
        relaid = self.covers.look()
        if not begun and self.covers.descriptor >= 0:
            self.poller.register(self.covers.descriptor, select.POLLIN)
        hopeless = relaid.hopeless[0] if relaid.hopeless and self.numbers else b""
        if hopeless:
            for job in self.numbers.values():
                os.kill(job.pid, _SIGKILL)
        if relaid.laid or relaid.missing or hopeless:
            self.covered_again = True
            self.say(message.Covered(relaid.missing, hopeless).packet())

    def hear_others(self, descriptor: int, event: int) -> bool:
        """Take what supervisor and owner say; ``False`` once one of them is gone, without whom nothing here works."""
        if self.supervisor is not None and descriptor == self.supervisor.fileno():
            # What there was may have been taken since, by a flush; so nothing is waited for.
            self.supervisor.hear()
            return not event & (select.POLLHUP | select.POLLERR)
        return not event & ~select.POLLOUT or self.obey()

    def hear_warden(self, *, gone: bool) -> None:
        """Take what was refused; a warden that was killed is missed by nobody."""
        self.hearing.hear()
        if gone:
            self.poller.unregister(self.hearing.fileno())
            self.hearing.close()

    def number_of(self, first_process: int) -> int:
        """Return the number of the command that a first process serves, 0 if there is none."""
        for job in (*self.jobs.values(), *self.leaving.values()):
            if job.pid == first_process and job.number is not None:
                return job.number
        return next(iter(self.numbers)) if not first_process and len(self.numbers) == 1 else 0

    def say(self, packet: Packet) -> None:
        """Answer the owner in order, as soon as it takes answers; closes the packet's descriptors.

        How a visitor's command ended is told the visitor.
        """
        if packet.number >= FIRST_NUMBER and packet.kind in {message.ENDED, message.FAILED}:
            self.reception.answer(packet)
            return
        self.unsaid.append(packet)
        self.say_rest()

    def say_rest(self) -> None:
        """Say what the owner was not ready to hear, and ask to be woken if it still is not."""
        while self.unsaid:
            try:
                self.owner.send(self.unsaid[0], wait=False)
            except BlockingIOError:
                self.poller.modify(self.owner.fileno(), select.POLLIN | select.POLLOUT)
                return
            self.unsaid.pop(0).close()
            if not self.unsaid:
                self.poller.modify(self.owner.fileno(), select.POLLIN)

    def replace_spare(self) -> None:
        """Have a first process ready again; if it cannot be had now, the next request will try."""
        try:
            self.spare = self.fork()
        except OSError:
            self.spare = None

    def fork(self) -> _Job:
        """Make a first process in a pid namespace of its own."""
        mine, theirs = Channel.pair()
        namespace = self.take_copy()
        try:
            kernel.unshare(kernel.CLONE_NEWPID)
            pid = self.fork_and_return(theirs, namespace)
        except OSError:
            mine.close()
            if namespace is not None:
                self.copies.append(namespace)
            raise
        finally:
            theirs.close()
        self.serial += 1
        job = _Job(self.serial, pid, mine, namespace)
        self.jobs[mine.fileno()] = job
        self.poller.register(mine.fileno(), select.POLLIN)
        return job

    def take_copy(self) -> int | None:
        """Return a copy of the mounts that may be used again, if there is one."""
        if self.copies:
            return self.copies.pop()
        return self.held.pop(0) if len(self.held) >= _MOST_HELD else None

    def fork_and_return(self, theirs: Channel, namespace: int | None) -> int:
        """Fork into the new pid namespace; later forks shall start from the old one again."""
        try:
            pid = os.fork()
            if pid == 0:
                try:
                    first_process.main(theirs, namespace, self.setting)
                finally:
                    os._exit(0)
            return pid
        finally:
            kernel.setns(self.origin, kernel.CLONE_NEWPID)

    def obey(self) -> bool:
        """Do what the owner asks; ``False`` once it is gone."""
        packet = self.owner.receive()
        if packet is None or packet.kind == message.CLOSE:
            return False
        if packet.kind == message.RUN:
            self.run(packet)
        elif packet.kind == message.RETIRE:
            self.accompanied = True
        elif self.reception.obey(packet):
            pass
        elif (job := self.numbers.get(packet.number)) is not None:
            self.disturb(job, packet)
        packet.close()
        return True

    def disturb(self, job: _Job, packet: Packet) -> None:
        """End a command, or have its first process read which signal to pass on."""
        if packet.kind == message.END:
            os.kill(job.pid, _SIGKILL)
            return
        try:
            job.channel.send(packet)
        except OSError:
            return  # it was killed
        os.kill(job.pid, first_process.WAKE)

    def run(self, packet: Packet) -> None:
        """Hand a request to the spare first process, or to a new one."""
        if len(packet.descriptors) < _STREAMS:
            # The kernel drops descriptors for which this process has no room.
            self.say(message.Failed(EMFILE, b"streams").packet(packet.number))
            return
        try:
            if self.spare is None or not self.hand(self.spare, packet):
                self.hand(self.fork(), packet, last=True)
        except OSError as error:
            self.say(message.Failed.of(b"fork", error).packet(packet.number))

    def hand(self, job: _Job, packet: Packet, *, last: bool = False) -> bool:
        """Hand a request to a first process; if that was killed meanwhile, tell so, or raise if it is the last."""
        if job is self.spare:
            self.spare = None
        try:
            if self.supervisor is not None:
                self.supervisor.assign(job.serial, packet.number)
            job.channel.send(packet)
        except OSError:
            os.kill(job.pid, _SIGKILL)
            if last:
                raise
            return False
        job.number = packet.number
        # A stream that is a socket can keep descriptors in its queue, until whoever has the other end reads them.
        job.accompanied = any(stat.S_ISSOCK(os.fstat(stream).st_mode) for stream in packet.descriptors[:_STREAMS])
        if self.numbers:
            for each in (job, *self.numbers.values()):
                each.accompanied = True
        self.numbers[packet.number] = job
        return True

    def hear(self, job: _Job) -> None:
        """Take what a first process says; a command that left nothing behind is answered at once."""
        packet = job.channel.receive()
        if packet is None:
            self.lose(job)
        elif packet.kind == message.COPIED:
            (job.namespace,) = packet.descriptors
        elif packet.kind == message.LISTENING:
            self.pass_listener(job, packet)
        elif job.number is None:
            job.report = packet
        elif packet.kind in {message.STARTED, message.STOPPED}:
            self.say(packet)
        elif packet.kind == message.ENDED and not message.Ended.read(packet).alone:
            job.report = packet
        else:
            self.answer(job, packet)

    def answer(self, job: _Job, packet: Packet) -> None:
        """Tell the owner how it ended, once."""
        if job.number is not None:
            self.hearing.settle(job.pid)
            self.numbers.pop(job.number, None)
            for refused in self.supervisor.flush(job.number) if self.supervisor is not None else ():
                self.say(refused)
            self.say(Packet(packet.kind, job.number, packet.body))
            job.number = None

    def lose(self, job: _Job) -> None:
        """Its end of the channel is closed: bury it as soon as it and all its processes are dead."""
        descriptor = job.channel.fileno()
        self.poller.unregister(descriptor)
        del self.jobs[descriptor]
        job.channel.close()
        if self.spare is job:
            self.spare = None
        watched = os.pidfd_open(job.pid)
        self.leaving[watched] = job
        self.poller.register(watched, select.POLLIN)

    def bury(self, watched: int) -> None:
        """Reap a first process: now nothing of its command is alive."""
        job = self.leaving.pop(watched)
        self.poller.unregister(watched)
        os.close(watched)
        _, status, usage = os.wait4(job.pid, 0)
        times = (int(usage.ru_utime * _MICROSECONDS), int(usage.ru_stime * _MICROSECONDS))
        self.answer(job, job.report or _unreported(status, times, usage.ru_maxrss))
        if job.namespace is None:
            return
        if job.accompanied or self.accompanied or self.covered_again:
            self.held.append(job.namespace)
        elif len(self.copies) < _IDLE_COPIES:
            self.copies.append(job.namespace)
        else:
            os.close(job.namespace)
        self.release()

    def release(self) -> None:
        """Let held copies go once no command runs that could have a descriptor of one."""
        if self.numbers or self.accompanied or self.covered_again:
            return
        while self.held:
            os.close(self.held.pop())


def _unreported(status: int, times: tuple[int, int], memory: int) -> Packet:
    """Answer for a first process that said nothing: killed, with its command; or failed, and then nothing is known."""
    if os.WIFSIGNALED(status):
        return message.Ended(status, *times, memory).packet(0)
    return message.Failed(0, b"first process").packet(0)


def _terminals() -> tuple[int, ...]:
    """Open what makes terminals in the jail's own ``/dev/pts``: the owner can make one of it, wherever it lives."""
    try:
        return (os.open(b"/dev/pts/ptmx", os.O_PATH | os.O_CLOEXEC),)
    except OSError:
        return ()


def main(
    owner: Channel,
    keeper: Channel,
    setting: first_process.Setting,
    warden: Channel | None = None,
    supervision: Supervision | None = None,
) -> None:
    """Serve a session from inside its finished jail; the caller ends the process afterwards."""
    kernel.limit_bounding_set(setting.capabilities)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    if keeper.receive() is None:
        return
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    keeper.send(Packet(message.READY, 0))
    if keeper.receive() is None:
        return
    keeper.close()
    gc.disable()
    gc.freeze()
    launcher = Launcher(owner, setting, warden)
    answer = launcher.prove(supervision)
    owner.send(answer)
    answer.close()
    if answer.kind == message.READY:
        launcher.serve()
