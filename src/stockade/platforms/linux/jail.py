"""The owner's side of a jail: start its helpers, send commands, take answers.

``start`` returns while the helpers are still coming up, so that a program can read its settings
meanwhile; ``build`` sends the plan; commands may follow at once. Nothing here waits but ``wait_ready``,
``receive`` and ``close``: a loop of any kind can watch ``fileno`` and call ``receive`` when it is readable.

Rules: no secret is in an argument or in the helpers' environment; when this object or its process
is gone, by whatever signal, the helpers and every command end.
"""

from __future__ import annotations

import os
import select
from errno import EMFILE, EPERM, ETOOMANYREFS

from stockade.annotation import TYPE_CHECKING, Literal
from stockade.errors import StockadeError, UnavailableError
from stockade.platforms.linux import keeper_process, message
from stockade.platforms.linux import passage as passages
from stockade.platforms.linux.channel import MAXIMUM_DESCRIPTORS, Channel, Packet
from stockade.suppress import suppress
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stockade.platforms.backend import Launch
    from stockade.platforms.linux.mount import JailSpec
    from stockade.platforms.linux.passage import Passage

#: Seconds after which helpers that do not end are ended.
_PATIENCE = 10.0


class Request(Value):
    """One command.

    ``limits`` are pairs of a ``resource.RLIMIT_*`` number and a value. ``terminal`` makes the first stream the
    controlling terminal. ``announce`` asks for ``Started``. ``groups`` are descriptors of the ``cgroup.procs`` that the
    command joins. ``passed`` are pipes that it finds open at the same numbers.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    limits: tuple[tuple[int, int], ...] = ()
    terminal: bool = False
    announce: bool = False
    groups: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()

    @classmethod
    def of(cls, launch: Launch) -> Request:
        """Return what a launch asks of a jail."""
        return cls(
            argv=launch.argv,
            environment=launch.environment,
            directory=launch.directory,
            limits=launch.limits,
            terminal=launch.terminal,
            announce=launch.terminal,
            groups=launch.groups,
            passed=launch.passed,
        )


class Started(Value):
    """The command runs."""

    number: int


class Stopped(Value):
    """The command was stopped, as by Ctrl-Z; told only of a command on a terminal."""

    number: int


class Refused(Value):
    """What the walls refused to a command, and how often; without a place, in many."""

    number: int
    operation: str
    place: str
    times: int


class Ended(Value):
    """The command and all that it started are gone.

    ``status`` as of wait(2), see ``os.waitstatus_to_exitcode``; times in seconds; memory in bytes.
    """

    number: int
    status: int
    user_time: float
    system_time: float
    peak_memory: int


class Failed(Value):
    """The command could not be started; ``error`` is the kernel's number."""

    number: int
    error: int
    step: str
    path: str = ""

    def text(self) -> str:
        """Say it in one line."""
        return self._message().text()

    def exit_status(self) -> int:
        """Return the status that a shell gives for it, or 125 if it is not about the program."""
        return self._message().exit_status()

    def _message(self) -> message.Failed:
        return message.Failed(self.error, self.step.encode(), os.fsencode(self.path))


class Guests(Value):
    """How many visitors the launcher has, and whether it takes more."""

    count: int
    receiving: bool


class Covered(Value):
    """The host replaced what covers lay on, and they were laid again; see ``message.Covered``."""

    uncovered: tuple[str, ...] = ()
    hopeless: str = ""


Answer = Started | Stopped | Ended | Failed | Guests | Refused | Covered
State = Literal["new", "building", "ready", "closed"]


