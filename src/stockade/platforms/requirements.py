"""What a machine should have, why, and the command that installs it on this distribution."""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.enumeration import Enum
from stockade.platforms.distribution import INSTALLERS, as_root, this_distribution
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Need(Enum):
    """What is lost without it."""

    REQUIRED = "required"
    OPTIONAL = "optional"


class Requirement(Value):
    """A program, what it is needed for, and the package that holds it in each family of distributions."""

    program: str
    need: Need
    purpose: str
    packages: Mapping[str, str]


class Missing(Value):
    """A program that is not there, and how to get it."""

    requirement: Requirement
    install: str


def _packages(name: str, **others: str) -> dict[str, str]:
    """Return the package for every family: one name, and what differs from it."""
    return dict.fromkeys(INSTALLERS, name) | others


BWRAP: Final = Requirement(
    "bwrap",
    Need.OPTIONAL,
    "the door where AppArmor bars all other programs from user namespaces",
    _packages("bubblewrap", gentoo="sys-apps/bubblewrap"),
)
LINUX: Final = (BWRAP,)
_ADMINISTRATION: Final = "/usr/sbin:/sbin:/usr/local/sbin"
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
    return as_root(f"{INSTALLERS[family]} {package}", root=root)


def find_program(name: str, path: str | None = None) -> str | None:
    """Return where a program is found on PATH. The import of ``shutil.which`` would cost 5 ms."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    for folder in folders:
        candidate = os.path.join(folder or ".", name)
        if is_program(candidate):
            return candidate
    return None


def is_program(path: str) -> bool:
    """Tell whether a file can be started, as a search of PATH does."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def find_anywhere(name: str) -> str | None:
    """Look where administrators' programs are too, which are often not on a user's PATH."""
    return find_program(name) or find_program(name, _ADMINISTRATION)


def missing_here() -> tuple[Missing, ...]:
    """Return what this machine lacks."""
    return missing(requirements(), find_anywhere, this_distribution().family, root=os.geteuid() == 0)
