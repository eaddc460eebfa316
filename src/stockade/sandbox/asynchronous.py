"""The sandbox for asyncio: ``async with Sandbox(policy) as sandbox: done = await sandbox.run("make")``."""

from __future__ import annotations

import asyncio

from stockade.annotation import TYPE_CHECKING, Final, Self
from stockade.errors import StockadeError, UnavailableError
from stockade.sandbox.asker import NOTHING, settled
from stockade.sandbox.capture import exceeded
from stockade.sandbox.limits import Limit
from stockade.sandbox.plumbing import PIPE, Plumbing
from stockade.sandbox.session import NO_LIMITS, Running, Session
from stockade.sandbox.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from stockade.network.gate import Ask
    from stockade.network.proxy_process import Question
    from stockade.platforms.backend import Observe, Walls
    from stockade.policy.live import LivePolicy
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.capture import Capture
    from stockade.sandbox.limits import Limits
    from stockade.sandbox.process import Process
    from stockade.sandbox.result import Result
    from stockade.sandbox.wrapped import Wrapped
    from stockade.violations.store import Violations


class _TaskAsker:
    """Puts each question in a task of its own; see ``stockade.sandbox.asker``."""

    def __init__(self, ask: Ask, answer: Callable[[int, str, str], None]) -> None:
        self._ask = ask
        self._answer = answer
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, question: Question) -> None:
        task = asyncio.ensure_future(self._put(question))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _put(self, question: Question) -> None:
        answer: object
        try:
            answer = await self._ask(question.host, question.port, question.command)
        except Exception as error:  # noqa: BLE001 - a stranger's callback
            answer = error
        self._answer(*settled(question.number, answer))

    def take(self) -> list[tuple[int, str, str]]:
        return []

    def fileno(self) -> int:
        return NOTHING

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


#: Seconds without a command after which the host gets the names back that are kept from being made.
IDLE: Final = 5.0


