"""Covers that fell because the host replaced what they lay on, laid again while commands run."""

from __future__ import annotations

import fcntl
import os
import stat
from _signal import SIGURG  # type: ignore[import-not-found] # signal costs 3 ms: it makes enumerations

from stockade.platforms.linux import glance, tree

_ATTEMPTS = 3
_F_SETSIG = 10
#: What lies on a placeholder of ours. If something else is there now, it is the host's.
_OURS = frozenset({tree.ABSENT, tree.WITHHELD, tree.STAGED})


class Relaid:
    """What came of laying fallen mounts again: targets that were laid, that are missing, and that cannot be covered."""

    __slots__ = ("files", "hopeless", "laid", "missing")

    def __init__(self) -> None:
        """Begin with nothing."""
        self.laid: list[bytes] = []
        #: Those of them that are files which must not be written.
        self.files: list[bytes] = []
        self.missing: list[bytes] = []
        self.hopeless: list[bytes] = []


def lay_again(places: list[tree.Place]) -> Relaid:
    """Lay the mounts that fell because the host replaced what they lay on.

    A rename over a mount point, or its removal, takes the mount away in every other namespace. Where nothing is now,
    there is nothing to lay a mount on. What took the place of a placeholder, or of a pinned directory, becomes
    read-only, or hidden if it must not be read. A link that was not there before leads where no cover lies, and only
    a new plan knows what to do.
    """
    relaid = Relaid()
    for place in places:
        for attempt in range(_ATTEMPTS):
            if glance.is_mount(place.target):
                break
            try:
                _lay_again(place, relaid)
            except OSError as error:
                # The host may replace it once more in this moment: then what was found is gone, and another is there.
                if attempt + 1 < _ATTEMPTS:
                    continue
                missing = isinstance(error, FileNotFoundError)
                (relaid.missing if missing else relaid.hopeless).append(place.target)
            break
    return relaid


def _lay_again(place: tree.Place, relaid: Relaid) -> None:
    kind = stat.S_IFMT(os.lstat(place.target).st_mode)
    if stat.S_ISLNK(kind) or place.operation == tree.LINK:
        relaid.hopeless.append(place.target)
        return
    as_before = place.operation in tree.CLOSED or (kind == place.kind and place.operation not in _OURS)
    otherwise = tree.HIDDEN if place.operation == tree.WITHHELD else tree.READ_ONLY
    tree.lay(place if as_before else tree.Place(otherwise, place.target, b"", -1))
    relaid.laid.append(place.target)
    if stat.S_ISDIR(kind):
        # Nobody renames a directory over one with something in it: the name was free for a moment.
        relaid.missing.append(place.target)
    elif stat.S_ISREG(kind) and place.operation == tree.READ_ONLY:
        relaid.files.append(place.target)
        if is_within_reach(place.target):
            relaid.hopeless.append(place.target)


def is_within_reach(path: bytes) -> bool:
    """Tell whether a file can be written in spite of its cover: it has a second name, or somebody has it open.

    A program of the host writes a new file before it gives it the protected name. A command may have opened or linked
    it in that moment. The kernel grants a lease only if nobody has the file open for writing (fcntl(2)).
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False  # it is gone, or another kind of thing: then it has fallen again
    try:
        if os.fstat(file).st_nlink > 1:
            return True
        # If a process opens the file for writing now, the kernel sends us a signal, which we ignore.
        fcntl.fcntl(file, _F_SETSIG, SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False  # this file system knows no leases, or the file is another user's
    finally:
        os.close(file)
    return False
