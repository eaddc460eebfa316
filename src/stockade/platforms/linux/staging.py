"""A repository in the making: the ``.git`` that commands make at the root of a writable tree, before the host has it.

``git init`` is the first thing that an agent does, and whatever a command writes into a new ``.git`` git on the host
would obey at once. So a missing ``.git`` is held by a directory of ours, and inside it, on the host, lies the *stage*.
Commands see the stage in the place of ``.git`` and make their repository there. To git on the host ``.git`` is no
repository all the while, for it has no ``HEAD``. When no command runs any more, the repository becomes the project's
(``adoption``). The rules:

- Each sandbox that has commands which see the stage holds it locked (flock(2)), and its keeper holds the same lock.
  Only who gets the lock alone moves anything: no command of anybody's has a file in there open then.
- Each sandbox whose jail shows the stage, be it without a command, holds ``.git`` itself locked. The last of them
  removes a stage on which nothing was made.
- A death at any moment leaves all files where the next start finds them (``recovery``).
"""

from __future__ import annotations

import fcntl
import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.placeholder import STAGE
from stockade.platforms.linux.journal import lock
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.filesystem.finding import Finding
    from stockade.platforms.linux.adoption import Adoption

#: The stage's own name in ``.git``. Git looks for no such name.
NAME: Final = STAGE
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PASSED: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS: Final = 20
_PATIENCE: Final = 10.0


class Stage:
    """The stage of one ``.git``, locked together with others who use it."""

    def __init__(self, git: str, outer: int, inner: int) -> None:
        """Take descriptors of ``.git`` and of the stage over; see ``open_stage``."""
        self.git = git
        self.outer = outer
        self.inner = inner

    def fileno(self) -> int:
        """Return what a process must have a copy of to keep the lock even if this one is killed."""
        return self.inner

    @property
    def path(self) -> str:
        """Where it is on the host."""
        return f"{self.git}/{NAME}"

    @property
    def holder(self) -> str:
        """The directory whose repository it may become."""
        return self.git.rpartition("/")[0] or "/"

    def is_empty(self) -> bool:
        """Tell whether no command has made anything."""
        return not os.listdir(self.inner)

    def hold(self) -> None:
        """Hold it together with others, for a command is about to see it; raise if somebody has it alone for long."""
        if lock(self.inner, fcntl.LOCK_SH, _PATIENCE) is False:
            message = f"another sandbox is still looking at the repository that commands made in {escape(self.holder)}"
            raise UnavailableError(message, "try again in a moment")

    def take(self) -> bool:
        """Try to have it alone, now that no command of this session can come; if that fails it is not held at all."""
        # Without a name somebody else has finished it.
        return lock(self.inner, fcntl.LOCK_EX, 0) is True and self.is_there()

    def rest(self) -> None:
        """Hold it no more until the next command: who is last of several sandboxes makes it the project's."""
        lock(self.inner, fcntl.LOCK_UN, 0)

    def close(self) -> None:
        """Let go; an empty stage that nobody else uses goes with it. May be called again."""
        if self.inner < 0:
            return
        with suppress(OSError):
            # A request for ``.git`` alone gives up the shared lock, even if it fails. So of several who close at once,
            # the last gets it; and it finds the stage free, since each lets go of that first.
            self.rest()
            if lock(self.outer, fcntl.LOCK_EX, 0) is True and self.take() and self.is_empty():
                self.remove()
        lock(self.inner, fcntl.LOCK_UN, 0)
        os.close(self.inner)
        os.close(self.outer)
        self.inner = self.outer = -1

    def is_there(self) -> bool:
        """Tell whether it still has its name: somebody else may have taken it up, or have set all of it aside."""
        try:
            named = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self.inner))

    def remove(self) -> None:
        """Remove it, if it is empty."""
        with suppress(OSError):
            os.rmdir(NAME, dir_fd=self.outer)


def open_stage(git: str, *, make: bool = True) -> Stage | None:
    """Open the stage in a ``.git`` that is held, and lock it together with others; ``None`` if that cannot be."""
    try:
        outer = os.open(git, DIRECTORY)
    except OSError:
        return None
    if os.readlink(f"/proc/self/fd/{outer}") != git:  # by way of a link
        os.close(outer)
        return None
    try:
        lock(outer, fcntl.LOCK_SH, _PATIENCE)
        for _ in range(_ATTEMPTS):
            inner = _opened(outer, make=make)
            if inner is None:
                break
            stage = Stage(git, outer, inner)
            if lock(inner, fcntl.LOCK_SH, _PATIENCE) and stage.is_there():
                return stage
            os.close(inner)
    except OSError:
        pass
    os.close(outer)
    return None


def _opened(outer: int, *, make: bool) -> int | None:
    """Open the stage; make it if it is not there."""
    if make:
        with suppress(FileExistsError):
            os.mkdir(NAME, dir_fd=outer)
    try:
        return os.open(NAME, DIRECTORY, dir_fd=outer)
    except FileNotFoundError:
        return None


class Stages:
    """All of them, each open for as long as a jail shows it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._stages: dict[str, Stage] = {}

    def prepare(self, gits: Iterable[str]) -> dict[str, str]:
        """Open a stage for each of these that are held; return where they are on the host, without those that fail."""
        found: dict[str, str] = {}
        for git in gits:
            stage = self._stages.get(git)
            if stage is not None and not stage.is_there():
                stage.close()
                stage = None
            stage = stage or open_stage(git)
            if stage is None:
                self._stages.pop(git, None)
                continue
            self._stages[git] = stage
            found[git] = stage.path
        return found

    def are_there(self) -> bool:
        """Tell whether all of them still have their names: what a jail shows is of no use otherwise."""
        return all(stage.is_there() for stage in self._stages.values())

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a process must have copies of to keep all stages."""
        return tuple(stage.fileno() for stage in self._stages.values())

    def are_waiting(self) -> bool:
        """Tell whether commands have made something on one of them."""
        return any(stage.is_there() and not stage.is_empty() for stage in self._stages.values())

    def raise_up(self) -> tuple[list[Adoption], list[Finding]]:
        """Move what commands have made up to where it can be looked at; none of this session's runs any more.

        Return the adoptions that must be finished, and what could not be moved.
        """
        raised: list[Adoption] = []
        found: list[Finding] = []
        for stage in self._stages.values():
            if stage.is_empty() or not stage.take():
                continue
            from stockade.platforms.linux.adoption import Adoption

            adoption = Adoption(stage)
            failed = adoption.raise_up()
            found += failed
            if not failed:
                raised.append(adoption)
        return raised, found

    def hold(self) -> None:
        """Hold all of them: a command is about to see them."""
        for stage in self._stages.values():
            stage.hold()

    def rest(self) -> None:
        """Hold none of them until then."""
        for stage in self._stages.values():
            stage.rest()

    def keep(self, gits: Iterable[str]) -> None:
        """Let go of all stages but these."""
        needed = set(gits)
        for git in [git for git in self._stages if git not in needed]:
            self._stages.pop(git).close()
