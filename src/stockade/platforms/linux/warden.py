"""The warden: answers whoever knocks at a hidden place with no, and tells the launcher who it was.

The keeper forks it beside the builder, if the plan hides anything and ``/dev/fuse`` can be opened. The builder
makes the file system of all masks (see ``mask``) and hands its open end over, for the kernel wants that opened in the
jail's own user namespace; from then on the warden alone has it. If the warden ends, by whatever signal, the kernel
refuses every access to the masks by itself (ENOTCONN), and what is shown again inside them stays.

Rules: it lives on the host and touches no path but below ``/proc``, so it can never wait for itself; it waits for
no command, and for the launcher only while that waits for it; it has no rights, is not dumpable, and dies with the
keeper. The first refusal of each command is told before the one who is refused can go on, so that no command's end
overtakes it; more of them are counted and told together. Source of truth: fuse(4).
"""

from __future__ import annotations

import gc
import os
import select
from errno import EAGAIN, EINTR, ENODEV, ENOENT
from time import monotonic, time

from stockade.platforms.linux import fuse, kernel, lineage, message, tree
from stockade.platforms.linux.channel import Channel, Packet, pack
from stockade.platforms.linux.lineage import Lineage
from stockade.platforms.linux.mask import Masks
from stockade.platforms.linux.tally import Tally, packed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stockade.platforms.linux.tree import Place

DEVICE = b"/dev/fuse"
_HARMLESS = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV | kernel.MOUNT_ATTR_RDONLY
_SIGKILL = 9
_CHANNEL = 3
_PROCESSES = 4
_STATUS = 4096
#: Refusals are told together at most this late, in seconds.
_DELAY = 0.05
#: What a supervisor asks on behalf of a command is asked by the command itself within this time.
_SOON = 0.05
_MOST_EXPECTED = 1000
# The kernel gave the request up meanwhile, or was interrupted before it had one.
_PASSING = frozenset({ENOENT, EINTR, EAGAIN})


def is_wanted(places: list[Place]) -> bool:
    """Tell whether a plan has anything to watch, and this system lets masks be made."""
    return any(place.operation == tree.GUARDED for place in places) and os.access(DEVICE, os.R_OK | os.W_OK)


def new_masks(warden: Channel) -> int:
    """Make the file system of all masks, detached, and hand its other end to the warden; -1 if there is no way."""
    try:
        end = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return -1
    try:
        masks = kernel.new_filesystem(b"fuse", options(end), _HARMLESS)
        warden.send(Packet(message.MASKS, 0, b"", (end,)))
    except OSError:
        return -1
    finally:
        # As long as a second process had it open, requests would wait for ever once the warden is dead.
        os.close(end)
    return masks


def options(end: int) -> tuple[tuple[bytes, bytes], ...]:
    """Return how the file system is to be made that speaks to an open ``/dev/fuse``."""
    return (
        (b"source", b"stockade"),
        (b"fd", b"%d" % end),
        (b"rootmode", b"40000"),
        (b"user_id", b"%d" % os.geteuid()),
        (b"group_id", b"%d" % os.getegid()),
        (b"allow_other", b""),
    )


