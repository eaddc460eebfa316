"""The policy of a running session: kept up to date with the settings files, told to whoever asked.

Rules:

- ``LivePolicy.poll`` looks once; whoever runs a session calls it every ``INTERVAL`` (see ``stockade.settings.watch``).
- What is wrong with a file, in shape or in meaning, changes nothing: the last good policy stays, and the news says why.
- A policy never changes; news brings another one, and says which parts of it differ. What applies when is for the
  session to know: network rules to the next request of commands that run already, file rules to the next command.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.policy.effective import effective
from stockade.settings.watch import Watch
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.errors import StockadeError
    from stockade.policy.effective import Effective
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.document import Document
    from stockade.settings.load import Loaded, Provider
    from stockade.settings.sources import Locations
    from stockade.settings.watch import Change


class PolicyChange(Value):
    """News: the policy in force from now on, the one before, and why it is not what the files say, if it is not."""

    policy: SandboxPolicy
    before: SandboxPolicy
    warnings: tuple[str, ...] = ()
    error: StockadeError | None = None

    @property
    def parts(self) -> frozenset[str]:
        """The fields of the policy that differ: ``network``, ``files``, ...; none if only the warnings are new."""
        now, then = vars(self.policy), vars(self.before)
        return frozenset(name for name in now if now[name] != then[name])


class LivePolicy:
    """The policy of some locations, kept up to date by polling. For one thread at a time.

    Loads at once, and raises what that raises: without a policy that was good once, there is nothing to keep.
    """

    def __init__(
        self,
        locations: Locations,
        *,
        flags: Document | None = None,
        provider: Provider | None = None,
        since: Effective | None = None,
    ) -> None:
        """Take what is loaded, and how; ``since`` is what was loaded a while ago: ``reload`` then says what is new."""
        self._flags = flags
        self._provider = provider
        self._since = since
        self._news: PolicyChange | None = None
        self._watch = Watch(locations, self._load)
        self._current = self._latest
        self._warnings = self._current.warnings
        self._watch.subscribe(self._take)

    @property
    def policy(self) -> SandboxPolicy:
        """The policy in force."""
        return self._current.policy

    @property
    def loaded(self) -> Loaded:
        """The settings that it was made from."""
        return self._current.loaded

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that people should be told at the moment, one line each."""
        return self._warnings

    def poll(self) -> PolicyChange | None:
        """Look once. If anything changed that matters, tell the subscribers and return it."""
        self._news = None
        self._watch.poll()
        return self._news

    def reload(self) -> PolicyChange | None:
        """Load now, whatever the files look like: for a host whose provider has news."""
        self._news = None
        self._watch.reload()
        return self._news

    def subscribe(self, callback: Callable[[PolicyChange], object]) -> Callable[[], None]:
        """Call back with each change from now on; the function returned ends that, and may be called twice."""

        def tell(_change: Change) -> None:
            if self._news is not None:
                callback(self._news)

        return self._watch.subscribe(tell)

    def _load(self, locations: Locations) -> Loaded:
        # Raises where anything is wrong, and so the latest stays the last good one.
        since, self._since = self._since, None
        self._latest: Effective = since or effective(locations, flags=self._flags, provider=self._provider)
        return self._latest.loaded

    def _take(self, change: Change) -> None:
        """Make what was loaded the policy in force, before anybody is told of it."""
        before, self._current = self._current, self._latest
        self._warnings = (*change.warnings, *self._current.policy.notes)
        self._news = PolicyChange(self._current.policy, before.policy, self._warnings, change.error)
