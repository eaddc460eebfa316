"""Where the program that runs now lies: Stockade, what it imports, and the interpreter under it.

The next ``stockade`` runs whatever is there, outside every wall. So these places are read-only to commands even where
they lie in a writable place, such as a project's own ``.venv`` (``stockade.policy.files``). They are:

- the package, and the directory that holds it if modules are searched for there: ``sitecustomize.py`` in it would run;
- the virtual environment, whole: its programs, ``pyvenv.cfg`` and everything in its site directory;
- otherwise the site directories in use (the user's own included), the standard library and the interpreter;
- directories of ``sys.path`` that hold what Stockade depends on;
- the program that was started, if it is called ``stockade``; and a zip file, if all of that is in one.

A directory that also holds the working directory is not covered whole: only the parts of an environment in it are.
Not covered, and the user's own matter: other directories of ``PYTHONPATH``, and directories that ``.pth`` files of
other packages add.

This module reads the state of this process and follows links on the disk; it changes nothing.
Source of truth: the documentation of ``sys``, ``site`` and ``venv`` in Python.
"""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.path_pattern import is_at_or_below
from stockade.policy.places import Disk, follow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What is said where one of these places protects a path.
NAME: Final = "Stockade's own installation"
WHY: Final = "the next start of Stockade runs it outside the walls"
SETTING: Final = "sandbox.filesystem.dangerouslyAllowOwnInstallation"

_DEPENDENCIES: Final = ("h11", "idna")
_SITES: Final = ("site-packages", "dist-packages")
#: Shared with everything else on the machine; of these only the parts of Python are covered.
_SHARED: Final = ("/", "/usr", "/usr/local")


def own_places(cwd: str) -> tuple[str, ...]:
    """Return the places of this installation, without links in them, and the links that lead to them."""
    disk = Disk()
    found: dict[str, None] = {}
    for path in _written(cwd):
        trail = follow(path, disk)
        found.update(dict.fromkeys((*(step.link for step in trail.steps), trail.place)))
    return tuple(found)


def _written(cwd: str) -> Iterator[str]:
    """Yield the paths as this process knows them."""
    package = _existing(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    yield package
    yield from _searched(package, cwd)
    for prefix in dict.fromkeys((sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)):
        if prefix in _SHARED or is_at_or_below(cwd, prefix):
            yield from _parts(prefix)
        else:
            yield prefix
    yield os.path.dirname(os.__file__)
    yield from (path for path in (sys.executable, getattr(sys, "_base_executable", "")) if path)
    if sys.argv and os.path.basename(sys.argv[0]) == "stockade":
        yield os.path.abspath(sys.argv[0])


def _searched(package: str, cwd: str) -> Iterator[str]:
    """Yield the directories of the search path that must not be written."""
    holder = os.path.dirname(package)
    for entry in dict.fromkeys(os.path.abspath(entry) for entry in sys.path):
        own = entry == holder or os.path.basename(entry) in _SITES or _holds(entry, _DEPENDENCIES)
        if own and not is_at_or_below(cwd, entry):
            yield entry


def _parts(prefix: str) -> Iterator[str]:
    """Yield what an environment consists of that shares its directory with other things."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    parts = ("pyvenv.cfg", f"lib/{version}", f"lib64/{version}", *(() if prefix in _SHARED else ("bin",)))
    yield from (path for part in parts if os.path.lexists(path := os.path.join(prefix, part)))


def _holds(entry: str, packages: Iterable[str]) -> bool:
    return any(os.path.lexists(f"{entry}/{package}") for package in packages)


def _existing(path: str) -> str:
    """Return a path, or the file on the way to it if it lies in an archive."""
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return path
