"""What was refused in a session: the words of proxies and walls, made into violations and kept.

Whoever refuses knows a command by its id; its line is known here. What ``ignoreViolations`` covers is not kept.
"""

from __future__ import annotations

import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.violations.ignore import ignored
from stockade.violations.store import Violations
from stockade.violations.violation import Occasion, Operation, Violation

if TYPE_CHECKING:
    from stockade.network.proxy_process import Refused
    from stockade.platforms.backend import Report
    from stockade.policy.files import Ground
    from stockade.policy.model import SandboxPolicy

_LINES: Final = 1000


class Record:
    """One session's."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.violations = Violations()
        self._lines: dict[str, str] = {}
        self._ground: Ground | None = None

    def know(self, command: str, line: str) -> None:
        """Remember what a command was."""
        self._lines.pop(command, None)
        self._lines[command] = line
        if len(self._lines) > _LINES:
            del self._lines[next(iter(self._lines))]

    def take(self, refused: Refused, policy: SandboxPolicy) -> None:
        """Keep what a proxy or the name server has refused."""
        occasion = Occasion(time.time(), refused.command, self._lines.get(refused.command, ""), refused.times)
        self.add(network_violation(refused, occasion), policy)

    def note(self, report: Report, command: str, policy: SandboxPolicy) -> None:
        """Keep what the walls have refused, and what an inspection has set aside."""
        if report.why:
            occasion = Occasion(time.time(), command, self._lines.get(command, ""), report.times)
            operation = Operation(report.operation)
            why, remedy = report.why, report.remedy
            self.add(Violation.refused(operation, report.path, occasion, why=why, remedy=remedy), policy)
            return
        from stockade.policy.files import survey
        from stockade.policy.places import Disk
        from stockade.sandbox.wall_violation import wall_violation

        if self._ground is None or self._ground.rules is not policy.files:
            self._ground = survey(policy.files, Disk())
        occasion = Occasion(time.time(), command, self._lines.get(command, ""), report.times)
        self.add(wall_violation(report, occasion, self._ground, policy.sockets, Disk()), policy)

    def add(self, violation: Violation, policy: SandboxPolicy) -> None:
        """Keep a violation, unless the policy wants to hear nothing of it."""
        if not ignored(violation, policy.ignored_violations):
            self.violations.add(violation)


def network_violation(refused: Refused, occasion: Occasion) -> Violation:
    """Return what the proxy process said as a violation; its texts are safe already."""
    from stockade.policy.decision import Reason

    why = Reason[refused.reason].value if refused.reason else refused.words
    if refused.reason and refused.detail:
        why = f"{why}: {refused.detail}"
    operation = Operation.RESOLVE if refused.host and not refused.port else Operation.CONNECT
    plain = Violation.refused(operation, "", occasion, why=why, remedy=refused.remedy)
    return plain.but(target=refused.asked, rule=refused.rule, source=refused.origin)
