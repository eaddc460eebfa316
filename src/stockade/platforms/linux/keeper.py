"""The keeper: the host's half of a session's helpers, parent of the launcher.

Started by the owner as ``python -I -S`` with one channel as descriptor 3. It waits for the plan, has
the jail built by a process of its own, maps ids where only root outside can do so, and then stays
for one purpose: when the owner or the launcher is gone, by whatever signal, everything ends.

Rules: it runs nothing that the policy did not name and reads nothing that the jail could have written.
Source of truth: user_namespaces(7), pid_namespaces(7), PR_SET_CHILD_SUBREAPER(2const).
"""

from __future__ import annotations

import os
import select

from stockade import passing  # noqa: F401 - its users import it when they need it, which must not be inside a jail
from stockade.platforms.linux import file_limit, identity, kernel, landlock, launcher, message, session, tree
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.first_process import Setting
from stockade.platforms.linux.locked_tree import Holder
from stockade.platforms.linux.program import notifies, program, unsupervised
from stockade.platforms.linux.supervisor import Supervision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CHANNEL = 3
_JAIL = kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWCGROUP
_WRITABLE = frozenset({tree.WRITABLE, tree.TEMPORARY})
_SIGKILL = 9
_MAP_ME = b"m"
_LAUNCHED = b"l"
_GO = b"g"
_PF_EXITING = 4  # linux/sched.h; the ninth field of /proc/PID/stat
_DYING = 5.0
_NO_PROCESSES = b"the kernel gives no /proc of its own here"


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
    program()  # the usual one, while there is no plan yet
    _serve(owner, channel)
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


def _serve(owner: int, channel: Channel) -> None:
    """Have one jail built and stay with it; the locks that came with the plan are let go at the end."""
    packet = channel.receive()
    if packet is None or packet.kind != message.BUILD:
        return
    try:
        build = message.Build.read(packet)
        construction = _Construction(channel, build, packet.descriptors[: build.shared])
        pid = construction.launch()
    except (OSError, ValueError) as error:
        channel.send(message.Failed.of(b"jail", error).packet(0))
        return
    channel.close()
    if pid:
        _watch(owner, pid, construction)
    construction.end_warden()
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


def _hear(channel: Channel, builder: int) -> Packet | None:
    """Wait for a word of the builder; ``None`` once it is dead. The launcher has a copy of its end of the channel."""
    poller = select.poll()
    poller.register(channel.fileno(), select.POLLIN)
    poller.register(builder, select.POLLIN)
    poller.poll()
    # A word that it has said before it died is there by now.
    return channel.receive(wait=False)


def _watch(owner: int, pid: int, construction: _Construction) -> None:
    """Wait until either is gone, or going; then end the other half.

    A launcher is dead only when every command is, and one that waits for an answer of the warden dies only when it
    has that, or when the warden is dead: so that goes first.
    """
    process = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(owner, select.POLLIN)
    poller.register(process, select.POLLIN)
    if construction.life >= 0:
        poller.register(construction.life, select.POLLIN)
    poller.poll()
    construction.end_warden()
    os.kill(pid, _SIGKILL)
    os.waitpid(pid, 0)