class Jail:
    """A jail and the helpers that hold it."""

    def __init__(self, pid: int, channel: Channel, passage: Passage, leavings: str, *, joins: bool = False) -> None:
        """Take over a keeper that was just started; see ``start``."""
        self.pid = pid
        self._owner = os.getpid()
        self._channel = channel
        self._passage = passage
        self._leavings = leavings
        #: Whether it can join what an earlier jail of the session shares.
        self.joins = joins
        self._plan: Packet | None = None
        self._number = 0
        self._launcher: tuple[int, ...] = ()
        self._terminals: tuple[int, ...] = ()
        #: Why nobody watches what commands connect to and change, if nobody does though it was asked for.
        self.unsupervised = ""
        #: Why there is no private place though it was asked for; else a copy of it, for the next jail.
        self.common = ""
        self.private: tuple[int, ...] = ()
        self.shared: tuple[int, ...] = ()
        self.entrances: tuple[tuple[str, int], ...] = ()
        self._state: State = "new"
        self._unreaped = False

    @classmethod
    def start(cls, leavings: str = "", passage: Passage | None = None, *, first: bool = True) -> Jail:
        """Start the helpers, outside any jail yet.

        ``leavings`` is the directory that holds sessions' temporary directories: if this process is killed, the
        helpers remove from it what belongs to nobody. ``passage`` is how they come to user namespaces, first. For the
        ``first`` jail of a session they begin at once with what no plan changes; only later ones join it.
        """
        passage = passage or passages.usual()
        # Through bubblewrap each jail lives in a world of its own, which has no rights over an earlier one.
        joins = passage == "direct" and not first
        return cls(*keeper_process.spawn(passage, leavings, first=not joins), passage, leavings, joins=joins)

    @classmethod
    def fork(cls, leavings: str) -> Jail:
        """Start the helpers as forks of this process, which is quicker, if it was started for one command only."""
        if passages.usual() != "direct" or not keeper_process.can_fork():
            return cls.start(leavings)
        return cls(*keeper_process.fork(leavings), "direct", leavings)

    def build(
        self,
        spec: JailSpec,
        locks: Sequence[int] = (),
        shared: Sequence[int] = (),
        host_ports: Sequence[tuple[str, int]] = (),
        private: Sequence[int] = (),
    ) -> None:
        """Have the jail built; ``wait_ready`` tells whether that worked.

        The helpers keep copies of ``locks``, so that these are held until the last command is dead. ``shared`` is
        that of an earlier jail of the session, whose localhost this one joins. ``host_ports`` become entrances.
        ``private`` is the private place that an earlier jail has left.
        """
        build = message.Build(
            [mount.encoded() for mount in spec.mounts],
            list(spec.filters),
            confinement=spec.confinement,
            fresh_processes=spec.fresh_processes,
            sockets=[os.fsencode(text) for text in spec.sockets],
            denied=[os.fsencode(text) for text in spec.denied_sockets],
            unlisted=[[os.fsencode(text) for text in (root, *names)] for root, names in spec.unlisted],
            shared=len(shared) if self.joins else 0,
            spare=spec.spare,
            reuse=spec.reuse,
            private=len(private),
            host_ports=[f"{address} {port}".encode() for address, port in host_ports],
        )
        packet = build.packet()
        # A large packet travels in a file, whose descriptor is one more.
        packet.descriptors = (*shared[: build.shared], *private, *locks)[: MAXIMUM_DESCRIPTORS - 1]
        self._plan = packet
        self._send(packet)
        self._state = "building"

    def wait_ready(self, *, explain: bool = True) -> None:
        """Wait until the jail stands, which may take another passage; raise if it cannot.

        The plan's locks must still be open, and ``fileno`` may change. Without ``explain`` the error is the bare one.
        """
        packet = self._receive_all()
        if packet is not None and packet.kind == message.SHARED:
            self._take_shared(message.Shared.read(packet))
            packet = self._receive_all()
        if packet is not None and packet.kind == message.READY:
            self._state = "ready"
            ready = message.Ready.read(packet)
            self.unsupervised, self.common = ready.alone.decode(), ready.common.decode()
            self._launcher, self._terminals, self.private = ready.launcher, ready.terminals, ready.private
            return
        self.close()
        failed = None if packet is None else _failed(packet)
        another = passages.after(self._passage, failed.step, failed.error) if failed is not None else None
        if another is not None and self._plan is not None and self._number == 0:
            self._try_passage(another, self._plan)
            self.wait_ready(explain=explain)
            passages.remember(another)
            return
        raise self._unavailable(failed, explain=explain)

    def _receive_all(self) -> Packet | None:
        """Wait for a packet. Raises if there is no room here for the descriptors that came with it."""
        packet = self._channel.receive()
        if packet is not None and packet.cut:
            packet.close()
            self.close()
            raise OSError(EMFILE, os.strerror(EMFILE))
        return packet

    def _try_passage(self, passage: Passage, plan: Packet) -> None:
        """Start new helpers by another passage and send them the same plan."""
        self.pid, self._channel = keeper_process.spawn(passage, self._leavings)
        self._passage = passage
        self.joins = False
        self._state = "building"
        with suppress(UnavailableError):  # it may have ended already; then there is no answer either
            self._send(plan)

    def _unavailable(self, failed: Failed | None, *, explain: bool) -> UnavailableError:
        if failed is None and self._passage == "direct":
            return UnavailableError("the sandbox's helper ended while it built the walls", "run `stockade doctor`")
        if failed is None:
            failed = Failed(0, EPERM, "namespaces", "bubblewrap")
        if explain:
            return passages.refusal(failed.step, failed.error, failed.text())
        return UnavailableError(f"cannot build the walls: {failed.text()}", "run `stockade doctor`")

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with each answer."""
        return self._channel.fileno()

    def is_gone(self) -> bool:
        """Tell whether the helpers have ended, though answers of theirs may still be there. Never waits."""
        poller = select.poll()
        poller.register(self._channel.fileno(), 0)
        return bool(poller.poll(0))

    def run(self, request: Request, streams: Sequence[int]) -> int:
        """Send a command with its three streams, which stay the caller's; return its number."""
        self._number += 1
        self._send(_run(request).packet(self._number, (*streams, *request.groups, *request.passed)))
        return self._number

    def order(self, number: int, request: Request) -> None:
        """Let visitors run this command; ``number`` is how they name it."""
        packet = _run(request).packet(number, ())
        packet.kind = message.ORDER
        self._send(packet)

    def receive_visitors(self, door: int | None) -> None:
        """Have visitors received at a listening socket, which stays the caller's; ``None``: no more of them."""
        self._send(Packet(message.RECEIVE, 0, b"", () if door is None else (door,)))

    def retire(self) -> None:
        """Tell the launcher that another jail of the session has taken over."""
        self._send(Packet(message.RETIRE, 0))

    def kill(self) -> None:
        """End the launcher, and with it every command, at once; that is heard as a loss."""
        from signal import SIGKILL, pidfd_send_signal

        for process in self._launcher:
            with suppress(ProcessLookupError):
                pidfd_send_signal(process, SIGKILL)

    def open_terminal(self) -> tuple[int, int]:
        """Make a terminal that commands see in their ``/dev/pts``; return our end and theirs."""
        from stockade.platforms.linux.pseudoterminal import open_pair

        return open_pair(self._terminals)

    def end(self, number: int) -> None:
        """End a command and everything that it started; its answer still comes."""
        self._send(Packet(message.END, number))

    def signal(self, number: int, signal: int) -> None:
        """Pass a signal on to the command and what it runs in front."""
        self._send(message.signal_packet(number, signal))

    def receive(self) -> Answer | None:
        """Wait for the next answer; ``None`` once the helpers are gone, and all commands with them."""
        packet = self._channel.receive()
        return None if packet is None else _answer(packet)

    def close(self) -> None:
        """End everything and wait for it; may be called again. A fork of the owner only lets go of its copies."""
        self.finish()
        if self._unreaped:
            self._unreaped = False
            with suppress(ChildProcessError):  # the program may reap its children by itself
                os.waitpid(self.pid, 0)
        for process in self._launcher:
            os.close(process)
        self._launcher = ()

    def finish(self) -> None:
        """End every command, and wait for that; the keeper goes a moment later, and ``close`` waits for it."""
        if self._state == "closed":
            return
        self._state = "closed"
        self._unreaped = os.getpid() == self._owner
        if self._unreaped:
            # The end of the channel alone would not do: a fork of this process may hold a copy of it.
            with suppress(OSError):
                self._channel.send(Packet(message.CLOSE, 0), wait=False)
        self._channel.close()
        for descriptor in (*self._terminals, *self.private):
            os.close(descriptor)
        self.private = ()
        self._close_shared()
        if self._unreaped:
            self._wait_for_launcher(_PATIENCE)
            self._wait_for_launcher(None)
        if not self._launcher:
            self.close()  # of a jail that was never ready, only the keeper knows when it has ended

    def _wait_for_launcher(self, seconds: float | None) -> None:
        """Wait until the launcher is dead, and with it every command; if it does not end by itself, end it.

        A keeper that is killed ends before them.
        """
        for process in self._launcher:
            poller = select.poll()
            poller.register(process, select.POLLIN)
            if not poller.poll(None if seconds is None else seconds * 1000):
                from signal import SIGKILL, pidfd_send_signal

                pidfd_send_signal(process, SIGKILL)

    def _take_shared(self, shared: message.Shared) -> None:
        self._close_shared()
        self.shared = shared.namespaces
        sockets = (*shared.sockets, *(-1 for _ in shared.entrances[len(shared.sockets) :]))
        self.entrances = tuple((os.fsdecode(label), end) for label, end in zip(shared.entrances, sockets, strict=True))

    def _close_shared(self) -> None:
        for descriptor in (*self.shared, *(end for _, end in self.entrances if end >= 0)):
            os.close(descriptor)
        self.shared = ()
        self.entrances = ()

    def _send(self, packet: Packet) -> None:
        try:
            self._channel.send(packet)
        except OSError as error:
            if error.errno == ETOOMANYREFS:
                from stockade.passing import HINT

                text = f"cannot send anything to the sandbox's helpers: {error.strerror}"
                raise UnavailableError(text, HINT) from error
            text = f"the sandbox's helpers are gone: {error.strerror}"
            raise UnavailableError(text, "somebody killed them: try again") from error


