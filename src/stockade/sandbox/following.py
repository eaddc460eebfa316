"""A session's settings files, looked at while it runs.

``Session.look`` asks for news when it is time; the faces see to it that it is called. A program that is started for one
command gives a function instead of a ``LivePolicy``: what it takes to follow files is imported a second after the
command has begun, and most have ended by then.

Rules: a policy that the host has set by hand stays until the files say something new; a broken file changes nothing,
and is told once; never raises.
"""

from __future__ import annotations

import sys
import time

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.policy.live import LivePolicy
    from stockade.policy.model import SandboxPolicy

#: Seconds from the start of the first command to the first look, where a function was given.
FIRST: Final = 1.0


class Heard(Value):
    """What a look has found: the policy to use from now on, if it is another one, and what to tell people."""

    policy: SandboxPolicy | None = None
    warnings: tuple[str, ...] = ()


class Following:
    """See the module. For one session, and one thread at a time."""

    def __init__(self, source: LivePolicy | Callable[[], LivePolicy]) -> None:
        """Take what is followed, or what makes it; either begins with the policy that the session begins with."""
        self._make: Callable[[], LivePolicy] | None = None
        self._live: LivePolicy | None = None
        self._policy: SandboxPolicy | None = None
        self._told: tuple[str, ...] = ()
        self._due: float | None = None
        if callable(source):
            self._make = source
        else:
            self._take(source)
            self._due = 0.0

    def begin(self) -> None:
        """Note that a command has begun."""
        if self._due is None:
            self._due = time.monotonic() + FIRST

    def left(self) -> float | None:
        """Return the seconds until the next look, or nothing as long as none is to come."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def look(self) -> Heard:
        """Look at the files."""
        from stockade.settings.watch import INTERVAL

        self._due = time.monotonic() + INTERVAL
        if self._live is not None:
            self._live.poll()
            return self._news(self._live)
        if self._make is None:
            return Heard()
        live = self._make()
        self._take(live)
        live.reload()  # whatever has happened since its policy was loaded
        return self._news(live)

    def _take(self, live: LivePolicy) -> None:
        """Follow it from now on; what people were told when it was loaded is not told again."""
        self._live, self._policy, self._told = live, live.policy, live.warnings

    def _news(self, live: LivePolicy) -> Heard:
        """Return what is new here: another sandbox may have looked before, and had the news."""
        before, told = self._policy, self._told
        self._policy, self._told = live.policy, live.warnings
        same = before is live.policy or before == live.policy
        return Heard(None if same else live.policy, tuple(text for text in live.warnings if text not in told))


def live_policy(policy: object) -> LivePolicy | None:
    """Return a policy if it is a live one; who has none has not imported what it is."""
    module: Any = sys.modules.get("stockade.policy.live")
    return policy if module is not None and isinstance(policy, module.LivePolicy) else None
