"""A repository that a sandbox left halfway when it was killed: finished, or set aside, and told by the next run there.

Whoever finds it finishes it (a keeper, a later session, the end of another one), and most of them have nobody to tell.
So the words are kept in a file beside the journals, one for each directory, until a run in that directory takes them.

Rules: nothing here raises for want of a file; words that cannot be kept are lost, what was set aside is not.
"""

from __future__ import annotations

import os
import time

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.platforms.linux.adoption import Adoption
from stockade.platforms.linux.lookout import RECOVERED, kept_for
from stockade.platforms.linux.placeholders import journal_directory
from stockade.platforms.linux.staging import open_stage
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.filesystem.finding import Finding
    from stockade.platforms.linux.staging import Stage

_KEPT: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST: Final = 100_000
#: Seconds; a month.
_LONG: Final = 30 * 24 * 3600.0
#: So many of the parts that were set aside are named.
_NAMED: Final = 5


def recover(git: str, journals: str = "") -> None:
    """Finish what a sandbox that was killed has left on a stage, unless somebody still uses it; keep what was done."""
    stage = open_stage(git, make=False)
    if stage is None:
        return
    try:
        adoption = Adoption(stage)
        if not stage.take() or (not adoption.is_raised() and stage.is_empty()):
            return
        found: list[Finding] = []
        ended = adoption.raise_up()
        if not ended:
            found = _looked_at(stage)
            ended = adoption.finish(found)
            found = adoption.follow(found, ended)
        _keep(stage.holder, words(stage.holder, found, ended), journals)
    finally:
        stage.close()


def take(holders: Iterable[str], journals: str = "") -> tuple[str, ...]:
    """Return what was done in these directories since somebody took it last."""
    notes: list[str] = []
    for holder in holders:
        with suppress(OSError):
            path = _place(holder, journals)
            file = os.open(path, _READ)
            try:
                notes += [line for line in os.fsdecode(os.read(file, _LONGEST)).split("\n") if line]
            finally:
                os.close(file)
            os.unlink(path)
    return tuple(notes)


def words(holder: str, found: Iterable[Finding], ended: Iterable[Finding]) -> str:
    """Say on one line what became of the repository in a directory: parts ``found`` bad in it, and how it ``ended``."""
    what = f'a sandbox that was killed had left a repository in "{escape(holder)}" halfway'
    for one in ended:
        if one.failure:
            return (
                f"{what}; {one.why}, and it could not be set aside ({one.failure}): remove it before you use git there"
            )
        return f'{what}; it was set aside as "{escape(one.kept)}", for {one.why}; {_way_back(one)}'
    parts = [_part(one) for one in found]
    if not parts:
        return f"{what}; it was looked at, and is the repository of that directory now"
    more = f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    aside = f"{', '.join(parts[:_NAMED])}{more}"
    return f"{what}; it is the repository of that directory now, without what git on the host would obey in it: {aside}"


def _part(finding: Finding) -> str:
    return f'"{escape(finding.path)}" (set aside as "{escape(finding.kept.rpartition("/")[2])}", for {finding.why})'


def _way_back(finding: Finding) -> str:
    from stockade.platforms.linux.aside import BEWARE, way_back

    return f"{way_back(finding.back)}; {BEWARE}"


def _keep(holder: str, line: str, journals: str) -> None:
    with suppress(OSError):
        place = _place(holder, journals)
        _forget_old(place.rpartition("/")[0])
        file = os.open(place, _KEPT, 0o600)
        try:
            os.write(file, os.fsencode(f"{line}\n"))
        finally:
            os.close(file)


def _forget_old(journals: str) -> None:
    """Remove words that nobody has taken for long: the directory may be gone."""
    for name in os.listdir(journals):
        path = f"{journals}/{name}"
        if name.startswith(RECOVERED) and os.stat(path).st_mtime < time.time() - _LONG:
            os.unlink(path)


def _place(holder: str, journals: str) -> str:
    """Return where words about a directory are kept."""
    name = kept_for(holder)
    if not name:
        raise FileNotFoundError
    return f"{journals or journal_directory()}/{name}"


def _looked_at(stage: Stage) -> list[Finding]:
    """Set aside what git on the host would obey in a repository that nobody has looked at yet."""
    from stockade.filesystem.cover import Cover, Covers
    from stockade.filesystem.finding import Memo
    from stockade.filesystem.plan import Mount, Operation, Plan
    from stockade.filesystem.repository_inspection import RepositoryInspection

    # Nothing in that directory was covered.
    covers = Covers([Cover(Plan((Mount(Operation.WRITABLE, stage.holder, ""),)))])
    look = RepositoryInspection(covers, Memo(), configs=False, spared=lambda _path: False)
    look.look_at((stage.holder,))
    return look.findings