def _run(request: Request) -> message.Run:
    flags = message.TERMINAL if request.terminal else 0
    flags |= message.ANNOUNCE if request.announce else 0
    run = message.Run(
        [os.fsencode(word) for word in request.argv],
        _encoded(request.environment),
        os.fsencode(request.directory),
        flags,
        list(request.limits),
        len(request.groups),
    )
    run.passed = list(request.passed)
    return run


def _encoded(environment: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return the variables as the kernel has them: names end at the first ``=``, and everything at the first zero."""
    # Two texts are encoded sooner than two hundred.
    names, values = (os.fsencode("\0".join(texts)) for texts in (environment, environment.values()))
    found = dict(zip(names.split(b"\0"), values.split(b"\0"), strict=False)) if environment else {}
    zeros = max(len(environment) - 1, 0)
    if b"" in found or b"=" in names or (names.count(b"\0"), values.count(b"\0")) != (zeros, zeros):
        wrong = next(name for name, value in environment.items() if not name or "=" in name or "\0" in name + value)
        text = f"this cannot be a variable of the environment: {wrong!a}"
        raise StockadeError(text, "a name is not empty and has no '='; neither name nor value holds a zero byte")
    return found


_PLAIN: dict[bytes, type[Started | Stopped]] = {message.STARTED: Started, message.STOPPED: Stopped}


def _answer(packet: Packet) -> Answer:
    if packet.kind in _PLAIN:
        return _PLAIN[packet.kind](packet.number)
    if packet.kind == message.ENDED:
        ended = message.Ended.read(packet)
        return Ended(
            packet.number, ended.status, ended.user_time / 1e6, ended.system_time / 1e6, ended.peak_memory << 10
        )
    if packet.kind == message.REFUSED:
        refused = message.Refused.read(packet)
        return Refused(packet.number, refused.operation.decode(), os.fsdecode(refused.place), refused.times)
    if packet.kind == message.COVERED:
        covered = message.Covered.read(packet)
        return Covered(tuple(map(os.fsdecode, covered.uncovered)), os.fsdecode(covered.hopeless))
    if packet.kind == message.GUESTS:
        return Guests(*message.read_guests(packet))
    return _failed(packet)


def _failed(packet: Packet) -> Failed:
    failed = message.Failed.read(packet)
    return Failed(packet.number, failed.error, failed.step.decode(), os.fsdecode(failed.path))