class _Construction:
    """The steps from a plan to a running launcher."""

    def __init__(self, owner: Channel, build: message.Build, shared: tuple[int, ...]) -> None:
        self.owner = owner
        self.build = build
        self.shared = shared
        self.identity = identity.own_identity()
        self.ids = os.geteuid(), os.getegid()
        self.places = tree.arrange(build.mounts)
        self.filters = [program(build.confinement)] if build.confinement else []
        self.filters += build.filters
        self.is_listed = _matcher(build.sockets)
        self.supervision: Supervision | None = None
        self.files = file_limit.raise_own()
        self.warden = 0
        self.life = -1

    def launch(self) -> int:
        """Build the jail in another process; return the launcher's pid, or 0 if that failed."""
        devices = tree.new_devices(self.places, self.identity.outsider) if self.identity.privileged else -1
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        mine, theirs = Channel.pair()
        doors = Channel.pair() if self.wants_warden() else None
        # The launcher keeps the other end for as long as it lives, by doing nothing about it.
        self.life, lives = os.pipe() if doors is not None else (-1, -1)
        builder = os.fork()
        if builder == 0:
            try:
                mine.close()
                if doors is not None:
                    os.close(self.life)
                    doors[1].close()
                self.become_builder(theirs, devices, doors and doors[0])
            finally:
                os._exit(0)
        theirs.close()
        if doors is not None:
            os.close(lives)
            self.warden = self.fork_warden(*doors)
        if devices >= 0:
            os.close(devices)
        return self.attend(mine, builder)

    def wants_warden(self) -> bool:
        """Tell whether there are hidden places, and masks for them; what these need is imported here, on the host."""
        if all(place.operation != tree.GUARDED for place in self.places):
            return False
        from stockade.platforms.linux import warden

        return warden.is_wanted(self.places)

    def fork_warden(self, launcher_end: Channel, own_end: Channel) -> int:
        """Have hidden places watched, by a process that lives as long as this one."""
        from stockade.platforms.linux import warden

        pid = os.fork()
        if pid == 0:
            try:
                launcher_end.close()
                warden.main(own_end, self.places)
            finally:
                os._exit(0)
        launcher_end.close()
        own_end.close()
        return pid

    def end_warden(self) -> None:
        """End the warden, if there is one, and wait for it."""
        if self.warden:
            os.kill(self.warden, _SIGKILL)
            os.waitpid(self.warden, 0)
            self.warden = 0

    def attend(self, channel: Channel, builder: int) -> int:
        """Do for the builder what only a process outside can do."""
        pid = 0
        process = os.pidfd_open(builder)
        while pid == 0 and (packet := _hear(channel, process)) is not None:
            if packet.kind == _MAP_ME:
                maps = self.identity
                identity.write_maps(b"%d" % builder, maps.users, maps.groups, keep_groups=True)
                channel.send(Packet(_GO, 0))
            else:
                pid = packet.number
        os.close(process)
        os.waitpid(builder, 0)
        if pid:
            # Only now is the launcher a child of this process, and can ask to die with it.
            channel.send(Packet(_GO, 0))
            channel.receive()
            channel.send(Packet(_GO, 0))
        channel.close()
        return pid

    def become_builder(self, keeper: Channel, devices: int, door: Channel | None) -> None:
        """Enter new namespaces, build the jail, leave a launcher in it."""
        step = b"namespaces"
        try:
            self.look_at_host()
            self.enter_session(keeper)
            terminals = tree.new_terminals()
            holder = self.enter_jail()
            step = b"namespace limits"
            identity.forbid_user_namespaces()
            step = b"mount"
            if devices < 0:
                devices = tree.new_devices(self.places, None)
            masks = -1 if door is None else _new_masks(door)
            if door is not None and masks < 0:
                door.close()
            tree.build(self.places, devices, terminals, masks)
            step = b"launcher"
            pid = os.fork()
        except OSError as error:
            self.owner.send(message.Failed.of(step, error).packet(0))
            return
        if pid:
            holder.wait()
            keeper.send(Packet(_LAUNCHED, pid))
            return
        try:
            setting = self.setting(holder)
        except OSError as error:
            self.owner.send(message.Failed.of(step, error).packet(0))
            return
        supervision = self.supervision if setting.supervised else None
        launcher.main(self.owner, keeper, setting, door if masks >= 0 else None, supervision)

    def look_at_host(self) -> None:
        """Open what a supervisor needs of the host, as long as this is the host."""
        if notifies(self.build.confinement):
            absent = [place.target for place in self.places if place.operation == tree.ABSENT]
            self.supervision = Supervision(absent, self.is_listed, self.identity.capabilities)

    def enter_session(self, keeper: Channel) -> None:
        """Enter what all jails of a session share; the first one makes it, and the owner keeps it open for the rest.

        It belongs to a user namespace above the jail's, in which no command has any rights.
        """
        if self.shared:
            session.enter(self.shared)
            if self.build.host_ports:
                self.share(())
            return
        session.unshare()
        if self.identity.privileged:
            keeper.send(Packet(_MAP_ME, 0))
            if keeper.receive() is None:
                raise SystemExit  # the keeper was killed: this is no refusal, so nothing is said of one
        else:
            uid, gid = self.ids
            # Terminals need an id 0; the commands get their own id back in the jail's namespace.
            identity.write_maps(b"self", b"0 %d 1" % uid, b"0 %d 1" % gid)
        session.furnish()
        self.share(session.descriptors())

    def share(self, namespaces: tuple[int, ...]) -> None:
        """Open where the session's network is served, and hand it to the owner; the commands must not have it."""
        opened = session.open_entrances(self.build.host_ports, new=bool(namespaces))
        packet = message.Shared(namespaces, opened.labels, tuple(opened.sockets)).packet()
        self.owner.send(packet)
        packet.close()

    def enter_jail(self) -> Holder:
        """Enter namespaces of this jail's own, with the ids that commands see; return what will lock its mounts."""
        if self.identity.privileged:
            identity.unshare_with_maps(_JAIL, self.identity.users, self.identity.groups)
        else:
            uid, gid = self.ids
            kernel.unshare(_JAIL)
            identity.write_maps(b"self", b"%d 0 1" % uid, b"%d 0 1" % gid, keep_groups=True)
        holder = Holder(self.identity.users, self.identity.groups)
        kernel.unshare(kernel.CLONE_NEWPID)
        return holder

    def unsupervised(self) -> bytes:
        """Return the filter for where nobody can answer."""
        return program(unsupervised(self.build.confinement))

    def setting(self, holder: Holder) -> Setting:
        """Return what every command gets alike; asked in the launcher, whose pid namespace is the jail's."""
        fresh = self.build.fresh_processes or tree.can_show_processes()
        supervised = self.supervision is not None and fresh
        if self.supervision is not None and not fresh:
            self.supervision.close()
            self.filters[0] = self.unsupervised()
        rights = landlock.handled(landlock.version())
        return Setting(
            capabilities=self.identity.capabilities,
            filters=self.filters,
            supervised=supervised,
            unsupervised=self.unsupervised,
            note=b"" if supervised or self.supervision is None else _NO_PROCESSES,
            fresh_processes=fresh,
            # Root owns /proc/sys and needs no capability to write it. The cover over it is the command's own and goes
            # with it; after that only Landlock keeps another command from a /proc that was passed to it.
            writable_processes=self.ids[0] != 0 and rights != 0,
            files=self.files,
            rights=rights,
            locked=holder.take(fresh_processes=fresh),
            places=self.places,
            grounds=landlock.outermost(self.build.mounts, _WRITABLE),
            spare=self.build.spare,
            reuse=self.build.reuse,
        )


def _new_masks(door: Channel) -> int:
    from stockade.platforms.linux import warden

    return warden.new_masks(door)


def _matcher(texts: list[bytes]) -> Callable[[bytes], bool]:
    """Return what tells whether a path is listed; patterns are known only where there are any."""
    if not texts:
        return lambda _: False
    from stockade.policy.path_pattern import PathPattern

    patterns = [PathPattern.parse(os.fsdecode(text), cwd="/", home="/") for text in texts]
    return lambda path: any(pattern.depth_on(os.fsdecode(path)) is not None for pattern in patterns)
