"""How a repository that commands made on a stage becomes the project's.

Everything but ``HEAD`` moves up into ``.git``, the inspection looks at it as at any other repository, and ``HEAD``
follows last. The rules:

- Who does it has the stage alone.
- Every step is one rename, and a death between two of them leaves all files where the next start finds them
  (``recovery``): ``HEAD`` tells whether it is done.
- What the host made in ``.git`` meanwhile is the host's. A stage that finds a ``HEAD`` there is set aside.
- The report of what was set aside has a line that takes it back.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.finding import Finding
from stockade.filesystem.handle import Handle
from stockade.platforms.linux.aside import shell_word
from stockade.platforms.linux.staging import DIRECTORY, NAME, PASSED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.platforms.linux.staging import Stage

_HEAD: Final = "HEAD"
#: No honest ``.git`` has more entries at its top.
_MOST: Final = 1000
_TAKEN: Final = "the host has a repository there already"
_STRANGE: Final = "it could not become the repository of this directory"


class Adoption:
    """What becomes of one stage."""

    def __init__(self, stage: Stage) -> None:
        """Take a stage that this process has alone."""
        self.stage = stage
        #: Whether something that nobody has looked at may lie in ``.git``.
        self._moved = False

    def is_raised(self) -> bool:
        """Tell whether something was moved up already, by somebody who did not come to an end with it."""
        self._moved = bool(self._names() - {NAME})
        return self._moved

    def raise_up(self) -> list[Finding]:
        """Move everything but ``HEAD`` up, for the inspection to look at; who calls has it alone.

        What cannot be moved is no repository: then all of it is set aside, and that is returned. Nothing stays behind
        that nobody has looked at: with a ``HEAD`` that comes later it would be a repository.
        """
        try:
            names = _listed(self.stage.inner)
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
            return [] if set(os.listdir(self.stage.inner)) <= {_HEAD} else self._give_up(_TAKEN)
        except OSError as error:
            return self._give_up(f"{_STRANGE} ({error.strerror})")

    def finish(self, findings: Iterable[Finding] = ()) -> list[Finding]:
        """Make it the repository of its directory, unless the inspection left something that git would obey there."""
        if any(finding.failure and (not finding.path or self._holds(finding.path)) for finding in findings):
            return self._set_all_aside()
        try:
            if _exists(self.stage.inner, _HEAD):
                if _exists(self.stage.outer, _HEAD):
                    return self._set_aside(_TAKEN)
                if not _is_file_or_link(self.stage.inner, _HEAD):
                    # Git on the host would wait for a pipe.
                    return self._set_all_aside("its HEAD is no file", headless=True)
                self._move(_HEAD)
            elif not _exists(self.stage.outer, _HEAD):
                # Its hooks would be protected from now on, and no `git init` could complete it.
                return self._set_all_aside("it has no HEAD, and git takes it for no repository", headless=True)
        except OSError:
            return self._set_all_aside()
        self.stage.remove()
        return []

    def _names(self) -> set[str]:
        """Return what is in ``.git``; its descriptor only names it."""
        listed = os.open(".", DIRECTORY, dir_fd=self.stage.outer)
        try:
            return set(os.listdir(listed))
        finally:
            os.close(listed)

    def _move(self, name: str) -> None:
        self._moved = True
        try:
            os.rename(name, name, src_dir_fd=self.stage.inner, dst_dir_fd=self.stage.outer)
        except PermissionError:
            # A directory moves only if it can be written, and a command may have closed it.
            if not stat.S_ISDIR(os.stat(name, dir_fd=self.stage.inner, follow_symlinks=False).st_mode):
                raise
            directory = os.open(name, PASSED, dir_fd=self.stage.inner)
            try:
                os.chmod(f"/proc/self/fd/{directory}", stat.S_IRWXU)
            finally:
                os.close(directory)
            os.rename(name, name, src_dir_fd=self.stage.inner, dst_dir_fd=self.stage.outer)

    def _holds(self, path: str) -> bool:
        return f"{path}/".startswith(f"{self.stage.git}/")

    def _set_aside(self, why: str) -> list[Finding]:
        """Give the stage a name that nobody looks for."""
        try:
            kept = _renamed(self.stage.git, NAME)
        except OSError as error:
            return [Finding(self.stage.git, "", why, error.strerror or "it is gone")]
        # What the host has there must make room, and is not lost.
        git, room = shell_word(self.stage.git), f"{self.stage.git}.host"
        back = f"mv -nT -- {git} {shell_word(room)} && mv -T -- {shell_word(f'{room}/{kept}')} {git}"
        return [Finding(self.stage.git, f"{self.stage.git}/{kept}", why, back=back)]

    def _give_up(self, why: str) -> list[Finding]:
        """Set the stage aside; with all of ``.git``, unless that holds anything of the host's."""
        if not _exists(self.stage.outer, _HEAD) and (self._moved or self._names() <= {NAME}):
            return self._set_all_aside(why)
        return self._set_aside(why)

    def _set_all_aside(self, why: str = _STRANGE, *, headless: bool = False) -> list[Finding]:
        """Give ``.git`` itself such a name, with all that is in it; ``headless``: what is left on the stage is no use.

        From then on a command can make another repository there.
        """
        try:
            kept = f"{self.stage.holder.rstrip('/')}/{_renamed(self.stage.holder, '.git')}"
        except OSError as error:
            return [Finding(self.stage.git, "", why, error.strerror or "it is gone")]
        aside, staged, git = shell_word(kept), shell_word(f"{kept}/{NAME}"), shell_word(self.stage.git)
        if headless:
            back = f"rm -rf -- {staged} && mv -T -- {aside} {git} && git -C {shell_word(self.stage.holder)} init"
        elif self._moved:
            # Nothing is replaced: what cannot move lets the next step fail.
            gathered = f"find {staged} -mindepth 1 -maxdepth 1 -exec mv -n -t {aside} -- {{}} +"
            back = f"{gathered} && rmdir -- {staged} && mv -T -- {aside} {git}"
        else:
            back = f"mv -T -- {staged} {git} && rmdir -- {aside}"
        return [Finding(self.stage.git, kept, why, back=back)]

    def follow(self, findings: Iterable[Finding], ended: Iterable[Finding]) -> list[Finding]:
        """Return what was found in ``.git``, as it is to be told now that ``finish`` has ``ended`` so.

        If all of ``.git`` was set aside, what had been set aside in it went along.
        """
        aside = next((one.kept for one in ended if one.kept and not self._holds(one.kept)), "")
        return [one if not aside or not self._holds(one.path) else self._moved_along(one, aside) for one in findings]

    def _moved_along(self, finding: Finding, aside: str) -> Finding:
        path = aside + finding.path.removeprefix(self.stage.git)
        if not finding.kept:
            return finding.but(path=path)
        kept = aside + finding.kept.removeprefix(self.stage.git)
        return finding.but(kept=kept, back=f"mv -nT -- {shell_word(kept)} {shell_word(path)}")


def _renamed(directory: str, name: str) -> str:
    """Give an entry of a directory a name that nobody looks for, and return that."""
    handle = Handle.reach(directory)
    if handle is None:
        raise FileNotFoundError
    with handle:
        return handle.set_aside(name)


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
