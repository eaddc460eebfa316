"""The builder: it enters new namespaces, builds the jail in them, and leaves a launcher there.

The keeper forks it at once. What the first jail of a session enters does not depend on any plan, so the builder makes
that while the owner still makes the plan. A later jail joins what the first one made, for which it waits.

Rules: it says nothing of its work before the plan is there, only why that failed; whatever it opens of the host it
opens before it leaves the host; it ends with the keeper.
Source of truth: user_namespaces(7), mount_namespaces(7), pid_namespaces(7).
"""

from __future__ import annotations

import os

from stockade.platforms.linux import identity, kernel, landlock, launcher, message, private_place, session, tree
from stockade.platforms.linux.channel import Channel, Packet
from stockade.platforms.linux.entrance import Entrances
from stockade.platforms.linux.first_process import Setting
from stockade.platforms.linux.locked_tree import Holder
from stockade.platforms.linux.program import notifies, observes, program, unsupervised
from stockade.platforms.linux.supervision import HostView, Supervision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.linux.denied_sockets import DeniedSockets
    from stockade.platforms.linux.identity import Identity
    from stockade.platforms.linux.listings import Listings

#: What the builder says to the keeper: give me my ids; this is the launcher's pid.
MAP_ME = b"m"
LAUNCHED = b"l"
#: What the keeper says to the builder: go on; these are the devices and the door to the warden.
GO = b"g"
MATERIAL = b"d"
_JAIL = kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWCGROUP
_WRITABLE = frozenset({tree.WRITABLE, tree.TEMPORARY})
_NO_PROCESSES = b"the kernel gives no /proc of its own here"


class Builder:
    """The steps from a keeper that was just started to a running launcher."""

    def __init__(self, owner: Channel, keeper: Channel, who: Identity, files: tuple[int, int]) -> None:
        """Take the channels to the owner and to the keeper; ``files`` are the limits of commands."""
        self.owner = owner
        self.keeper = keeper
        self.identity = who
        self.files = files
        self.ids = os.geteuid(), os.getegid()
        self.entrances = Entrances()
        self.step = b"namespaces"

    def main(self, *, first: bool) -> None:
        """Build one jail, the ``first`` of a session or a later one, and become its launcher; return in the builder."""
        try:
            ready = self.build(first=first)
        except OSError as error:
            self.owner.send(message.Failed.of(self.step, error).packet(0))
            return
        if ready is not None:
            setting, door, supervision = ready
            launcher.main(self.owner, self.keeper, setting, door, supervision)

    def build(self, *, first: bool) -> tuple[Setting, Channel | None, Supervision | None] | None:
        """Return what the launcher needs, in the launcher. Raises what the kernel refuses; ``step`` says where."""
        view = HostView()
        entered = self.enter_new_session() if first else None
        program()  # the usual one, while there is no plan yet
        packet = self.keeper.receive()
        if packet is None:
            if entered is not None:
                entered[1].wait()
            return None  # the keeper is gone, or wants another builder
        work = _Work(message.Build.read(packet), self.identity.capabilities, view)
        terminals, holder = entered or self.join_session(packet.descriptors[: work.build.shared])
        self.share(work.build.host_ports, new=first)
        # While the keeper makes its part.
        private = self.take_private(work, packet.descriptors[work.build.shared :][: work.build.private])
        material = self.keeper.receive()
        if material is None:
            holder.wait()
            return None
        self.step = b"mount"
        devices, covers, door, masks = self.take(material, work)
        observed = observes(work.build.confinement)
        tree.build(work.places, devices, terminals, masks, covers, private, observed=observed)
        self.step = b"launcher"
        pid = os.fork()
        if pid:
            holder.wait()
            self.keeper.send(Packet(LAUNCHED, pid))
            return None
        return self.setting(work, holder), door, work.supervision

    def take_private(self, work: _Work, given: tuple[int, ...]) -> int:
        """Return the session's version of the private place, which an earlier jail may have made; -1: there is none."""
        place = next((place for place in work.places if place.operation == tree.PRIVATE), None)
        if place is None:
            return -1
        private, work.common = (given[0], b"") if given else private_place.make(place.target, place.source)
        if private >= 0:
            work.private = place.target
        return private

    def enter_new_session(self) -> tuple[int, Holder]:
        """Make what all jails of a session share, which the owner will keep open for the rest; enter the jail.

        It belongs to a user namespace above the jail's, in which no command has any rights.
        """
        session.unshare()
        if self.identity.privileged:
            self.keeper.send(Packet(MAP_ME, 0))
            if self.keeper.receive() is None:
                raise SystemExit  # the keeper was killed: this is no refusal, so nothing is said of one
        else:
            uid, gid = self.ids
            # Terminals need an id 0; the commands get their own id back in the jail's namespace.
            identity.write_maps(b"self", b"0 %d 1" % uid, b"0 %d 1" % gid)
        session.furnish()
        self.entrances.open_all()
        return self.enter_jail()

    def join_session(self, shared: tuple[int, ...]) -> tuple[int, Holder]:
        """Enter what an earlier jail of the session made, and the jail."""
        session.enter(shared)
        return self.enter_jail()

    def enter_jail(self) -> tuple[int, Holder]:
        """Enter namespaces of this jail's own, with the ids that commands see.

        Return its terminals, which belong to the session, and what will lock its mounts.
        """
        terminals = tree.new_terminals()
        if self.identity.privileged:
            identity.unshare_with_maps(_JAIL, self.identity.users, self.identity.groups)
        else:
            uid, gid = self.ids
            kernel.unshare(_JAIL)
            identity.write_maps(b"self", b"%d 0 1" % uid, b"%d 0 1" % gid, keep_groups=True)
        holder = Holder(self.identity.users, self.identity.groups)
        kernel.unshare(kernel.CLONE_NEWPID)
        self.step = b"namespace limits"
        identity.forbid_user_namespaces()
        return terminals, holder

    def share(self, host_ports: list[bytes], *, new: bool) -> None:
        """Open what leads to ports of the host, and hand the owner all that is new; the commands must not have it."""
        self.step = b"namespaces"
        self.entrances.open_hosts(host_ports)
        if not new and not host_ports:
            return
        namespaces = session.descriptors() if new else ()
        packet = message.Shared(namespaces, self.entrances.labels, tuple(self.entrances.sockets)).packet()
        self.owner.send(packet)
        packet.close()

    def setting(self, work: _Work, holder: Holder) -> Setting:
        """Return what every command gets alike; asked in the launcher, whose pid namespace is the jail's."""
        build = work.build
        fresh = build.fresh_processes or tree.can_show_processes()
        unseeing = work.supervision is not None and not fresh
        if unseeing:
            work.give_up_supervision()
        rights = landlock.handled(landlock.version())
        return Setting(
            capabilities=self.identity.capabilities,
            filters=work.filters,
            supervised=work.supervision is not None,
            unsupervised=work.unsupervised,
            note=_NO_PROCESSES if unseeing else b"",
            fresh_processes=fresh,
            # Root owns /proc/sys and needs no capability to write it. The cover over it is the command's own and goes
            # with it; after that only Landlock keeps another command from a /proc that was passed to it.
            writable_processes=self.ids[0] != 0 and rights != 0,
            files=self.files,
            rights=rights,
            locked=holder.take(fresh_processes=fresh),
            places=work.places,
            grounds=[*landlock.outermost(build.mounts, _WRITABLE), *filter(None, (work.private,))],
            private=work.private,
            common=work.common,
            spare=build.spare,
            reuse=build.reuse,
            is_denied=work.denied.cover if work.denied is not None else None,
        )

    def take(self, material: Packet, work: _Work) -> tuple[int, int, Channel | None, int]:
        """Return the file systems of devices and covers, the door to the warden, and that of the masks (-1: none)."""
        given = list(material.descriptors)
        privileged = self.identity.privileged
        devices = given.pop(0) if privileged else tree.new_devices(work.places, None)
        covers = given.pop(0) if privileged and tree.kept_missing(work.places) else -1
        if not given:
            return devices, covers, None, -1
        # The other one says that the launcher lives, for as long as it does nothing about it.
        door = Channel.adopt(given[0])
        from stockade.platforms.linux import warden

        masks = warden.new_masks(door)
        if masks < 0:
            door.close()
        return devices, covers, door if masks >= 0 else None, masks


