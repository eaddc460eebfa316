"""The keeper: the host's half of a session's helpers, parent of the launcher.

Started by the owner as ``python -I -S`` with one channel as descriptor 3. It has the jail built by a process of its
own (see ``builder``), maps ids where only root outside can do so, and then stays for one purpose: when the owner or the
launcher is gone, by whatever signal, everything ends.

Rules: it runs nothing that the policy did not name and reads nothing that the jail could have written.
Source of truth: user_namespaces(7), pid_namespaces(7), PR_SET_CHILD_SUBREAPER(2const), proc_pid_mounts(5) for how one
learns that something was mounted.
"""

from __future__ import annotations

import os
import select

from stockade import passing  # noqa: F401 - its users import it when they need it, which must not be inside a jail
from stockade.platforms.linux import builder, covers, file_limit, identity, kernel, message, tree
from stockade.platforms.linux.channel import Channel, Packet
from stockade.suppress import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stockade.platforms.linux.tree import Place

CHANNEL = 3
_SIGKILL = 9
_PF_EXITING = 4  # linux/sched.h; the ninth field of /proc/PID/stat
_DYING = 5.0
_MOUNTS = b"/proc/self/mounts"


def main(passage: str, leavings: str) -> None:
    """Serve one session; returns when it is over. If its owner was killed, clean up after it."""
    kernel.close_from(CHANNEL + 1)
    channel = Channel.adopt(CHANNEL)
    packet = channel.receive()
    if packet is None or packet.kind != message.OWNER:
        return
    if passage != "direct" and not _follow_parent(channel):
        return
    (owner,) = packet.descriptors
    _serve(owner, channel, first=bool(packet.number))
    if leavings and _is_dead(owner):
        # Imported only now: a session that ends well never needs it, and this process is outside every jail.
        from stockade.platforms.linux.cleanup import clean_up

        clean_up(leavings)


def _follow_parent(channel: Channel) -> bool:
    """Die with bubblewrap, the owner's child: to end that is to end this process. Tell whether it lives.

    It may have died before the kernel knew of the wish, so the owner says which process it was.
    """
    kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
    packet = channel.receive()
    return packet is not None and packet.kind == message.PARENT and packet.number == os.getppid()


def _serve(owner: int, channel: Channel, *, first: bool) -> None:
    """Have one jail built and stay with it; the locks that came with the plan are let go at the end."""
    packet = None
    try:
        site = _Site(channel, first=first)
        site.start_builder()
        packet = _hear(channel, owner)
        if packet is None or packet.kind != message.BUILD:
            site.end_builder()
            return
        pid = site.launch(packet)
    except (OSError, ValueError) as error:
        channel.send(message.Failed.of(b"jail", error).packet(0))
        if packet is None:
            _hear(channel, owner)  # who expects an answer to its plan, not that nobody takes it
        return
    channel.close()
    if pid:
        _watch(owner, pid, site)
    site.end_warden()
    packet.close()


def _is_dead(process: int) -> bool:
    """Tell whether a process is dead; one that is dying is waited for, since its channels close before its locks."""
    poller = select.poll()  # which takes any descriptor: select(2) takes none above 1,023
    poller.register(process, select.POLLIN)
    return bool(poller.poll(_DYING * 1000 if _is_dying(process) else 0))


def _is_dying(process: int) -> bool:
    """Ask the kernel whether a process, given as a pidfd, is on its way out."""
    try:
        with open(b"/proc/self/fdinfo/%d" % process, "rb") as file:
            pid = next(line.split()[1] for line in file if line.startswith(b"Pid:"))
        with open(b"/proc/%b/stat" % pid, "rb") as file:
            flags = file.read().rpartition(b")")[2].split()[6]
    except (OSError, StopIteration):
        return False  # it is dead already, or cannot be looked at
    return bool(int(flags) & _PF_EXITING)


def _hear(channel: Channel, process: int) -> Packet | None:
    """Wait for a word of a process, given as a pidfd; ``None`` once it is dead.

    The end of the channel would not do. Another process may have a copy of it: the launcher has the builder's, and a
    fork of the owner has the owner's.
    """
    poller = select.poll()
    poller.register(channel.fileno(), select.POLLIN)
    poller.register(process, select.POLLIN)
    poller.poll()
    # A word that it has said before it died is there by now.
    return channel.receive(wait=False)


def _watch(owner: int, pid: int, site: _Site) -> None:
    """Wait until either is gone, or going; then end the other half.

    A launcher is dead only when every command is, and one that waits for an answer of the warden dies only when it
    has that, or when the warden is dead: so that goes first.
    """
    process = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(process, select.POLLIN)
    if site.life >= 0:
        poller.register(site.life, select.POLLIN)
    poller.poll()
    site.end_warden()
    os.kill(pid, _SIGKILL)
    os.waitpid(pid, 0)


