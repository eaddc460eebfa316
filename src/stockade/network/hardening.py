"""What a process gives up that reads what strangers send: files to write, programs to run, rights to gain.

For the proxy, on top of being a process of its own: whoever takes it over through a fault finds little to do. Linux
denies by Landlock; everywhere no file can be made longer, and no core be dumped. What the kernel does not know is left
out: these are further walls, not the first.

Rules: called before the first thread, for Landlock binds the calling thread and those that it starts. Returns what
was enforced.

Source of truth: landlock(7), prctl(2), getrlimit(2).
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

from stockade.annotation import Final

_MOST_FILES: Final = 65536
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38
_CREATE_RULESET: Final = 444
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_EXECUTE: Final = 1 << 0
_WRITE: Final = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_BIND_TCP: Final = 1 << 0
_SCOPE_SIGNAL: Final = 1 << 1
#: The first version of the interface that knows rights to files, to the network, and scopes.
_SINCE: Final = (
    (1, (_EXECUTE | _WRITE, 0, 0)),
    (2, (_REFER, 0, 0)),
    (3, (_TRUNCATE, 0, 0)),
    (4, (0, _BIND_TCP, 0)),
    (6, (0, 0, _SCOPE_SIGNAL)),
)
_WORD: Final = 8


def harden() -> frozenset[str]:
    """Give up what is not needed; return what holds: "files", "programs", "privileges", "memory", "signals"."""
    enforced = {"core"} if _limit(resource.RLIMIT_CORE) else set()
    if _limit(resource.RLIMIT_FSIZE):
        enforced.add("size")
    if sys.platform == "linux":
        library = ctypes.CDLL(None, use_errno=True)
        if library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0:
            enforced.add("memory")
        if library.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
            enforced.add("privileges")
            enforced |= _landlock(library)
    return frozenset(enforced)


def raise_file_limit() -> None:
    """Let this process have as many connections as the system lets it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    for number in (most, getattr(os, "OPEN_MAX", 10240)):  # macOS takes no more than its OPEN_MAX
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
        except (OSError, ValueError):
            continue
        return


def _limit(what: int) -> bool:
    try:
        resource.setrlimit(what, (0, 0))
    except (OSError, ValueError):
        return False
    return True


def _landlock(library: ctypes.CDLL) -> set[str]:
    """Deny every right to write and to execute, with no place excepted."""
    library.syscall.restype = ctypes.c_long
    long = ctypes.c_long
    version = library.syscall(long(_CREATE_RULESET), None, long(0), long(_ASK_VERSION))
    if version < 1:
        return set()
    known = [rights for since, rights in _SINCE if since <= version]
    words = [sum(rights[place] for rights in known) for place in range(3)]
    # An older kernel refuses a structure with words that it does not know, unless they are 0.
    handled = (ctypes.c_uint64 * len(words))(*words)
    rules = library.syscall(long(_CREATE_RULESET), ctypes.byref(handled), long(len(words) * _WORD), long(0))
    if rules < 0:
        return set()
    try:
        if library.syscall(long(_RESTRICT_SELF), long(rules), long(0)) != 0:
            return set()
    finally:
        os.close(rules)
    return {"files", "programs", *(("listening",) if words[1] else ()), *(("signals",) if words[2] else ())}