class Sandbox:
    """One sandbox. Many may live in one process, each with its own policy; many commands may run in each."""

    def __init__(  # noqa: PLR0913 - options of one sandbox, all named
        self,
        policy: SandboxPolicy | LivePolicy,
        *,
        ask: Ask | None = None,
        limits: Limits = NO_LIMITS,
        environment: Mapping[str, str] | None = None,
        name_servers: Sequence[str] = (),
        observe: Observe = "auto",
        walls: Callable[[str], Walls] | None = None,
    ) -> None:
        """Take a policy; nothing is started before ``open``. A ``LivePolicy`` is followed for as long as it is open.

        ``ask`` is awaited with host, port and the id of the command for each destination that no rule is about; what
        it returns decides, and an error denies. ``limits`` hold for every command. ``environment`` is the host's
        environment that commands start from, this process's own by default. ``name_servers``, such as
        ``127.0.0.1:5353``, resolve the names of allowed hosts instead of this system. ``observe`` is how much of what
        the walls refuse to change is told as violations: ``on`` is all and costs every change of a file some time,
        ``off`` is nothing, ``auto`` leaves out what is changed by descriptors. ``walls`` replaces what builds the
        walls, for other platforms and tests.
        """
        from stockade.platforms.walls import walls_of

        self._session = Session(
            policy,
            walls or walls_of(observe),
            host=environment,
            limits=limits,
            asker=None if ask is None else _TaskAsker(ask, self._answer),
            name_servers=tuple(name_servers),
        )
        self._ended: dict[int, asyncio.Future[None]] = {}
        self._opening: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._looking: asyncio.TimerHandle | None = None

    @property
    def policy(self) -> SandboxPolicy:
        """The policy that the next command gets."""
        return self._session.policy

    @property
    def temporary(self) -> str:
        """The session's own temporary directory, which every command finds as TMPDIR."""
        return self._session.temporary

    @property
    def violations(self) -> Violations:
        """What was refused to the commands of this session."""
        return self._session.violations

    async def __aenter__(self) -> Self:
        """Open."""
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, whatever happened."""
        await self.close()

    async def open(self) -> None:
        """Build the walls. Calls at the same time share one attempt; a failed one may be repeated."""
        if self._loop is not None:
            return
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        opening = self._opening
        try:
            await asyncio.shield(opening)
        finally:
            if opening.done():
                self._opening = None

    async def run(  # noqa: PLR0913 - options of one call, all named
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - ends the whole tree, which a cancelled task alone cannot
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        limits: Limits = NO_LIMITS,
        on_output: Callable[[bytes], None] | None = None,
        command_id: str = "",
    ) -> Result:
        """Run a command and wait until it and all that it started are gone.

        A text is read by a shell; a list of words is run as it stands. ``timeout`` in seconds. Cancelling the
        task ends the command. ``on_output`` is told each piece of output as it comes. ``command_id`` is how violations
        and questions name it; one is made up if none is given.
        """
        loop = self._opened()
        streams = Streams(stdin, on_output)
        try:
            running = self._session.start(
                command, streams.numbers, cwd=cwd, env=env, limits=limits, command_id=command_id
            )
        except BaseException:
            streams.finish()
            raise
        streams.hand_over()
        self._look()
        ended = loop.create_future()
        self._ended[running.ticket] = ended
        captures = streams.captures
        for capture in captures:
            loop.add_reader(capture.reader, self._hear, loop, capture, captures, running)
        timer = None if timeout is None else loop.call_later(timeout, self._session.end, running, Limit.TIME)
        try:
            await self._until(ended, running)
        finally:
            if timer is not None:
                timer.cancel()
            for capture in captures:
                loop.remove_reader(capture.reader)
            texts = streams.finish()
        return running.result(*texts)

    async def spawn(  # noqa: PLR0913 - options of one call, all named
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits = NO_LIMITS,
        stdin: int | None = None,
        stdout: int | None = PIPE,
        stderr: int | None = PIPE,
        pty: bool = False,
        command_id: str = "",
        line: str = "",
    ) -> Process:
        """Start a command and talk to it while it runs: ``async with await sandbox.spawn(...) as process``.

        A stream is ``PIPE``, an open descriptor, or ``None`` for nothing; ``stderr`` may be ``STDOUT``. With ``pty``
        the command gets a terminal of its own instead, ``process.stdin`` and ``process.stdout`` are its other end,
        and the streams asked for do not matter. If the command cannot be started, ``wait`` raises. ``line`` is what
        violations and the result call the command, where that is not what is run.
        """
        from stockade.sandbox.process import Process

        loop = self._opened()
        streams = Plumbing.terminal(*self._session.open_terminal()) if pty else Plumbing.lay(stdin, stdout, stderr)
        try:
            running = self._session.start(
                command,
                streams.inside,
                cwd=cwd,
                env=env,
                limits=limits,
                terminal=pty,
                command_id=command_id,
                line=line,
            )
        except BaseException:
            streams.close()
            raise
        streams.give_up_inside()
        self._look()
        ended = self._ended[running.ticket] = loop.create_future()
        return Process(self._session, running, ended, streams)

    def wrap(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Wrapped:
        """Return words, and a line, that any other program of this user may run to run a command in this session.

        The environment is as for ``run``, whoever runs it; ``env`` is added. Good until the sandbox is closed.
        """
        self._opened()
        return self._session.wrap(command, cwd=cwd, env=env)

    async def update(self, policy: SandboxPolicy) -> None:
        """Use another policy: its network rules from the next request, the rest from the next command on."""
        self._session.update(policy)

    def rest(self) -> None:
        """Give the host back the names that are kept from being made, if no command runs; the next command keeps them.

        A program that is about to write such a file itself, as settings are, does this first.
        """
        self._session.rest()

    async def publish(self, host_port: int, port: int) -> int:
        """Let programs of this machine reach a server inside by ``host_port`` of their localhost, 0 for any.

        Returns the host's port. The policy must have ``allowLocalBinding``.
        """
        self._opened()
        return self._session.publish(host_port, port)

    async def close(self) -> None:
        """End every command and leave nothing behind."""
        loop, self._loop = self._loop, None
        self._rest_later()
        if self._looking is not None:
            self._looking.cancel()
        if loop is not None:
            loop.remove_reader(self._session.fileno())
        await asyncio.to_thread(self._session.close)
        gone = UnavailableError("the sandbox was closed while the command ran", "keep it open until commands end")
        for future in self._ended.values():
            if not future.done():
                future.set_exception(gone)
        self._ended.clear()

    async def _open(self) -> None:
        await asyncio.to_thread(self._session.open)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._session.fileno(), self._pump)
        self._loop = loop
        self._look()

    def _look(self) -> None:
        """Follow the settings files, if the policy is one that does, and inspect what commands leave."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        left = self._session.look()
        if left is not None and self._loop is not None:
            self._looking = self._loop.call_later(left, self._look)

    def _pump(self) -> None:
        for running in self._session.pump():
            future = self._ended.pop(running.ticket, None)
            if future is not None and not future.done():
                future.set_result(None)
        self._rest_later()

    def _answer(self, number: int, choice: str, reason: str) -> None:
        self._session.answer(number, choice, reason)

    def _rest_later(self) -> None:
        """Let go of the placeholders once nothing has run for a while, not between two commands of one job."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._loop is not None and not self._session.running:
            self._idle = self._loop.call_later(IDLE, self._session.rest)

    async def _until(self, ended: asyncio.Future[None], running: Running) -> None:
        """Wait for the end of a command; a cancelled task ends it first."""
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            if not ended.done():
                self._session.end(running)
                await asyncio.wait([ended])
            raise

    def _hear(
        self, loop: asyncio.AbstractEventLoop, capture: Capture, captures: tuple[Capture, ...], running: Running
    ) -> None:
        if not capture.read():
            loop.remove_reader(capture.reader)
        if exceeded(captures, running.limits):
            self._session.end(running, Limit.OUTPUT)

    def _opened(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            message = "the sandbox is not open"
            raise StockadeError(message, "use `async with`, or await open() first")
        return self._loop
