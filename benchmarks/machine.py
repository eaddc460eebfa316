"""Facts of the machine that the numbers depend on. Nothing that names it: no host name, no path, no user."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def facts() -> list[str]:
    """Return the facts, one a line."""
    return [
        f"{os.cpu_count()} cores ({_processor()}), {_memory()} GiB",
        f"kernel {platform.release()}, {_distribution()}, {'root' if os.geteuid() == 0 else 'an ordinary user'}",
        f"CPython {platform.python_version()}",
        *(["all contenders at real-time priority"] if _is_real_time() else []),
    ]


def load() -> str:
    """Return the load of the last minute: what else the machine was doing."""
    return f"{os.getloadavg()[0]:.1f}"


def _is_real_time() -> bool:
    """Tell whether this was started by ``chrt``, so that a machine with other work measures what a quiet one does."""
    return os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)


def _distribution() -> str:
    return platform.freedesktop_os_release().get("PRETTY_NAME", "an unnamed distribution")
