"""A repository in the making: the ``.git`` that commands make at the root of a writable tree, before the host has it.

``git init`` is the first thing that an agent does, and whatever a command writes into a new ``.git`` git on the host
would obey at once. So a missing ``.git`` is held by a directory of ours, and inside it, on the host, lies the *stage*.
Commands see the stage in the place of ``.git`` and make their repository there. To git on the host ``.git`` is no
repository all the while, for it has no ``HEAD``.

When no command runs any more, the repository becomes the project's: everything but ``HEAD`` moves up into ``.git``, the
inspection looks at it as at any other repository, and ``HEAD`` follows last. The rules:

- Each sandbox that has commands which see the stage holds it locked (flock(2)), and its keeper holds the same lock.
  Only who gets the lock alone moves anything: no command of anybody's has a file in there open then.
- Every step is one rename, and a death between two of them leaves all files where the next start finds them
  (``recovery``): ``HEAD`` tells whether it is done.
- What the host made in ``.git`` meanwhile is the host's. A stage that finds a ``HEAD`` there is set aside.
"""

from __future__ import annotations

import fcntl
import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.filesystem.finding import Finding
from stockade.placeholder import STAGE
from stockade.platforms.linux.journal import lock
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The stage's own name in ``.git``. Git looks for no such name.
NAME: Final = STAGE
_HEAD: Final = "HEAD"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSED: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ATTEMPTS: Final = 20
_PATIENCE: Final = 10.0
#: No honest ``.git`` has more entries at its top.
_MOST: Final = 1000
_TAKEN: Final = "the host has a repository there already"
_STRANGE: Final = "it could not become the repository of this directory"


class Stage:
    """The stage of one ``.git``, locked together with others who use it."""

    def __init__(self, git: str, outer: int, inner: int) -> None:
        """Take descriptors of ``.git`` and of the stage over; see ``open_stage``."""
        self.git = git
        self._outer = outer
        self._inner = inner
        #: Whether something that nobody has looked at may lie in ``.git``.
        self._moved = False

    def fileno(self) -> int:
        """Return what a process must have a copy of to keep the lock even if this one is killed."""
        return self._inner

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
        return not os.listdir(self._inner)

    def hold(self) -> None:
        """Hold it together with others, for a command is about to see it; raise if somebody has it alone for long."""
        if lock(self._inner, fcntl.LOCK_SH, _PATIENCE) is False:
            message = f"another sandbox is still looking at the repository that commands made in {escape(self.holder)}"
            raise UnavailableError(message, "try again in a moment")

    def take(self) -> bool:
        """Try to have it alone, now that no command of this session can come; if that fails it is not held at all."""
        # Without a name somebody else has finished it.
        return lock(self._inner, fcntl.LOCK_EX, 0) is True and self.is_there()

    def rest(self) -> None:
        """Hold it no more until the next command: who is last of several sandboxes makes it the project's."""
        lock(self._inner, fcntl.LOCK_UN, 0)

    def is_raised(self) -> bool:
        """Tell whether something was moved up already, by somebody who did not come to an end with it."""
        self._moved = bool(self._names() - {NAME})
        return self._moved

    def raise_up(self) -> list[Finding]:
        """Move everything but ``HEAD`` up, for the inspection to look at; who calls has it alone.

        What cannot be moved is no repository: then all of it is set aside, and that is returned. Nothing stays behind
        that nobody has looked at: whoever makes a ``HEAD`` later would have a repository of it.
        """
        try:
            names = _listed(self._inner)
            if names is None:
                return self._give_up("it has more entries than any repository")
            if NAME in names:
                return self._give_up(f"it holds {NAME} itself")
            there = self._names()
            if _HEAD in there or not there.isdisjoint(names):
                return self._give_up(_TAKEN)
            for name in names:
                if name != _HEAD:
                    self._move(name)
            return [] if set(os.listdir(self._inner)) <= {_HEAD} else self._give_up(_TAKEN)
        except OSError as error:
            return self._give_up(f"{_STRANGE} ({error.strerror})")

    def finish(self, findings: Iterable[Finding] = ()) -> list[Finding]:
        """Make it the repository of its directory, unless the inspection left something that git would obey there."""
        if any(finding.failure and (not finding.path or self._holds(finding.path)) for finding in findings):
            return self._set_all_aside()
        try:
            if _exists(self._inner, _HEAD):
                if _exists(self._outer, _HEAD):
                    return self._set_aside(_TAKEN)
                if not _is_file_or_link(self._inner, _HEAD):
                    # Git on the host would wait for a pipe.
                    return self._set_all_aside("its HEAD is no file", headless=True)
                self._move(_HEAD)
        except OSError:
            return self._set_all_aside()
        self._remove()
        return []

    def close(self) -> None:
        """Let go; an empty stage that nobody else uses goes with it. May be called again."""
        if self._inner < 0:
            return
        with suppress(OSError):
            if self.take() and self.is_empty():
                self._remove()
        lock(self._inner, fcntl.LOCK_UN, 0)
        os.close(self._inner)
        os.close(self._outer)
        self._inner = self._outer = -1

    def is_there(self) -> bool:
        """Tell whether it still has its name: somebody else may have taken it up, or have set all of it aside."""
        try:
            named = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(named, os.fstat(self._inner))

    def _names(self) -> set[str]:
        """Return what is in ``.git``; its descriptor only names it."""
        listed = os.open(".", _DIRECTORY, dir_fd=self._outer)
        try:
            return set(os.listdir(listed))
        finally:
            os.close(listed)

    def _move(self, name: str) -> None:
        self._moved = True
        try:
            os.rename(name, name, src_dir_fd=self._inner, dst_dir_fd=self._outer)
        except PermissionError:
            # A directory moves only if it can be written, and a command may have closed it.
            if not stat.S_ISDIR(os.stat(name, dir_fd=self._inner, follow_symlinks=False).st_mode):
                raise
            directory = os.open(name, _PASSED, dir_fd=self._inner)
            try:
                os.chmod(f"/proc/self/fd/{directory}", stat.S_IRWXU)
            finally:
                os.close(directory)
            os.rename(name, name, src_dir_fd=self._inner, dst_dir_fd=self._outer)

    def _remove(self) -> None:
        with suppress(OSError):
            os.rmdir(NAME, dir_fd=self._outer)

    def _holds(self, path: str) -> bool:
        return f"{path}/".startswith(f"{self.git}/")

    def _set_aside(self, why: str) -> list[Finding]:
        """Give the stage a name that nobody looks for."""
        try:
            kept = _renamed(self.git, NAME)
        except OSError as error:
            return [Finding(self.git, "", why, error.strerror or "it is gone")]
        # What the host has there must make room, and is not lost.
        room = f"{self.git}.host"
        back = f"mv -nT -- {_word(self.git)} {_word(room)} && mv -T -- {_word(f'{room}/{kept}')} {_word(self.git)}"
        return [Finding(self.git, f"{self.git}/{kept}", why, back=back)]

    def _give_up(self, why: str) -> list[Finding]:
        """Set the stage aside; with all of ``.git``, unless that holds anything of the host's."""
        if not _exists(self._outer, _HEAD) and (self._moved or self._names() <= {NAME}):
            return self._set_all_aside(why)
        return self._set_aside(why)

    def _set_all_aside(self, why: str = _STRANGE, *, headless: bool = False) -> list[Finding]:
        """Give ``.git`` itself such a name, with all that is in it; ``headless``: what is left on the stage is no use.

        From then on a command can make another repository there.
        """
        try:
            kept = f"{self.holder.rstrip('/')}/{_renamed(self.holder, '.git')}"
        except OSError as error:
            return [Finding(self.git, "", why, error.strerror or "it is gone")]
        aside, staged, git = _word(kept), _word(f"{kept}/{NAME}"), _word(self.git)
        if headless:
            back = f"rm -rf -- {staged} && mv -T -- {aside} {git} && git -C {_word(self.holder)} init"
        elif self._moved:
            # Nothing is replaced: what cannot move lets the next step fail.
            gathered = f"find {staged} -mindepth 1 -maxdepth 1 -exec mv -n -t {aside} -- {{}} +"
            back = f"{gathered} && rmdir -- {staged} && mv -T -- {aside} {git}"
        else:
            back = f"mv -T -- {staged} {git} && rmdir -- {aside}"
        return [Finding(self.git, kept, why, back=back)]

    def follow(self, findings: Iterable[Finding], ended: Iterable[Finding]) -> list[Finding]:
        """Return what was found in ``.git``, as it is to be told now that ``finish`` has ``ended`` so.

        If all of ``.git`` was set aside, what had been set aside in it went along.
        """
        aside = next((one.kept for one in ended if one.kept and not self._holds(one.kept)), "")
        return [one if not aside or not self._holds(one.path) else self._moved_along(one, aside) for one in findings]

    def _moved_along(self, finding: Finding, aside: str) -> Finding:
        path = aside + finding.path.removeprefix(self.git)
        if not finding.kept:
            return finding.but(path=path)
        kept = aside + finding.kept.removeprefix(self.git)
        return finding.but(kept=kept, back=f"mv -nT -- {_word(kept)} {_word(path)}")


