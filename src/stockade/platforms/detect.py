"""Which platform this is, and whether Stockade can build walls on it.

WSL2 runs a real Linux kernel and counts as Linux; WSL1 translates system calls and has no
namespaces. Source of truth: ``/proc/version``: WSL1 says "4.4.0-N-Microsoft", WSL2 "microsoft-standard-WSL2".
"""

from __future__ import annotations

import os
import sys

from stockade.enumeration import Enum
from stockade.errors import UnavailableError
from stockade.value import Value


class System(Enum):
    """What walls are built with."""

    LINUX = "linux"
    MACOS = "macos"
    NONE = "none"


class Platform(Value):
    """A platform; if nothing can be built on it, why, and what to do."""

    system: System
    name: str
    why: str = ""
    remedy: str = ""


def detect(platform: str, kernel: str = "") -> Platform:
    """Tell the platform from ``sys.platform`` and the text of ``/proc/version``."""
    if platform == "linux":
        return _linux(kernel)
    if platform == "darwin":
        return Platform(System.MACOS, "macOS")
    if platform in {"win32", "cygwin", "msys"}:
        remedy = "install WSL2 (`wsl --install` in an administrator's PowerShell) and run Stockade in it"
        return Platform(System.NONE, "Windows", "Windows is not supported", remedy)
    return Platform(System.NONE, platform, f"{platform} is not supported", "use Linux or macOS")


def _linux(kernel: str) -> Platform:
    if "-Microsoft" in kernel:
        remedy = "convert it in PowerShell: `wsl --set-version DISTRIBUTION 2` (`wsl --list` names the distributions)"
        return Platform(System.NONE, "WSL1", "WSL1 is not supported: it has no Linux kernel and no namespaces", remedy)
    return Platform(System.LINUX, "WSL2" if "microsoft" in kernel.lower() else "Linux")


def this_platform() -> Platform:
    """Return the platform of this machine."""
    kernel = ""
    if sys.platform == "linux":
        try:
            with open("/proc/version", encoding="utf-8", errors="replace") as file:
                kernel = file.read()
        except OSError:
            kernel = os.uname().release
    return detect(sys.platform, kernel)


def require_supported(platform: Platform) -> Platform:
    """Return the platform if walls can be built on it; raise with the reason if not."""
    if platform.system is System.NONE:
        raise UnavailableError(platform.why, platform.remedy)
    return platform
