"""What a machine must have, why, and the command that installs it on this distribution."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import TYPE_CHECKING, Final

from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Need(Enum):
    """What is lost without it."""

    REQUIRED = "required"
    OPTIONAL = "optional"


class Requirement(Value):
    """A program, what it is needed for, and the package that holds it."""

    program: str
    need: Need
    purpose: str
    packages: Mapping[str, str]


class Missing(Value):
    """A program that is not there, and how to get it."""

    requirement: Requirement
    install: str


#: Distribution families by ID or ID_LIKE of os-release(5), with the command that installs a package.
INSTALLERS: Final = {
    "debian": "apt-get install -y",
    "fedora": "dnf install -y",
    "arch": "pacman -S --noconfirm",
    "alpine": "apk add",
    "suse": "zypper install -y",
}
_FAMILIES: Final = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "opensuse": "suse", "sles": "suse"}

LINUX: Final = (
    Requirement("bwrap", Need.REQUIRED, "builds the walls", dict.fromkeys(INSTALLERS, "bubblewrap")),
    Requirement(
        "rg", Need.OPTIONAL, "finds protected files faster in large trees", dict.fromkeys(INSTALLERS, "ripgrep")
    ),
    Requirement("nft", Need.OPTIONAL, "carries programs that know no proxy", dict.fromkeys(INSTALLERS, "nftables")),
)
MACOS: Final = (Requirement("sandbox-exec", Need.REQUIRED, "builds the walls; it is part of macOS", {}),)


def requirements(platform: str = sys.platform) -> tuple[Requirement, ...]:
    """Return what Stockade uses on a platform."""
    return {"linux": LINUX, "darwin": MACOS}.get(platform, ())


def missing(
    needed: tuple[Requirement, ...], find: Callable[[str], str | None], family: str, *, root: bool
) -> tuple[Missing, ...]:
    """Return what is not to be found, each with its install command."""
    return tuple(
        Missing(requirement, install_command(requirement, family, root=root))
        for requirement in needed
        if find(requirement.program) is None
    )


def install_command(requirement: Requirement, family: str, *, root: bool) -> str:
    """Return the exact command that installs a program, or what to look for where we know none."""
    package = requirement.packages.get(family)
    if package is None:
        return f"install {requirement.program} with your system's package manager"
    return f"{'' if root else 'sudo '}{INSTALLERS[family]} {package}"


def family(os_release: str) -> str:
    """Return the distribution family from the text of os-release(5), or nothing if it is not known."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    names = [fields.get("ID", ""), *fields.get("ID_LIKE", "").strip("\"'").split()]
    known = (_FAMILIES.get(name.strip("\"'"), name.strip("\"'")) for name in names)
    return next((name for name in known if name in INSTALLERS), "")


def find_program(name: str, path: str | None = None) -> str | None:
    """Return where a program is found on PATH. The import of ``shutil.which`` would cost 5 ms."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    for folder in folders:
        candidate = os.path.join(folder or ".", name)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None


def missing_here() -> tuple[Missing, ...]:
    """Return what this machine lacks."""
    try:
        with open("/etc/os-release", encoding="utf-8", errors="replace") as file:
            distribution = family(file.read())
    except OSError:
        distribution = ""
    return missing(requirements(), find_program, distribution, root=os.geteuid() == 0)
