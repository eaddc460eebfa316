"""Where settings are looked for: every layer's files, the highest first.

Rules. In each place the ``.stockade`` file stands above the ``.claude`` one. Managed settings exist
only under our own name; drop-ins stand above the base file, and a later name above an earlier one.
The project is the nearest directory from the working directory upwards that has a settings file;
the search ends with the repository's root, before home (whose files are the user's, never a
project's), and before any ancestor that everybody may write, such as /tmp. Whatever lies in a
project may have come with it, its ``settings.local.json`` included, so all of it needs trust.
Names are normalised here; nothing is read but directories.
"""

from __future__ import annotations

import os
import stat
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError
from stockade.settings.content import is_there
from stockade.settings.layer import Layer
from stockade.settings.problem import whole_file
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MANAGED: Final = (
    "/Library/Application Support/Stockade/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/stockade/managed-settings.json"
)
FLAG_VARIABLE: Final = "STOCKADE_FLAG_SETTINGS"
_DIRECTORIES: Final = (".stockade", ".claude")
_HOME: Final = "HOME"
_SHARED: Final = "settings.json"
_LOCAL: Final = "settings.local.json"


class Locations(Value):
    """The places that decide which files count. All paths are absolute."""

    cwd: str
    home: str
    managed: str = MANAGED
    flag_file: str | None = None
    settings_file: str | None = None

    @classmethod
    def here(cls, environ: Mapping[str, str], cwd: str | None = None, settings_file: str | None = None) -> Locations:
        """Return the locations of this user and directory, the current one if none is named.

        Raises SettingsError if there is no home, StockadeError if the current directory is gone.
        Without HOME the user database decides; a HOME that is not absolute is refused. An empty
        STOCKADE_FLAG_SETTINGS counts as not set; relative names are relative to ``cwd``.
        """
        cwd = os.path.abspath(cwd or _working_directory())
        flag_file = environ.get(FLAG_VARIABLE)
        return cls(
            os.path.realpath(cwd),
            _home(environ),
            flag_file=os.path.join(cwd, flag_file) if flag_file else None,
            settings_file=None if settings_file is None else os.path.join(cwd, settings_file),
        )


class Source(Value):
    """One file to look for. ``foreign``: it is Claude Code's. ``project``: it needs trust."""

    layer: Layer
    file: str
    foreign: bool = False
    project: bool = False

    @property
    def required(self) -> bool:
        """Tell whether somebody named this very file, so that its absence is an error."""
        return self.layer in (Layer.COMMAND_LINE, Layer.FLAG)


def sources(locations: Locations) -> tuple[Source, ...]:
    """Return every file that may hold settings, the highest first. Raises SettingsError."""
    found: list[Source] = []
    if locations.settings_file is not None:
        found.append(Source(Layer.COMMAND_LINE, locations.settings_file))
    found += [Source(Layer.POLICY, file) for file in (*_drop_ins(locations), locations.managed)]
    if locations.flag_file is not None:
        found.append(Source(Layer.FLAG, locations.flag_file))
    project = project_directory(locations)
    owned = _is_home(project, locations)
    if not owned:
        found += _pair(Layer.LOCAL, project, _LOCAL, project=True)
    found += _pair(Layer.LOCAL, locations.home, _LOCAL)
    found += _pair(Layer.USER, locations.home, _SHARED)
    if not owned:
        found += _pair(Layer.PROJECT, project, _SHARED, project=True)
    return tuple(found)


def project_directory(locations: Locations) -> str:
    """Return the directory whose project settings count, and where local edits are written."""
    directories = tuple(_ancestors(locations))
    with_settings = (place for place in directories if any(map(is_there, _files(place))))
    roots = (place for place in directories if _is_repository(place))
    return next(with_settings, None) or next(roots, None) or os.path.realpath(locations.cwd)


def settings_files(locations: Locations) -> tuple[str, ...]:
    """Return every path that can hold settings or trust, there or not: what no command may write.

    All directories that are searched for a project are included: a new file in a nearer one would
    take the place of the project's own.
    """
    named = [file for file in (locations.settings_file, locations.flag_file) if file is not None]
    managed = [locations.managed, _drop_in_directory(locations)]
    places = [locations.home, *_ancestors(locations)]
    files = [file for place in places for file in _files(place)]
    return tuple(dict.fromkeys([*named, *managed, *files, trust_store(locations.home)]))


def trust_store(home: str) -> str:
    """Return the file that remembers which project files are trusted."""
    return os.path.join(home, ".stockade", "trusted.json")


def _pair(layer: Layer, place: str, name: str, *, project: bool = False) -> list[Source]:
    ours, theirs = (os.path.join(place, directory, name) for directory in _DIRECTORIES)
    return [Source(layer, ours, project=project), Source(layer, theirs, foreign=True, project=project)]


def _files(place: str) -> tuple[str, ...]:
    return tuple(os.path.join(place, directory, name) for name in (_LOCAL, _SHARED) for directory in _DIRECTORIES)


def _ancestors(locations: Locations) -> Iterator[str]:
    """Yield the directories that may be the project's, the nearest first."""
    place = os.path.realpath(locations.cwd)
    while not _is_home(place, locations):
        yield place
        parent = os.path.dirname(place)
        if _is_repository(place) or parent == place or is_open_to_all(parent):
            return
        place = parent


def _is_home(place: str, locations: Locations) -> bool:
    return place == os.path.realpath(locations.home)


def _is_repository(place: str) -> bool:
    return is_there(os.path.join(place, ".git"))


def is_open_to_all(place: str) -> bool:
    """Tell whether every user may write a directory; one that is not there is nobody's to write."""
    try:
        return bool(os.stat(place).st_mode & stat.S_IWOTH)
    except OSError:
        return False


def _drop_in_directory(locations: Locations) -> str:
    return os.path.join(os.path.dirname(locations.managed), "managed-settings.d")


def _drop_ins(locations: Locations) -> list[str]:
    directory = _drop_in_directory(locations)
    if not is_there(directory):
        return []
    try:
        names = os.listdir(directory)
    except OSError as error:
        message = f"cannot be listed: {error.strerror}"
        raise whole_file(directory, message, "Ask the administrator of this machine.") from None
    chosen = sorted((name for name in names if name.endswith(".json") and name[0] != "."), reverse=True)
    return [os.path.join(directory, name) for name in chosen]


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        message = "the working directory does not exist any more"
        raise StockadeError(message, "change to a directory that exists") from error


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get(_HOME) or _home_from_database()
    if not os.path.isabs(home):
        raise whole_file(_HOME, "is not an absolute path", "Set HOME to your home directory.")
    return home


def _home_from_database() -> str:
    import pwd  # only where HOME is not set

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        message = "is not set, and this user is not in the user database"
        raise whole_file(_HOME, message, "Set HOME to your home directory.") from None