class _Work:
    """A plan, and what follows from it: whatever must still be read of the host is read here."""

    def __init__(self, build: message.Build, capabilities: int, view: HostView) -> None:
        self.build = build
        self.places = tree.arrange(build.mounts)
        self.filters = [program(build.confinement)] if build.confinement else []
        self.filters += build.filters
        #: The private place if the kernel allows one, else why not.
        self.private = self.common = b""
        self.supervision: Supervision | None = None
        self.denied = _denied(build, view.root)
        if notifies(build.confinement):
            absent = tree.kept_missing(self.places)
            private = next((place.target for place in self.places if place.operation == tree.PRIVATE), b"")
            listed = _matcher(build.sockets)
            self.supervision = Supervision(
                view, absent, listed, capabilities, self.denied, _listings(build), private=private
            )
        else:
            view.close()

    def give_up_supervision(self) -> None:
        """Do without a supervisor."""
        if self.supervision is not None:
            self.supervision.close()
            self.supervision = None
            self.filters[0] = self.unsupervised()

    def unsupervised(self) -> bytes:
        """Return the filter for where nobody can answer."""
        return program(unsupervised(self.build.confinement))


def _denied(build: message.Build, root: int) -> DeniedSockets | None:
    """Return what knows the denied sockets, ``None`` where no rule denies any."""
    if not build.denied:
        return None
    from stockade.platforms.linux.denied_sockets import DeniedSockets

    writable = [target for operation, target, _ in build.mounts if operation in _WRITABLE]
    return DeniedSockets(build.denied, writable, root)


def _listings(build: message.Build) -> Listings | None:
    """Return what lists directories for commands, ``None`` where nothing is left out of any."""
    if not build.unlisted:
        return None
    from stockade.platforms.linux.listings import Listings
    from stockade.platforms.linux.syscalls import arch_of

    return Listings(build.unlisted, arch_of(os.uname().machine))


def _matcher(texts: list[bytes]) -> Callable[[bytes], bool]:
    """Return what tells whether a path is listed; patterns are known only where there are any."""
    if not texts:
        return lambda _: False
    from stockade.policy.path_pattern import PathPattern

    patterns = [PathPattern.parse(os.fsdecode(text), cwd="/", home="/") for text in texts]
    return lambda path: any(pattern.depth_on(os.fsdecode(path)) is not None for pattern in patterns)
