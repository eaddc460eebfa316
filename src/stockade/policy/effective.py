"""The policy in force: settings loaded and compiled, or every reason why they cannot be, of shape and of meaning.

Settings know the shape of a file, the policy what its texts mean; here the two are joined, so that one run reports all.
Rules: a file that is partly wrong is still searched for mistakes of meaning; of two complaints about the same place the
one about its shape is kept; problems come by file, the highest first, and by path. What is wrong with the file of a
project stops the run like any other, but a stranger may have written it: its hint says how to go on without.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import SettingsError
from stockade.policy.compile import compile_policy
from stockade.settings.load import read, settle
from stockade.settings.merge import merge
from stockade.settings.sources import Locations
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from stockade.policy.model import SandboxPolicy
    from stockade.settings.document import Document
    from stockade.settings.load import Loaded, Provider, Reading
    from stockade.settings.problem import Problem


#: How to go on where a project's files stop the run.
WITHOUT_PROJECT: Final = "To run commands without the settings of this project: stockade run --ignore-project"


class Effective(Value):
    """The settings in force and what they mean."""

    loaded: Loaded
    policy: SandboxPolicy

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that people should be told of these settings, one line each."""
        return (*self.loaded.warnings, *self.policy.notes)


class Diagnosis(Value):
    """What is wrong with a document, by path, and (where nothing is) what in it means nothing."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()


def effective(locations: Locations, *, flags: Document | None = None, provider: Provider | None = None) -> Effective:
    """Load and compile the settings of all layers. Raises LockedError, or SettingsError with all that is wrong."""
    reading = read(locations, provider=provider)
    try:
        loaded = settle(reading, flags=flags)
        policy = compile_policy(loaded.settings, cwd=locations.cwd, home=locations.home, guarded=loaded.files)
    except SettingsError as error:
        raise SettingsError(_all_problems(reading, flags, error.problems)) from None
    return Effective(loaded, policy)


def load_policy(
    cwd: str | os.PathLike[str] | None = None,
    *,
    settings_file: str | None = None,
    provider: Provider | None = None,
    environ: Mapping[str, str] | None = None,
) -> SandboxPolicy:
    """Return the policy in force in a directory, the current one if none is named, for the user of this process.

    ``settings_file`` counts as if given to ``--settings``; ``provider`` is a host program's own say, in the flag layer.
    Raises LockedError, or SettingsError with all that is wrong with the files.
    """
    place = None if cwd is None else os.fspath(cwd)
    locations = Locations.here(os.environ if environ is None else environ, place, settings_file)
    return effective(locations, provider=provider).policy


def diagnose(document: Document, problems: Iterable[Problem], *, cwd: str, home: str) -> Diagnosis:
    """Return all that can be said against a document; ``problems`` are those of its shape, known already."""
    known = tuple(problems)
    places = {problem.path for problem in known}
    notes: tuple[str, ...] = ()
    try:
        notes = compile_policy(merge([document]), cwd=cwd, home=home).notes
    except SettingsError as error:
        known += tuple(problem for problem in error.problems if problem.path not in places)
    return Diagnosis(tuple(sorted(known, key=lambda problem: _in_order(problem.path))), notes)


def _all_problems(reading: Reading, flags: Document | None, first: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Search every document, whole: also what is hidden by a higher one, or ignored for want of trust."""
    documents = reading.documents if flags is None else (flags, *reading.documents)
    by_file: dict[str, list[Problem]] = {document.file: [] for document in documents}
    for problem in reading.problems:
        by_file.setdefault(problem.file, []).append(problem)
    cwd, home = reading.locations.cwd, reading.locations.home
    for document in documents:
        by_file[document.file] = [*diagnose(document, by_file[document.file], cwd=cwd, home=home).problems]
    found = [problem for problems in by_file.values() for problem in problems]
    # What a lock took out of a list moves the rest of it up: a file's own count is the one to show.
    known = {(problem.file, problem.message) for problem in found}
    found += [problem for problem in first if (problem.file, problem.message) not in known]
    projects = {one.source.file for one in reading.sources if one.source.project} | set(reading.unreadable)
    return tuple(_with_way_out(problem, projects) for problem in dict.fromkeys(found))


def _with_way_out(problem: Problem, projects: Collection[str]) -> Problem:
    if problem.file not in projects:
        return problem
    return problem.but(hint=f"{problem.hint} {WITHOUT_PROJECT}".strip())


def _in_order(path: str) -> list[tuple[int, str]]:
    """Return what a JSON path is sorted by: ``[10]`` comes after ``[9]``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in path.replace("[", "]").split("]")]