class _Site:
    """What the keeper does for one jail: it has a builder and a warden, and gives them what only the host has."""

    def __init__(self, owner: Channel, *, first: bool) -> None:
        self.owner = owner
        self.first = first
        self.identity = identity.own_identity()
        self.files = file_limit.raise_own()
        self.mounts = os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
        self.warden = 0
        self.life = -1
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)

    def start_builder(self) -> None:
        """Start the process that builds the jail, and do for it what must be done before there is a plan."""
        self.channel, theirs = Channel.pair()
        self.builder = os.fork()
        if self.builder == 0:
            try:
                self.channel.close()
                os.close(self.mounts)
                builder.Builder(self.owner, theirs, self.identity, self.files).main(first=self.first)
            finally:
                os._exit(0)
        theirs.close()
        self.process = os.pidfd_open(self.builder)
        if self.first and self.identity.privileged and _hear(self.channel, self.process) is not None:
            self.map_ids()
            self.tell(Packet(builder.GO, 0))

    def map_ids(self) -> None:
        """Give the builder the ids of its namespace; one that was killed needs none."""
        try:
            maps = self.identity
            identity.write_maps(b"%d" % self.builder, maps.users, maps.groups, keep_groups=True)
        except OSError:
            if not _is_dead(self.process):
                raise

    def end_builder(self) -> None:
        """Let the builder end: it does when its channel does."""
        self.channel.close()
        os.close(self.process)
        os.waitpid(self.builder, 0)

    def tell(self, packet: Packet) -> None:
        """Say something to the builder; that it was killed is noticed later."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.channel.send(packet)

    def launch(self, plan: Packet) -> int:
        """Have the jail built for a plan; return the launcher's pid, or 0 if that failed."""
        if self.first and self.has_other_mounts():
            # The builder lives among the mounts of before.
            self.end_builder()
            self.start_builder()
        # The builder reads the plan while this process makes what only the host has.
        self.tell(plan)
        places = tree.arrange(message.Build.read(plan).mounts)
        material = self.material(places, self.identity.outsider)
        if self.wants_warden(places):
            self.start_warden(places, material)
        else:
            self.tell(Packet(builder.MATERIAL, 0, b"", material))
        for descriptor in material:
            os.close(descriptor)
        return self.attend()

    def material(self, places: list[Place], outsider: tuple[int, int] | None) -> tuple[int, ...]:
        """Make what belongs to somebody who does not exist inside; only root can."""
        if outsider is None:
            return ()
        kept = len(tree.kept_missing(places))
        made = (covers.new_covers(kept, outsider[1]),) if kept else ()
        return (tree.new_devices(places, outsider), *made)

    def has_other_mounts(self) -> bool:
        """Tell whether anything was mounted or unmounted on the host since this was asked, or the site was opened."""
        poller = select.poll()
        poller.register(self.mounts, select.POLLPRI)
        return bool(poller.poll(0))

    def wants_warden(self, places: list[Place]) -> bool:
        """Tell whether there are hidden places, and masks for them."""
        if all(place.operation != tree.GUARDED for place in places):
            return False
        from stockade.platforms.linux import warden

        return warden.is_wanted(places)

    def start_warden(self, places: list[Place], material: tuple[int, ...]) -> None:
        """Have hidden places watched, by a process that lives as long as this one; give the builder the door to it."""
        from stockade.platforms.linux import warden

        door, own_end = Channel.pair()
        # The launcher keeps the other end for as long as it lives, by doing nothing about it.
        self.life, lives = os.pipe()
        self.tell(Packet(builder.MATERIAL, 0, b"", (*material, door.fileno(), lives)))
        os.close(lives)
        door.close()
        self.warden = os.fork()
        if self.warden == 0:
            try:
                os.close(self.life)
                self.channel.close()
                warden.main(own_end, places)
            finally:
                os._exit(0)
        own_end.close()

    def end_warden(self) -> None:
        """End the warden, if there is one, and wait for it."""
        if self.warden:
            os.kill(self.warden, _SIGKILL)
            os.waitpid(self.warden, 0)
            self.warden = 0

    def attend(self) -> int:
        """Wait for the launcher; return its pid, or 0 if there will be none."""
        launched = _hear(self.channel, self.process)
        os.close(self.process)
        os.waitpid(self.builder, 0)
        if launched is not None:
            # Only now is the launcher a child of this process, and can ask to die with it.
            self.channel.send(Packet(builder.GO, 0))
            self.channel.receive()
            self.channel.send(Packet(builder.GO, 0))
        self.channel.close()
        return 0 if launched is None else launched.number
