"""What a session and its launcher say to each other, as bytes.

Requests: owner (first of all, with a pidfd of the owner, and 1 if the jail is the first of its session), parent
(bubblewrap's pid, if that starts the keeper), build (once), run, end, signal, order, receive, retire (another jail
takes over), close (last).
Answers: ready, started, stopped (a command on a terminal), ended, failed, guests, refused, covered (a cover that
fell was laid again).
The builder hands masks to the warden, which says knocked to the launcher; asked to tell the rest, it ends with told.
Copied and listening are said only within the jail: a first process hands its copy of the mounts and the listener of its
filter to the launcher, which passes the latter on to the supervisor and says to which command it was assigned. The
supervisor says refused to the owner, and unsaid, flushed (after flush) to the launcher. Visitors, who run
what the owner ordered, say visit and signal, and hear ended or failed.
Rules: pure; every text is bytes, as the kernel has it; the same functions write and read.
``tests/platforms/linux/test_message.py`` holds each message in both directions.
"""

from __future__ import annotations

import os
from errno import ENOENT

from stockade.platforms.linux.channel import Packet, pack, unpack

OWNER = b"o"
PARENT = b"p"
BUILD = b"b"
RUN = b"r"
END = b"e"
CLOSE = b"c"
SIGNAL = b"s"
READY = b"R"
SHARED = b"N"
COPIED = b"C"
STARTED = b"S"
STOPPED = b"Z"
ENDED = b"E"
FAILED = b"F"
ORDER = b"w"
RECEIVE = b"v"
VISIT = b"V"
GUESTS = b"G"
LISTENING = b"L"
ASSIGNED = b"a"
REFUSED = b"X"
UNSAID = b"U"
FLUSH = b"f"
FLUSHED = b"D"
MASKS = b"M"
KNOCKED = b"K"
TELL = b"t"
TOLD = b"T"
COVERED = b"P"
RETIRE = b"q"

ANNOUNCE = 1
TERMINAL = 2
EXEC = b"exec"
_WORD = 8


def _integer(value: int) -> bytes:
    return value.to_bytes(_WORD, "little", signed=True)


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


class Build:
    """What the jail looks like, and what commands in it may ask of the kernel."""

    __slots__ = (
        "confinement",
        "denied",
        "filters",
        "fresh_processes",
        "host_ports",
        "mounts",
        "private",
        "reuse",
        "shared",
        "sockets",
        "spare",
        "unlisted",
    )

    def __init__(  # noqa: PLR0913 - the fields of one message
        self,
        mounts: list[tuple[bytes, bytes, bytes]],
        filters: list[bytes],
        *,
        fresh_processes: bool = True,
        shared: int = 0,
        host_ports: list[bytes] | None = None,
        confinement: bytes = b"",
        sockets: list[bytes] | None = None,
        denied: list[bytes] | None = None,
        unlisted: list[list[bytes]] | None = None,
        spare: bool = True,
        reuse: bool = True,
        private: int = 0,
    ) -> None:
        """Take mounts as operation, target, source.

        ``confinement`` names the usual filter, which comes before the others; empty for none.
        ``shared`` counts the first descriptors: the namespaces of the session that an earlier jail has made.
        ``host_ports`` are those of the host that are to be reached inside at the same address. ``sockets`` are
        patterns of the unix sockets that may be reached by path, ``denied`` of those that may not in any case.
        ``unlisted`` are lists of a directory and of names in it that are not listed.
        ``spare``: a next command is expected. ``reuse``: copies of the mounts may serve one command after another.
        ``private`` counts the descriptors behind those of ``shared``: the session's version of its private place.
        """
        self.mounts = mounts
        self.filters = filters
        self.fresh_processes = fresh_processes
        self.shared = shared
        self.host_ports = host_ports or []
        self.confinement = confinement
        self.sockets = sockets or []
        self.denied = denied or []
        self.unlisted = unlisted or []
        self.spare = spare
        self.reuse = reuse
        self.private = private

    def packet(self) -> Packet:
        """Write it."""
        flags = bytes((self.fresh_processes, self.shared, self.spare, self.reuse, self.private))
        lists = [pack(texts) for texts in (self.filters, self.host_ports, self.sockets, self.denied)]
        lists.append(pack([pack(names) for names in self.unlisted]))
        return Packet(BUILD, 0, pack([flags, _mounts(self.mounts), self.confinement, *lists]))

    @classmethod
    def read(cls, packet: Packet) -> Build:
        """Read it."""
        flags, mounts, confinement, filters, host_ports, sockets, denied, unlisted = packet.fields()
        return cls(
            _read_mounts(mounts),
            unpack(filters),
            fresh_processes=bool(flags[0]),
            shared=flags[1],
            host_ports=unpack(host_ports),
            confinement=confinement,
            sockets=unpack(sockets),
            denied=unpack(denied),
            unlisted=[unpack(names) for names in unpack(unlisted)],
            spare=bool(flags[2]),
            reuse=bool(flags[3]),
            private=flags[4],
        )


