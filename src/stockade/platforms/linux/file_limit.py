"""How many open files the helpers and the commands of a sandbox may have.

Helpers get all that the hard limit allows: they hold descriptors for many commands. Commands keep the soft limit that
their user has. Their hard limit is lower than ours where there is room: it bounds what they can have under way between
processes, a number that the kernel counts for the whole user (see ``stockade.passing``), and ours must be higher then.

Rules: the decision is pure. Source of truth: getrlimit(2), unix(7).
"""

from __future__ import annotations

import resource

#: From this hard limit on there is room for a lower one.
_ENOUGH = 4096
#: What is kept back at least: senders on several processors may each exceed their limit by 253 (``SCM_MAX_FD``).
_MARGIN = 1024
_UNLIMITED = 1 << 20


def for_commands(soft: int, hard: int) -> tuple[int, int]:
    """Return the limits of commands, whose owner has these."""
    if hard == resource.RLIM_INFINITY:
        hard = max(_UNLIMITED, soft)
    if hard < _ENOUGH:
        return soft, hard
    lower = min(max(soft, hard // 2), hard - _MARGIN)
    return min(soft, lower), lower


def raise_own() -> tuple[int, int]:
    """Allow this process, and the helpers that it forks, all that they may have; return what commands shall have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _UNLIMITED if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    return for_commands(soft, hard)
