"""Where settings are looked for: every layer's files, the highest first.

Rules. In each place the ``.stockade`` file stands above the ``.claude`` one. Managed settings exist
only under our own name; drop-ins stand above the base file, and a later name above an earlier one.
The project is the nearest directory from the working directory upwards that has a settings file;
the search ends with the repository's root, before home (whose files are the user's, never a
project's), and before any ancestor that everybody may write, such as /tmp. Whatever lies in a
project may have come with it, its ``settings.local.json`` included, so all of it needs trust.
Every other directory on the way up, to the root of the disk, has its say in what tightens: no repository,
settings file or open directory that a command made on the way hides a project, nor does a HOME inside it.
Names are normalised here; nothing is read but directories.
"""

from __future__ import annotations

import os
import stat
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError
from stockade.settings.ancestors import ancestors, tidy, upwards
from stockade.settings.content import is_there
from stockade.settings.layer import Layer
from stockade.settings.ownership import is_strangers
from stockade.settings.problem import whole_file
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stockade.settings.layer import Origin

MANAGED: Final = (
    "/Library/Application Support/Stockade/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/stockade/managed-settings.json"
)
FLAG_VARIABLE: Final = "STOCKADE_FLAG_SETTINGS"
DIRECTORIES: Final = (".stockade", ".claude")
_HOME: Final = "HOME"
_SHARED: Final = "settings.json"
_LOCAL: Final = "settings.local.json"


class Locations(Value):
    """The places that decide which files count. All paths are absolute.

    ``entered`` is the name of the working directory by which somebody came there, if links lead it elsewhere.
    ``ignore_project``: leave the files of projects out.
    """

    cwd: str
    home: str
    managed: str = MANAGED
    flag_file: str | None = None
    settings_file: str | None = None
    entered: str = ""
    ignore_project: bool = False

    @classmethod
    def here(cls, environ: Mapping[str, str], cwd: str | None = None, settings_file: str | None = None) -> Locations:
        """Return the locations of this user and directory, the current one if none is named.

        Raises SettingsError if there is no home, StockadeError if the current directory is gone.
        Without HOME the user database decides; a HOME that is not absolute is refused, and however it is spelled,
        it is one place. An empty STOCKADE_FLAG_SETTINGS counts as not set; relative names are relative to ``cwd``.
        """
        here = os.path.abspath(cwd) if cwd else _working_directory()
        flag_file = environ.get(FLAG_VARIABLE)
        real = os.path.realpath(here)
        entered = here if cwd else _entered(environ, real)
        return cls(
            real,
            _home(environ),
            flag_file=os.path.join(here, flag_file) if flag_file else None,
            settings_file=None if settings_file is None else os.path.join(here, settings_file),
            entered=entered if entered != real else "",
        )


class Source(Value):
    """One file to look for. ``foreign``: it is Claude Code's. ``project``: it needs trust.

    ``above``: it stands farther up than the project's own, and only what tightens in it counts, trusted or not.
    """

    layer: Layer
    file: str
    foreign: bool = False
    project: bool = False
    above: bool = False

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
    projects = () if locations.ignore_project else _projects(locations)
    for name, layer in ((_LOCAL, Layer.LOCAL), (_SHARED, Layer.PROJECT)):
        if layer is Layer.PROJECT:
            found += _pair(Layer.LOCAL, locations.home, _LOCAL)
            found += _pair(Layer.USER, locations.home, _SHARED)
        for place, above in projects:
            pair = _pair(layer, place, name, project=True, above=above)
            found += [source for source in pair if not is_strangers(source.file)]
    return tuple(found)


def project_directory(locations: Locations) -> str:
    """Return the directory whose project settings count whole, and where local edits are written."""
    directories = tuple(_near(locations))
    with_settings = (place for place in directories if _has_settings(place))
    roots = (place for place in directories if _is_repository(place))
    return next(with_settings, None) or next(roots, None) or os.path.realpath(locations.cwd)


def left_out(locations: Locations) -> tuple[str, ...]:
    """Return the files of projects that are there, and of strangers or ignored: what should be said."""
    files = (file for place in _ancestors(locations) for file in _present(place))
    return tuple(file for file in files if locations.ignore_project or is_strangers(file))