class Ready:
    """The jail stands. ``alone`` and ``common`` say why there is no supervisor, and no private place."""

    __slots__ = ("alone", "common", "launcher", "private", "terminals")

    def __init__(
        self,
        alone: bytes,
        common: bytes,
        launcher: tuple[int, ...],
        terminals: tuple[int, ...] = (),
        private: tuple[int, ...] = (),
    ) -> None:
        """Take descriptors: of the launcher, of what makes terminals, of the private place for the next jail."""
        self.alone = alone
        self.common = common
        self.launcher = launcher
        self.terminals = terminals
        self.private = private

    def packet(self) -> Packet:
        """Write it."""
        body = pack([self.alone, self.common])
        return Packet(READY, len(self.private), body, (*self.launcher, *self.private, *self.terminals))

    @classmethod
    def read(cls, packet: Packet) -> Ready:
        """Read it."""
        alone, common = packet.fields()
        end = 1 + packet.number
        given = packet.descriptors
        return cls(alone, common, given[:1], given[end:], given[1:end])


class Shared:
    """What a builder made that all jails of the session use: namespaces if they are new, and entrances."""

    __slots__ = ("entrances", "namespaces", "sockets")

    def __init__(self, namespaces: tuple[int, ...], entrances: list[bytes], sockets: tuple[int, ...]) -> None:
        """Take descriptors, and a label for each socket, before labels that have none."""
        self.namespaces = namespaces
        self.entrances = entrances
        self.sockets = sockets

    def packet(self) -> Packet:
        """Write it."""
        return Packet(SHARED, len(self.namespaces), pack(self.entrances), (*self.namespaces, *self.sockets))

    @classmethod
    def read(cls, packet: Packet) -> Shared:
        """Read it."""
        count = packet.number
        return cls(packet.descriptors[:count], packet.fields(), packet.descriptors[count:])


class Run:
    """One command.

    ``passed`` are the numbers at which the command finds the pipes that come last of its descriptors.
    """

    __slots__ = ("argv", "directory", "environment", "flags", "groups", "limits", "passed")

    def __init__(
        self,
        argv: list[bytes],
        environment: dict[bytes, bytes],
        directory: bytes,
        flags: int = 0,
        limits: list[tuple[int, int]] | None = None,
        groups: int = 0,
    ) -> None:
        """Take limits as resource and value, both of setrlimit(2).

        ``groups`` counts the descriptors behind the three streams: control groups that the command joins.
        """
        self.argv = argv
        self.environment = environment
        self.directory = directory
        self.flags = flags
        self.limits = limits or []
        self.groups = groups
        self.passed: list[int] = []

    def packet(self, number: int, descriptors: tuple[int, ...]) -> Packet:
        """Write it, with the three standard streams and what is behind them."""
        environment = b"\0".join([b"%b=%b" % pair for pair in self.environment.items()])
        limits = pack([_integer(part) for limit in self.limits for part in limit])
        numbers = b"".join([_integer(part) for part in (self.flags, self.groups, *self.passed)])
        fields = [numbers, self.directory, pack(self.argv), environment, limits]
        return Packet(RUN, number, pack(fields), descriptors)

    @classmethod
    def read(cls, packet: Packet) -> Run:
        """Read it."""
        own, directory, argv, environment, limits = packet.fields()
        variables = [part.partition(b"=") for part in environment.split(b"\0")] if environment else []
        numbers = [_number(part) for part in unpack(limits)]
        flags, groups, *passed = [_number(own[at : at + _WORD]) for at in range(0, len(own), _WORD)]
        run = cls(
            unpack(argv),
            {name: value for name, _, value in variables},
            directory,
            flags,
            list(zip(numbers[::2], numbers[1::2], strict=True)),
            groups,
        )
        run.passed = passed
        return run


class Ended:
    """How a command ended: status of wait(2), processor time in microseconds, memory in KiB."""

    __slots__ = ("alone", "peak_memory", "status", "system_time", "user_time")

    def __init__(self, status: int, user_time: int, system_time: int, peak_memory: int, *, alone: bool = True) -> None:
        """Take ``alone`` as: nothing that the command started was left when it ended."""
        self.status = status
        self.user_time = user_time
        self.system_time = system_time
        self.peak_memory = peak_memory
        self.alone = alone

    def packet(self, number: int) -> Packet:
        """Write it."""
        values = (self.status, self.user_time, self.system_time, self.peak_memory, int(self.alone))
        return Packet(ENDED, number, b"".join(map(_integer, values)))

    @classmethod
    def read(cls, packet: Packet) -> Ended:
        """Read it."""
        values = [_number(packet.body[at : at + _WORD]) for at in range(0, 5 * _WORD, _WORD)]
        return cls(*values[:4], alone=bool(values[4]))


