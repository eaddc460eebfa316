"""Which distribution this is, and how software is installed on it.

Rules: derivatives are served by the family that they name; what is not known gives words instead of a
command that might not exist. Source of truth: os-release(5).
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.value import Value

#: Distribution families by ID or ID_LIKE of os-release(5), with the command that installs a package.
INSTALLERS: Final = {
    "debian": "apt-get install -y",
    "fedora": "dnf install -y",
    "arch": "pacman -S --noconfirm",
    "alpine": "apk add",
    "suse": "zypper install -y",
    "gentoo": "emerge",
    "void": "xbps-install -y",
}
_FAMILIES: Final = {"ubuntu": "debian", "rhel": "fedora", "centos": "fedora", "opensuse": "suse", "sles": "suse"}
_FILES: Final = ("/etc/os-release", "/usr/lib/os-release")


class Distribution(Value):
    """A distribution: its own ID, the family whose packages it takes (or nothing), its version and its full name."""

    identifier: str = ""
    family: str = ""
    version: str = ""
    name: str = ""


def parse(os_release: str) -> Distribution:
    """Return the distribution that the text of os-release(5) describes."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    values = {name.strip(): value.strip().strip("\"'") for name, value in fields.items()}
    identifier = values.get("ID", "").lower()
    names = [identifier, *values.get("ID_LIKE", "").lower().split()]
    known = (_FAMILIES.get(name, name) for name in names)
    family = next((name for name in known if name in INSTALLERS), "")
    return Distribution(identifier, family, values.get("VERSION_ID", ""), values.get("PRETTY_NAME", ""))


def this_distribution() -> Distribution:
    """Return the distribution of this machine; an unknown one if nothing tells."""
    for path in _FILES:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return parse(file.read())
        except OSError:
            continue
    return Distribution()


def as_root(command: str, *, root: bool) -> str:
    """Return the command as this user has to type it."""
    return command if root else f"sudo {command}"