def project_around_home(locations: Locations) -> str | None:
    """Return a settings file of the project that home lies in, or is the directory of, if there is one.

    A home with settings is nothing odd, so that it is taken for a project's only if it lies in a repository. What
    stands at the root of the disk is about everything, and makes a project of nothing.
    """
    home = os.path.realpath(locations.home)
    for place in upwards(home):
        found = next((file for file in _present(place) if place != "/" and not is_strangers(file)), None)
        if found is not None and (place != home or any(map(_is_repository, upwards(home)))):
            return found
    return None


def project_of(origin: Origin, home: str) -> str | None:
    """Return the directory of the project whose file said something, or None if it was no project's."""
    place, folder = os.path.split(origin.scope)
    if origin.layer not in (Layer.PROJECT, Layer.LOCAL) or folder not in DIRECTORIES or tidy(place) == tidy(home):
        return None
    return place


def settings_files(locations: Locations) -> tuple[str, ...]:
    """Return every path that can hold settings or trust, there or not: what no command may write.

    All directories that are searched for projects are included: a new file in a nearer one would
    take the place of the project's own, and one farther up can stop every run.
    """
    named = [file for file in (locations.settings_file, locations.flag_file) if file is not None]
    managed = [locations.managed, _drop_in_directory(locations)]
    places = [locations.home, *_ancestors(locations)]
    files = [file for place in places for file in _files(place)]
    return tuple(dict.fromkeys([*named, *managed, *files, trust_store(locations.home)]))


def trust_store(home: str) -> str:
    """Return the file that remembers which project files are trusted."""
    return os.path.join(home, ".stockade", "trusted.json")


def _projects(locations: Locations) -> tuple[tuple[str, bool], ...]:
    """Return the project's directory, then every other one on the way up that has settings: whether it is above."""
    project = project_directory(locations)
    own = () if _is_home(project, locations) else ((project, False),)
    others = (place for place in _ancestors(locations) if place != project)
    return (*own, *((place, True) for place in others if _has_settings(place)))


def _has_settings(place: str) -> bool:
    return any(not is_strangers(file) for file in _present(place))


def _present(place: str) -> Iterator[str]:
    """Yield the settings files that a place has. Most have none, which is seen by two looks."""
    for directory in DIRECTORIES:
        folder = os.path.join(place, directory)
        if is_there(folder):
            files = (os.path.join(folder, name) for name in (_LOCAL, _SHARED))
            yield from (file for file in files if is_there(file))


def _pair(layer: Layer, place: str, name: str, *, project: bool = False, above: bool = False) -> list[Source]:
    ours, theirs = (os.path.join(place, directory, name) for directory in DIRECTORIES)
    return [
        Source(layer, ours, project=project, above=above),
        Source(layer, theirs, foreign=True, project=project, above=above),
    ]


def _files(place: str) -> tuple[str, ...]:
    return tuple(os.path.join(place, directory, name) for name in (_LOCAL, _SHARED) for directory in DIRECTORIES)


def _ancestors(locations: Locations) -> Iterator[str]:
    return ancestors(locations.cwd, locations.entered, locations.home)


def _near(locations: Locations) -> Iterator[str]:
    """Yield the directories that may be the project's."""
    home = os.path.realpath(locations.home)
    for place in upwards(os.path.realpath(locations.cwd)):
        if place == home:
            return
        yield place
        if _is_repository(place) or is_open_to_all(os.path.dirname(place)):
            return


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


def _entered(environ: Mapping[str, str], real: str) -> str:
    """Return the working directory as the shell has it, links in it kept; any other name is stale."""
    name = environ.get("PWD", "")
    return os.path.normpath(name) if os.path.isabs(name) and os.path.realpath(name) == real else real


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get(_HOME) or _home_from_database()
    if not os.path.isabs(home):
        raise whole_file(_HOME, "is not an absolute path", "Set HOME to your home directory.")
    return tidy(home)


def _home_from_database() -> str:
    from stockade.settings.home import database_home  # only where HOME is not set

    home = database_home()
    if not home:
        message = "is not set, and this user is not in the user database"
        raise whole_file(_HOME, message, "Set HOME to your home directory.")
    return home
