"""What every platform offers: walls that stand for a session, and commands launched inside them.

A backend does no waiting of its own, except to build walls and to take them down: whoever uses it
watches ``fileno`` and calls ``receive`` when it is readable, from a loop of any kind.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Literal, Protocol, TypeAlias
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stockade.policy.model import SandboxPolicy


#: How much of what the walls refuse is told; see ``stockade.Sandbox``.
Observe: TypeAlias = Literal["auto", "on", "off"]


class Launch(Value):
    """One command, ready to be started: every text is final, nothing is looked up any more.

    ``limits`` are pairs of a ``resource.RLIMIT_*`` number and a value. ``terminal`` makes the first stream the
    controlling terminal. ``groups`` are descriptors of the ``cgroup.procs`` that the command joins. ``passed`` are
    pipes of the caller's that the command finds open at the same numbers.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    limits: tuple[tuple[int, int], ...] = ()
    terminal: bool = False
    groups: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()


class Outcome(Value):
    """How a launched command ended.

    ``status`` is that of wait(2). Where the command could not be started at all, ``failure`` says why in one
    line, ``error`` is the kernel's number, and ``status`` is what a shell gives if it was for the program itself:
    126 or 127. A failure with a status of 0: it was started, and the walls around it were lost. A command
    on a terminal has outcomes before it ends, too: when it has ``started``, and when it was ``stopped``, as by Ctrl-Z.
    """

    ticket: int
    status: int = 0
    user_time: float = 0.0
    system_time: float = 0.0
    peak_memory: int = 0
    failure: str = ""
    error: int = 0
    state: Literal["started", "stopped", "ended"] = "ended"


class Entrance(Value):
    """A socket, bound inside the walls, at which the network of a session is served.

    ``kind`` is ``http``, ``socks``, ``transparent`` (connections that were meant for elsewhere), ``name-udp``,
    ``name-tcp``, or ``host``: what connects there is to reach ``address`` and ``port`` of the host.
    """

    kind: str
    descriptor: int
    address: str = ""
    port: int = 0


class Report(Value):
    """What the walls refused to a command: an operation by its name, a real path, and how often.

    An empty path stands for more places than are told apart. ``ticket`` is 0 for a command of a visitor. What an
    inspection found comes with its words: ``why`` it was set aside, and the ``remedy``.
    """

    ticket: int
    operation: str
    path: str
    times: int = 1
    why: str = ""
    remedy: str = ""


class Walls(Protocol):
    """The walls of one session."""

    def lend(self, cache: str, around: str) -> None:
        """Let commands write a directory that outlives the session, and hide what is around it; "" for none.

        Without such a directory ``around`` is hidden if it is there.
        Counts from the next ``renew`` on, which then has another policy, or is the first.
        """

    def renew(self, policy: SandboxPolicy) -> tuple[str, ...]:
        """Make the walls fit the policy and the disk as they are now; return notes for the user.

        Called before every command; costs next to nothing if nothing changed. Commands that run already keep
        the walls that they started with.
        """

    def launch(self, launch: Launch, streams: Sequence[int]) -> int:
        """Start a command with its three streams, which stay the caller's; return its ticket."""

    def wrap(self, launch: Launch) -> tuple[str, ...]:
        """Return words that any program of this user may run to run a command inside, while the walls stand."""

    def open_terminal(self) -> tuple[int, int]:
        """Return both ends of a new terminal, the one for a command last."""

    def rest(self) -> None:
        """Let go of what the host could stumble over while no command runs; the next command builds it anew."""

    def signal(self, ticket: int, number: int) -> None:
        """Pass a signal on to a command and what it runs in front."""

    def end(self, ticket: int) -> None:
        """End a command and everything that it started; its outcome still comes."""

    def take_entrances(self) -> tuple[Entrance, ...]:
        """Return the entrances that were opened since asked last; they are the caller's from then on."""

    def unrouted(self) -> str:
        """Return why programs that know no proxy are not carried; empty if they are."""

    def ports(self) -> tuple[int, int]:
        """Return where commands find the HTTP and the SOCKS proxy, on their localhost."""

    def open_way_in(self) -> int:
        """Return a descriptor that answers each byte, ``4`` or ``6``, with a TCP socket made inside."""

    def watch(self, descriptor: int) -> None:
        """Have ``fileno`` become readable with another descriptor as well."""

    def unwatch(self, descriptor: int) -> None:
        """Watch it no more; before it is closed."""

    def look(self) -> float | None:
        """Inspect what running commands have left, if it is time to; return the seconds until it is again, if ever."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there is something to receive."""

    def receive(self) -> tuple[Outcome, ...]:
        """Return what has ended since, or has started or stopped on a terminal. Never waits."""

    def take_reports(self) -> tuple[Report, ...]:
        """Return what was refused since asked last; all of a command's is there once its outcome was received."""

    def close(self) -> None:
        """End everything, wait for it, and leave nothing behind; may be called again."""
