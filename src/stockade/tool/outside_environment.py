"""The environment of what runs outside the walls: without variables that lead to code which commands inside can write.

Programs take code from many variables: search paths, files that shells and interpreters run at their start, options
with a path in them (``NODE_OPTIONS``, ``GIT_SSH_COMMAND``, ``LESSOPEN``, ``DOCKER_CONFIG`` ...). A list of their names
would never be whole. So each value is searched for paths: one that leads to a place that commands inside can write
costs the variable; of a search path only the entry. Kept are variables that say where one is.

Somebody who says yes to the project's own code gets the other variables whole, as in their terminal: only what shells
and loaders run before any program is still taken away.
Source of truth: environ(7), ld.so(8), bash(1), zsh(1); the manuals of git, node, less, docker.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

PATH: Final = "PATH"
#: Search paths, with the signs that part their entries.
_LISTS: Final = {
    PATH: ":",
    "LD_LIBRARY_PATH": ":;",
    "LD_PRELOAD": ": ",
    "LD_AUDIT": ":",
    "PYTHONPATH": ":",
    "NODE_PATH": ":",
    "PERL5LIB": ":",
    "RUBYLIB": ":",
    "MANPATH": ":",
    "INFOPATH": ":",
    "XDG_DATA_DIRS": ":",
    "XDG_CONFIG_DIRS": ":",
}
#: What shells and loaders run before any program.
_FIRST: Final = frozenset(
    (
        *("BASH_ENV", "ENV", "ZDOTDIR", "FPATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"),
        *("DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH"),
    )
)
#: These say where one is, and no program takes code from there by that.
_KEPT: Final = frozenset(("PWD", "OLDPWD", "HOME", "TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV", "_"))
_PARTING: Final = str.maketrans(dict.fromkeys(":;,= \t\n\r\"'`|&()<>", "\0"))


class OutsideEnvironment:
    """The variables of a call that leaves the walls, in one directory."""

    def __init__(self, variables: Mapping[str, str], written: Container[str], directory: str) -> None:
        """Take the variables as they are, and what commands inside can write."""
        self._variables = variables
        self._written = written
        self._directory = directory

    def safe(self, shell: str) -> dict[str, str]:
        """Return what a call gets that nobody was asked about; ``shell`` reads its line."""
        kept = {name: self.kept(name, value) for name, value in self._variables.items()}
        return _completed({name: value for name, value in kept.items() if value or not self._variables[name]}, shell)

    def approved(self, shell: str) -> dict[str, str]:
        """Return what a call gets that somebody has said yes to, knowing that the project's own code runs."""
        first = {name: self.kept(name, value) for name, value in self._variables.items() if name in _FIRST}
        rest = {name: value for name, value in self._variables.items() if name not in _FIRST}
        return _completed(rest | {name: value for name, value in first.items() if value}, shell)

    def kept(self, name: str, value: str) -> str:
        """Return what is left of a variable."""
        if name in _KEPT:
            return value
        if name in _LISTS:
            return _kept_entries(name, value, self._written)
        return "" if any(path in self._written for path in _paths(value, self._directory)) else value


def counts(entry: str, written: Container[str]) -> bool:
    """Say whether an entry of a search path leads to a place that commands inside cannot write."""
    return entry.startswith("/") and entry not in written


def _kept_entries(name: str, value: str, written: Container[str]) -> str:
    first = _LISTS[name][0]
    for other in _LISTS[name][1:]:
        value = value.replace(other, first)
    entries = value.split(first)
    # A library to load before all others may be named without a place: the system's are searched then.
    plain = name == "LD_PRELOAD"
    return first.join(entry for entry in entries if counts(entry, written) or (plain and entry and "/" not in entry))


def _paths(text: str, directory: str) -> Iterator[str]:
    """Yield the paths that may be in a text."""
    for token in text.translate(_PARTING).split("\0"):
        at = token.find("/")
        if at < 0 or "//" in token:  # as in https://host/x
            continue
        if token.startswith("~/"):
            yield os.path.expanduser(token)
        elif token[:at].startswith("-"):  # as in -I/x
            yield token[at:]
        elif at == 0 or token.startswith(".") or os.path.exists(os.path.join(directory, token)):
            yield os.path.join(directory, token)


def _completed(found: dict[str, str], shell: str) -> dict[str, str]:
    # Without PATH shells look in places of their own choosing; with an empty one in the working directory.
    path = found.get(PATH) or os.defpath
    return found | {PATH: path, "SHELL": shell}
