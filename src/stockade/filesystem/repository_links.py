"""Links and pipes in a repository: git on the host writes where a link leads, and waits for a pipe.

What git logs is appended to ``logs/HEAD``, be that a link to a start-up file of yours, and a name in a config, or that
of a branch, is a command by then. Git makes neither links nor pipes there, but for a ``HEAD`` that is a link to a ref.

Rules: of what is older than the commands nothing counts, save in a directory that has changed since: it may have been
moved there. A directory with more in it than can be looked at does not stay. What is set aside among refs and logs gets
a name that no ref can have, for a command chooses the branch.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.filesystem.written import UNWALKED
from stockade.policy.git_judgement import is_aside

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.filesystem.handle import Handle

    Offend = Callable[[Handle, str, str, int, str], bool]

_ODD: Final = "git on the host would write where it leads, or wait for it"
_TOO_MUCH: Final = "it has more in it than can be looked at"
_LISTED: Final = "logs refs info worktrees rebase-merge rebase-apply sequencer rr-cache packed-refs"
_WRITTEN: Final = frozenset(_LISTED.split())
#: In these the names are those of refs, and no ref has one that ends so (git-check-ref-format(1)).
_NAMED: Final = frozenset({"logs", "refs", "worktrees"})
_NO_REF: Final = "~"
_MOST: Final = 100_000
_DEEPEST: Final = 32


def look_at_written(handle: Handle, offend: Offend, since: int) -> None:
    """Look at a repository where git writes."""
    found = handle.kinds(_MOST)
    if found is None:
        return
    # A directory that is a repository itself may be another thing as well.
    own = "/.git/" in f"{handle.path}/"
    _look_at(handle, [name for name in found[0] if own or name in _WRITTEN or name.isupper()], offend, since, "")
    for name in found[1]:
        if name not in UNWALKED if own else name in _WRITTEN:
            _Walk(offend, _NO_REF if name in _NAMED else "").go(handle, name, since, 0)


def look_at_objects(objects: Handle, offend: Offend, why: str, since: int) -> None:
    """Look for links among the directories of objects, and among packs."""
    pack = objects.below("pack")
    for handle in (objects,) if pack is None else (objects, pack):
        found = handle.kinds(_MOST)
        for name in () if found is None else found[0]:
            if not is_aside(name):
                offend(handle, name, why, since, "")
    if pack is not None:
        pack.close()


class _Walk:
    """A walk through all that lies below one directory of a repository; what is set aside gets a name with an end."""

    def __init__(self, offend: Offend, end: str) -> None:
        self._offend = offend
        self._end = end
        self._count = 0

    def go(self, above: Handle, name: str, since: int, depth: int) -> None:
        handle = above.below(name)
        if handle is None:
            return
        with handle:
            since = 0 if handle.changed() >= since else since
            self._count += 1
            found = handle.kinds(_MOST) if self._count <= _MOST and depth < _DEEPEST else None
            if found is None:
                self._offend(above, name, _TOO_MUCH, since, self._end)
                return
            _look_at(handle, found[0], self._offend, since, self._end)
            for below in found[1]:
                if not _is_aside(below, self._end):
                    self.go(handle, below, since, depth + 1)


def _look_at(handle: Handle, odd: list[str], offend: Offend, since: int, end: str) -> None:
    for name in odd:
        if not (_is_aside(name, end) or (name == "HEAD" and handle.leads_to_ref(name))):
            offend(handle, name, _ODD, since, end)


def _is_aside(name: str, end: str) -> bool:
    """Tell whether it was set aside, or might have been: git does not look for such a name."""
    return name.endswith(end) and is_aside(name.removesuffix(end))