def _renamed(directory: str, name: str) -> str:
    """Give an entry of a directory a name that nobody looks for, and return that."""
    from stockade.filesystem.handle import Handle

    handle = Handle.reach(directory)
    if handle is None:
        raise FileNotFoundError
    with handle:
        return handle.set_aside(name)


def _word(path: str) -> str:
    from stockade.platforms.linux.aside import shell_word

    return shell_word(path)


def open_stage(git: str, *, make: bool = True) -> Stage | None:
    """Open the stage in a ``.git`` that is held, and lock it together with others; ``None`` if that cannot be."""
    try:
        outer = os.open(git, _PASSED)
    except OSError:
        return None
    if os.readlink(f"/proc/self/fd/{outer}") != git:  # by way of a link
        os.close(outer)
        return None
    try:
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
        return os.open(NAME, _DIRECTORY, dir_fd=outer)
    except FileNotFoundError:
        return None


def _listed(directory: int) -> list[str] | None:
    with os.scandir(directory) as entries:
        names = [entry.name for entry, _ in zip(entries, range(_MOST + 1), strict=False)]
    return names if len(names) <= _MOST else None


def _exists(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_file_or_link(directory: int, name: str) -> bool:
    mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


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

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a process must have copies of to keep all stages."""
        return tuple(stage.fileno() for stage in self._stages.values())

    def are_waiting(self) -> bool:
        """Tell whether commands have made something on one of them."""
        return any(stage.is_there() and not stage.is_empty() for stage in self._stages.values())

    def raise_up(self) -> tuple[list[Stage], list[Finding]]:
        """Move what commands have made up to where it can be looked at; none of this session's runs any more.

        Return the stages of that kind, which must be finished, and what could not be moved.
        """
        raised: list[Stage] = []
        found: list[Finding] = []
        for stage in self._stages.values():
            if stage.is_empty() or not stage.take():
                continue
            failed = stage.raise_up()
            found += failed
            if not failed:
                raised.append(stage)
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