def main(channel: Channel, places: list[Place]) -> None:
    """Serve until the launcher is gone; the caller ends the process afterwards."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    masks = _masks(places)
    os.chdir(b"/")
    processes = os.open(b"/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    channel, processes = _keep(channel, processes)
    kernel.limit_capabilities(0)
    packet = channel.receive()
    if packet is None or not packet.descriptors:
        return
    gc.disable()
    gc.freeze()
    _Warden(channel, packet.descriptors[0], masks, processes).serve()


def _masks(places: list[Place]) -> Masks:
    hidden = [(index, place.target) for index, place in enumerate(places) if place.operation == tree.GUARDED]
    guarded = {index for index, _ in hidden}
    shown = [place for place in places if place.outer in guarded]
    directories = {place.target for place in shown if tree.is_directory(place)}
    targets = [(place.outer, place.target) for place in shown]
    return Masks.over(hidden, targets, directories.__contains__, int(time()))


def _keep(channel: Channel, processes: int) -> tuple[Channel, int]:
    """Close everything but these two: the keeper holds locks and the way to the owner."""
    end, directory = os.dup(channel.fileno()), os.dup(processes)
    channel.close()
    os.dup2(end, _CHANNEL, inheritable=False)
    os.dup2(directory, _PROCESSES, inheritable=False)
    kernel.close_from(_PROCESSES + 1)
    return Channel.adopt(_CHANNEL), _PROCESSES


class _Warden:
    """The loop."""

    def __init__(self, channel: Channel, end: int, masks: Masks, processes: int) -> None:
        self.channel = channel
        self.end = end
        self.masks = masks
        self.processes = processes
        self.lineage = Lineage(self.status, self.status(os.getpid()), monotonic)
        self.tally = Tally()
        self.told: set[int] = set()
        self.expected: dict[bytes, float] = {}
        self.due = 0.0

    def serve(self) -> None:
        """Answer until one of the others is gone."""
        poller = select.epoll()
        poller.register(self.end, select.EPOLLIN)
        poller.register(self.channel.fileno(), select.EPOLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poller.poll(self.patience())]
            if self.end in ready and not self.answer_all():
                return
            if self.channel.fileno() in ready and not self.obey():
                return
            if self.tally and monotonic() >= self.due:
                self.tell()

    def patience(self) -> float | None:
        """Return how long there is nothing to do but to wait."""
        return max(self.due - monotonic(), 0.001) if self.tally else None

    def answer_all(self) -> bool:
        """Answer the requests that are there; ``False`` once the file system is gone."""
        while True:
            try:
                data = os.read(self.end, fuse.LARGEST_REQUEST)
            except OSError as error:
                if error.errno == EAGAIN:
                    return True
                if error.errno in _PASSING:
                    continue
                return error.errno != ENODEV
            request = fuse.Request.read(data)
            answer = self.masks.answer(request)
            if answer.refused:
                self.note(request, answer.refused)
            if answer.reply is not None:
                self.reply(answer.reply)

    def reply(self, reply: bytes) -> None:
        """Tell the kernel; a request that it gave up needs no answer."""
        try:
            os.write(self.end, reply)
        except OSError as error:
            if error.errno not in _PASSING:
                raise

    def note(self, request: fuse.Request, path: bytes) -> None:
        """Count a refusal, unless it was none of a command's; the first of each is told before it is answered."""
        who = self.lineage.of(request.pid) if request.pid else lineage.UNKNOWN
        # A change of what is masked itself is refused by the kernel without asking, so nothing comes after that.
        if who == lineage.BESIDE and request.opcode == fuse.LOOKUP:
            self.expect(path)
        if who < 0 or self.was_expected(path):
            return
        if not self.tally:
            self.due = monotonic() + _DELAY
        self.tally.add(who, path)
        if who not in self.told:
            self.tell_of(who)

    def expect(self, path: bytes) -> None:
        """Remember what a supervisor asked: it tells by itself what the command that it asks for is about to try."""
        if len(self.expected) >= _MOST_EXPECTED:
            self.expected.clear()
        self.expected[path] = monotonic() + _SOON

    def was_expected(self, path: bytes) -> bool:
        """Tell whether a supervisor asked the same just now."""
        return bool(self.expected) and self.expected.pop(path, 0.0) >= monotonic()

    def tell(self) -> None:
        """Tell everything that was counted."""
        for who in self.tally.who():
            if not self.tell_of(who):
                break
        self.due = monotonic() + _DELAY

    def tell_of(self, who: int, *, wait: bool = False) -> bool:
        """Tell what was refused to one command; if the launcher is not ready to hear it, it stays counted."""
        refusals = self.tally.take(who)
        if not refusals:
            return True
        try:
            self.channel.send(Packet(message.KNOCKED, who, pack(packed(refusals))), wait=wait)
        except OSError:
            for refusal in refusals:
                self.tally.add(who, *refusal)
            return False
        self.told.add(who)
        return True

    def obey(self) -> bool:
        """Tell what is left of a command that has ended; ``False`` once the launcher is gone."""
        packet = self.channel.receive()
        if packet is None:
            return False
        self.answer_all()
        for who in (lineage.UNKNOWN, packet.number):
            self.tell_of(who, wait=True)
            self.told.discard(who)
        try:
            self.channel.send(Packet(message.TOLD, packet.number))
        except OSError:
            return False
        return True

    def status(self, thread: int) -> bytes:
        """Read what the kernel says of a thread; nothing if it is gone."""
        try:
            file = os.open(b"%d/status" % thread, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self.processes)
        except OSError:
            return b""
        try:
            return os.read(file, _STATUS)
        except OSError:
            return b""
        finally:
            os.close(file)
