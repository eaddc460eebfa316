"""What all calls of a host share: the policy as it is now, the sandbox, a directory for long outputs, and a mark.

Rules: the sandbox is opened by the first call that needs it, and calls at the same time share that; where it cannot
be opened nothing stays, and the next call tries again. A live policy is looked at before every call, and followed by
the sandbox while it is open. Closing ends everything that still runs. For one event loop.
"""

from __future__ import annotations

import asyncio
import os

from stockade.annotation import TYPE_CHECKING
from stockade.errors import StockadeError, UnavailableError
from stockade.platforms.temporary import TemporaryDirectory
from stockade.sandbox import shell
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.following import live_policy
from stockade.sandbox.session import NO_LIMITS
from stockade.violations.mark import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stockade.network.gate import Ask
    from stockade.platforms.backend import Observe, Walls
    from stockade.policy.live import LivePolicy
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.limits import Limits
    from stockade.tool.ending import Run
    from stockade.tool.request import ApprovalAnswer
    from stockade.violations.store import Violations


class ToolSession:
    """See the module."""

    def __init__(
        self,
        policy: SandboxPolicy | LivePolicy,
        *,
        environment: Mapping[str, str] | None = None,
        ask: Ask | None = None,
        limits: Limits = NO_LIMITS,
        observe: Observe = "auto",
        walls: Callable[[str], Walls] | None = None,
    ) -> None:
        """Take a policy; nothing is started. The rest is as for ``Sandbox``."""
        self._live = live_policy(policy)
        self._policy: SandboxPolicy = policy if self._live is None else self._live.policy  # type: ignore[assignment]
        self.environment = dict(os.environ if environment is None else environment)
        self._sandbox = Sandbox(
            policy, ask=ask, limits=limits, environment=self.environment, observe=observe, walls=walls
        )
        #: Whether somebody is asked about hosts that no rule is about.
        self.can_ask = ask is not None
        #: What tells words of ours from a command's, for the model. No command ever gets it.
        self.mark = Mark.fresh()
        #: Answers that hold already, and can be written when no command runs inside.
        self.pending: list[ApprovalAnswer] = []
        self._open = False
        self._closed = False
        self._temporary: TemporaryDirectory | None = None
        self._told: set[str] = set() if self._live is None else set(self._live.warnings)
        self._calls = 0
        self._runs: set[Run] = set()

    @property
    def policy(self) -> SandboxPolicy:
        """The policy that the next call gets."""
        return self._policy

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox, open or not."""
        return self._sandbox

    @property
    def violations(self) -> Violations:
        """What was refused in this session."""
        return self._sandbox.violations

    @property
    def shell(self) -> str:
        """The shell that reads lines. Raises UnavailableError if there is none."""
        return shell.choose(self.environment)

    @property
    def temporary(self) -> str:
        """A directory of this session: the sandbox's own, or one for results if there is no sandbox."""
        if self._open:
            return self._sandbox.temporary
        if self._temporary is None:
            self._temporary = TemporaryDirectory.make(self.environment)
        return self._temporary.path

    @property
    def known_temporary(self) -> str:
        """The sandbox's temporary directory if it is open, else nothing."""
        return self._sandbox.temporary if self._open else ""

    async def refresh(self) -> None:
        """Look whether the settings have changed."""
        if self._live is not None:
            self._live.poll()
            if self._live.loaded.lock is not None:
                self.pending.clear()  # nobody may write them any more
            await self._follow(self._live.policy)

    async def update(self, policy: SandboxPolicy) -> None:
        """Use another policy, until the settings files say something new."""
        await self._follow(policy)

    async def ready(self) -> str:
        """Open the sandbox if it is not; return why there can be none, or nothing."""
        if self._closed:
            message = "the session of the shell tool is closed"
            raise StockadeError(message, "use it inside `async with`")
        try:
            await self._sandbox.open()
        except UnavailableError as error:
            self._open = False
            return f"{error.message}; {error.hint}" if error.hint else error.message
        self._open = True
        return ""

    def rest(self) -> None:
        """Give the host back the names of files that it is about to write, as far as no command runs inside."""
        if self._open:
            self._sandbox.rest()

    def news(self) -> tuple[str, ...]:
        """Return what people should be told about the settings and have not been."""
        fresh = tuple(text for text in (() if self._live is None else self._live.warnings) if text not in self._told)
        self._told.update(fresh)
        return fresh

    def untold(self, notes: tuple[str, ...]) -> tuple[str, ...]:
        """Return notes of the sandbox without what was told already: it follows the same settings."""
        fresh = tuple(note for note in notes if note not in self._told)
        # That the working directory is closed holds for the whole session, and once is enough.
        self._told.update(note for note in fresh if note == self.policy.files.closed)
        return fresh

    def mint(self) -> str:
        """Return an id for the next command."""
        self._calls += 1
        return f"call-{self._calls}"

    def begin(self, run: Run) -> None:
        """Know a command that runs, so that it ends with the session."""
        self._runs.add(run)

    def end(self, run: Run) -> None:
        """Forget a command that has ended."""
        self._runs.discard(run)

    async def close(self) -> None:
        """End everything and leave nothing; may be called again."""
        self._closed = True
        runs, self._open = tuple(self._runs), False
        for run in runs:
            run.kill()
        try:
            await self._sandbox.close()
            await asyncio.gather(*(run.wait() for run in runs), return_exceptions=True)
        finally:
            temporary, self._temporary = self._temporary, None
            if temporary is not None:
                temporary.remove()

    async def _follow(self, policy: SandboxPolicy) -> None:
        if policy is self._policy:
            return
        self._policy = policy
        await self._sandbox.update(policy)
