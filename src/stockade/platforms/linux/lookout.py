"""What a session knows of the disk: the plan before a command starts, and a look at what it left when it has ended.

For the only command of a program nothing is watched: its plan is made once. Watching begins with a second command, or
with the first look at one that runs on.
"""

from __future__ import annotations

import os
from errno import ENOTDIR

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError, UnavailableError
from stockade.escape import escape
from stockade.filesystem.plan import Operation
from stockade.filesystem.scan import Scan, plan_now
from stockade.placeholder import STAGE, is_kept
from stockade.platforms.linux.inspector import Inspector
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.filesystem.finding import Finding
    from stockade.filesystem.memory import Memory
    from stockade.filesystem.plan import Plan
    from stockade.platforms.linux.cell import Cell
    from stockade.platforms.linux.placeholders import Lease
    from stockade.platforms.linux.staging import Stages
    from stockade.policy.files import FileRules

#: How the names of files begin that keep words for the next run (``stockade.platforms.linux.recovery``).
RECOVERED: Final = "recovered-"


class Lookout:
    """See the module. For one session."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self.inspector = Inspector()
        self._scan: Scan | None = None
        self._rules: FileRules | None = None
        self._memory: Memory | None = None
        self._stages: Stages | None = None
        #: The plan that was last found to have no repository left halfway.
        self._whole: Plan | None = None
        #: Directories that were missing, and are there for what is lifted in them.
        self._made: list[tuple[str, str]] = []

    # Before a command

    def plan(self, rules: FileRules, *, once: bool) -> Plan:
        """Return the plan for the disk as it is now. Raises if a rule cannot be enforced."""
        self.inspector.prepare()
        plan = self._plan(rules, once=once)
        if plan is self._whole:
            return plan  # a repository that is left halfway changes what a plan is made of
        halfway = [
            mount.path for mount in plan.mounts if mount.operation is Operation.WRITABLE and _halfway(mount.path)
        ]
        if not halfway:
            self._whole = plan
            return plan
        from stockade.platforms.linux.recovery import recover

        for root in halfway:
            with suppress(OSError):
                recover(f"{root.rstrip('/')}/.git")
        return self._plan(rules, once=once)

    def _plan(self, rules: FileRules, *, once: bool) -> Plan:
        if once:
            from stockade.filesystem.memory import Memory

            self._memory = Memory(watch=False)
            return _possible(plan_now(rules, self._memory))
        if self._scan is None:
            self._scan = Scan(rules)
            self._memory = self._scan.memory
        elif self._rules == rules:
            self._scan.refresh()
        else:
            self._scan.follow(rules)
        self._rules = rules
        return _possible(self._scan.plan)

    def recovered(self, plan: Plan) -> tuple[str, ...]:
        """Return what was done about repositories that killed sandboxes left halfway, and that nobody was told of."""
        from stockade.platforms.linux.placeholders import journal_directory

        try:
            kept = {name for name in os.listdir(journal_directory()) if name.startswith(RECOVERED)}
        except (OSError, StockadeError):
            return ()
        roots = [mount.path for mount in plan.mounts if kept and mount.operation is Operation.WRITABLE]
        told = [root for root in roots if kept_for(root) in kept]
        if not told:
            return ()
        from stockade.platforms.linux.recovery import take

        return take(told)

    def make(self, directories: Iterable[str]) -> None:
        """Make directories in which only some names are kept; one that is only kept itself becomes a real one."""
        for path in directories:
            above, _, name = path.rpartition("/")
            try:
                self._make(above, name)
            except OSError as error:
                message = f"cannot make {escape(path)}, of which allowProtected lifts something: {error.strerror}"
                raise UnavailableError(message, "make it yourself, or lift nothing in it") from error

    def _make(self, above: str, name: str) -> None:
        """Make one of them; a command of somebody's may have put a link in the way, which leads nowhere then."""
        from stockade.filesystem.handle import Handle

        handle = Handle.reach(above)
        if handle is None:
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR))
        with handle:
            try:
                os.mkdir(name, dir_fd=handle.fileno())
            except FileExistsError:
                os.utime(name, dir_fd=handle.fileno(), follow_symlinks=False)
            else:
                self._made.append((above, name))

    def take_touched(self) -> set[str]:
        """Return the paths that something happened to since this was asked last."""
        return self._scan.take_touched() if self._scan is not None else set()

    def stage(self, plan: Plan, lease: Lease) -> dict[str, str]:
        """Return where commands make repositories on the host, by the ``.git`` that each stands for."""
        wanted = {placeholder.path for placeholder in plan.placeholders if placeholder.staged}
        if not wanted:
            return {}
        if self._stages is None:
            from stockade.platforms.linux.staging import Stages

            self._stages = Stages()
        return self._stages.prepare(path for path in lease.targets if path in wanted)

    def has_lost_stages(self) -> bool:
        """Tell whether somebody else has taken a stage up, or away, that a jail shows."""
        return self._stages is not None and not self._stages.are_there()

    def get_ready(self) -> None:
        """Note what a command and a look at what it left need, while others build its jail."""
        if self._memory is not None:
            self.inspector.get_ready(self._memory, watched=self._scan is not None)

    @property
    def locks(self) -> tuple[int, ...]:
        """What the helpers of a jail must have copies of."""
        return () if self._stages is None else self._stages.descriptors

    def begin(self, cell: Cell, *, alone: bool, awaited: bool = False) -> None:
        """Note what commands in this jail cannot change; one starts now, or is ``awaited``."""
        if self._stages is not None:
            self._stages.hold()
        if self._memory is not None:
            watched = self._scan is not None
            self.inspector.begin(
                cell.plan, cell.policy.files, self._memory, watched=watched, alone=alone, awaited=awaited
            )

    # After one

    def look(self, cells: Iterable[Cell], rules: FileRules | None) -> list[Finding]:
        """Set aside what commands have left for programs of the host, and return it."""
        if not self.inspector.is_due:
            return []
        cells = tuple(cells)
        active = [cell.plan for cell in cells if cell.active]
        scan = self._scan
        with suppress(OSError, StockadeError):
            if scan is not None:
                scan.refresh()
            elif active and rules is not None and self.inspector.looked:
                # A command that runs on is worth watches. What happens before they are there is found by times.
                self._rules = rules
                self._scan = Scan(rules)
        found = self._looked(last=not active, settled=not any(cell.busy for cell in cells))
        if scan is None and self._scan is not None:
            self._memory = self._scan.memory
            self.inspector.watch(self._memory)
        self.inspector.keep(active)
        return found

    def _looked(self, *, last: bool, settled: bool) -> list[Finding]:
        """Look; once no command runs, nor can come, repositories that commands made at a root become the host's."""
        if not settled or self._stages is None:
            return self.inspector.look(last=last)
        raised, found = self._stages.raise_up()
        found += self.inspector.look(last=last, made=[adoption.stage.holder for adoption in raised])
        for adoption in raised:
            ended = adoption.finish(found)
            found = adoption.follow(found, ended) + ended
        self._stages.rest()
        return found

    def has_stages(self) -> bool:
        """Tell whether commands may have made a repository that is not the host's yet."""
        return self._stages is not None

    def is_waiting(self) -> bool:
        """Tell whether they have."""
        return self._stages is not None and self._stages.are_waiting()

    def let_go(self, lease: Lease, cells: Iterable[Cell]) -> None:
        """Let go of placeholders, and first of the stages in them that none of these jails shows."""
        if self._stages is not None:
            self._stages.keep(kept.path for cell in cells for kept in cell.plan.placeholders if kept.staged)
        lease.release()

    def close(self) -> None:
        """Stop watching, and remove what was made and holds nothing; may be called again."""
        if self._scan is not None:
            self._scan.close()
            self._scan = None
        while self._made:
            from stockade.filesystem.handle import Handle

            above, name = self._made.pop()
            with suppress(OSError):
                handle = Handle.reach(above)
                if handle is not None:
                    with handle:
                        os.rmdir(name, dir_fd=handle.fileno())


def kept_for(directory: str) -> str:
    """Return the name of the file with words about a directory, which has the numbers of that directory."""
    try:
        status = os.stat(directory, follow_symlinks=False)
    except OSError:
        return ""
    return f"{RECOVERED}{status.st_dev:x}-{status.st_ino:x}"


def _halfway(root: str) -> bool:
    """Tell whether a repository at a root was about to become the host's, and nobody may have looked at it.

    Who was killed at that has it journaled, but no journal outlives the machine. To a plan it would be the host's.
    """
    git = f"{root.rstrip('/')}/.git"
    return os.path.lexists(f"{git}/{STAGE}") and not os.path.lexists(f"{git}/HEAD") and not is_kept(git)


def _possible(plan: Plan) -> Plan:
    """Return the plan, or raise if something that the rules ask for cannot be enforced."""
    if plan.refusals:
        raise UnavailableError(plan.refusals[0], "change the rule, or name the places that it is about")
    return plan