class Refused:
    """What the walls refused to a command: what it tried, where, and how often; an empty place stands for many."""

    __slots__ = ("operation", "place", "times")

    def __init__(self, operation: bytes, place: bytes, times: int = 1) -> None:
        """Take the operation as one of the words of ``calls``."""
        self.operation = operation
        self.place = place
        self.times = times

    def packet(self, number: int) -> Packet:
        """Write it."""
        return Packet(REFUSED, number, pack([_integer(self.times), self.operation, self.place]))

    @classmethod
    def read(cls, packet: Packet) -> Refused:
        """Read it."""
        times, operation, place = packet.fields()
        return cls(operation, place, _number(times))


class Covered:
    """Covers fell because the host replaced what they lay on, and were laid again.

    ``uncovered`` are places that were missing for a while, so that a command may have made what is there now.
    ``hopeless`` is a place that cannot be covered any more, for which the commands were ended; empty if there is none.
    """

    __slots__ = ("hopeless", "uncovered")

    def __init__(self, uncovered: list[bytes], hopeless: bytes = b"") -> None:
        """Take paths."""
        self.uncovered = uncovered
        self.hopeless = hopeless

    def packet(self) -> Packet:
        """Write it."""
        return Packet(COVERED, 0, pack([self.hopeless, *self.uncovered]))

    @classmethod
    def read(cls, packet: Packet) -> Covered:
        """Read it."""
        hopeless, *uncovered = packet.fields()
        return cls(uncovered, hopeless)


class Failed:
    """What could not be done: the kernel's error number, the step, and the path if there is one."""

    __slots__ = ("error", "path", "step")

    def __init__(self, error: int, step: bytes, path: bytes = b"") -> None:
        """Take the step in words."""
        self.error = error
        self.step = step
        self.path = path

    @classmethod
    def of(cls, step: bytes, error: BaseException) -> Failed:
        """Describe an exception."""
        if not isinstance(error, OSError):
            return cls(0, step, repr(error).encode(errors="replace"))
        path = error.filename if isinstance(error.filename, bytes) else b""
        return cls(error.errno or 0, step, path)

    def packet(self, number: int) -> Packet:
        """Write it."""
        return Packet(FAILED, number, pack([_integer(self.error), self.step, self.path]))

    @classmethod
    def read(cls, packet: Packet) -> Failed:
        """Read it."""
        error, step, path = packet.fields()
        return cls(_number(error), step, path)

    def text(self) -> str:
        """Say it in one line."""
        reason = os.strerror(self.error) if self.error else "unexpected"
        return ": ".join(part for part in (self.step.decode(), os.fsdecode(self.path), reason) if part)

    def exit_status(self) -> int:
        """Return what a shell returns: 127 for no such program, 126 for one that cannot be run; 125 is our failure."""
        if self.step != EXEC:
            return 125
        return 127 if self.error == ENOENT else 126


def empty(kind: bytes, number: int = 0) -> Packet:
    """Say something that needs no more words."""
    return Packet(kind, number)


def flushed_packet(number: int, *, more: bool) -> Packet:
    """Say that nothing is left to be said of a command; ``more``: of another one there may be."""
    return Packet(FLUSHED, number, b"+" if more else b"")


def assigned_packet(listener: int, number: int) -> Packet:
    """Say to which command a listener was assigned."""
    return Packet(ASSIGNED, listener, _integer(number))


def read_assigned(packet: Packet) -> int:
    """Read which command it was."""
    return _number(packet.body)


def signal_packet(number: int, signal: int) -> Packet:
    """Ask that a signal be passed on to a command."""
    return Packet(SIGNAL, number, _integer(signal))


def read_signal(packet: Packet) -> int:
    """Read which signal is to be passed on."""
    return _number(packet.body)


def guests_packet(count: int, *, receiving: bool) -> Packet:
    """Tell how many visitors a launcher has, and whether it takes more."""
    return Packet(GUESTS, count, bytes((receiving,)))


def read_guests(packet: Packet) -> tuple[int, bool]:
    """Read how many visitors there are, and whether more may come."""
    return packet.number, bool(packet.body[0])


def _mounts(mounts: list[tuple[bytes, bytes, bytes]]) -> bytes:
    return pack([part for mount in mounts for part in mount])


def _read_mounts(data: bytes) -> list[tuple[bytes, bytes, bytes]]:
    parts = unpack(data)
    return list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
