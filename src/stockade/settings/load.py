"""All layers at once: read, decode, locks, trust, merge.

Every problem of every file is reported together, and any of them stops the run: settings are never
looser because a file could not be read. What is not trusted only tightens; what has no effect is a
warning, one line each.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import SettingsError
from stockade.escape import escape
from stockade.settings.catalog import AUTO_ALLOW
from stockade.settings.content import read_content
from stockade.settings.decode import examine
from stockade.settings.layer import Layer
from stockade.settings.locks import Lock, admit_command_line, confine, find_lock
from stockade.settings.merge import Settings, merge
from stockade.settings.ownership import managed_warnings
from stockade.settings.problem import Problem, whole_file
from stockade.settings.sources import FLAG_VARIABLE, Source, settings_files, sources
from stockade.settings.tighten import Tightened, tighten
from stockade.settings.trust import is_trusted
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from stockade.settings.document import Document
    from stockade.settings.sources import Locations

    Provider = Callable[[], Mapping[str, object]]

PROVIDER: Final = "the settings provider"
_PROVIDED: Final = Source(Layer.FLAG, PROVIDER)
_MISSING: Final = {
    Layer.COMMAND_LINE: "Check the name given to --settings.",
    Layer.FLAG: f"Check the name in {FLAG_VARIABLE}, or unset it.",
}


class Loaded(Value):
    """The settings in force and where they come from.

    ``documents`` are those that count, highest first, the untrusted ones already cut down.
    ``files`` is every path that can hold settings, there or not.
    """

    settings: Settings
    documents: tuple[Document, ...]
    warnings: tuple[str, ...]
    lock: Lock | None
    files: tuple[str, ...]


class Reading(Value):
    """Every source that is there, the highest first, as far as it could be read, and all that is wrong with them."""

    locations: Locations
    sources: tuple[_Read, ...]
    problems: tuple[Problem, ...]

    @property
    def documents(self) -> tuple[Document, ...]:
        """What the sources say, whole: nothing is cut down yet."""
        return tuple(one.document for one in self.sources)


def load(locations: Locations, *, flags: Document | None = None, provider: Provider | None = None) -> Loaded:
    """Load the settings of all layers. Raises SettingsError or LockedError.

    ``flags`` is what the command line's own options say. ``provider`` is a host program's say in the
    flag layer, above the flag file; its mapping is checked like a file.
    """
    return settle(read(locations, provider=provider), flags=flags)


def read(locations: Locations, *, provider: Provider | None = None) -> Reading:
    """Read the sources of all layers. What is wrong with one is kept, not raised, so that all can be reported."""
    sources_read: list[_Read] = []
    problems: list[Problem] = []
    try:
        places = sources(locations)
    except SettingsError as error:
        return Reading(locations, (), error.problems)
    for source in places if provider is None else _with_provider(places):
        try:
            one = _read(source, provider)
        except SettingsError as error:
            problems += error.problems
            continue
        if one is not None:
            sources_read.append(one)
            problems += one.problems
    return Reading(locations, tuple(sources_read), tuple(problems))


def settle(reading: Reading, *, flags: Document | None = None) -> Loaded:
    """Return the settings in force: locks, trust, merge. Raises SettingsError or LockedError."""
    if reading.problems:
        raise SettingsError(reading.problems)
    lock = find_lock(reading.documents)
    confined, overruled = _apply_lock(reading.sources, lock)
    trusted, warnings = _apply_trust(confined, reading.locations.home)
    documents = trusted if flags is None else (flags, *trusted)
    _admit(documents, lock)
    return Loaded(
        merge(documents),
        documents,
        (*(warning for one in reading.sources for warning in one.warnings), *overruled, *warnings),
        lock,
        settings_files(reading.locations),
    )


class _Read(Value):
    """One source that is there: its bytes, what they say, and what is odd about it or wrong with it."""

    source: Source
    data: bytes
    document: Document
    warnings: tuple[str, ...]
    problems: tuple[Problem, ...]


def _with_provider(places: Iterable[Source]) -> tuple[Source, ...]:
    places = tuple(places)
    higher = tuple(source for source in places if source.layer > Layer.FLAG)
    return (*higher, _PROVIDED, *places[len(higher) :])


def _read(source: Source, provider: Provider | None) -> _Read | None:
    if source is _PROVIDED and provider is not None:
        return _decoded(source, _provide(provider), ())
    content = read_content(source.file)
    if content is None:
        if source.required:
            raise whole_file(source.file, "does not exist", _MISSING[source.layer])
        return None
    warnings = managed_warnings(source.file, content) if source.layer is Layer.POLICY else ()
    return _decoded(source, content.data, warnings)


def _decoded(source: Source, data: bytes, warnings: tuple[str, ...]) -> _Read:
    flat = source.layer is Layer.COMMAND_LINE
    decoded = examine(data, source.layer, source.file, foreign=source.foreign, flat=flat)
    return _Read(source, data, decoded.document, (*warnings, *decoded.warnings), decoded.problems)


def _provide(provider: Provider) -> bytes:
    """Return what a provider says as if it stood in a file."""
    import json  # only for host programs with a provider

    try:
        return json.dumps(provider()).encode("ascii")
    except Exception as error:  # a host's own code; whatever it raises, its policy is not known
        message = f"failed: {escape(f'{type(error).__name__}: {error}')}"
        raise whole_file(PROVIDER, message, "Mend the provider: without it the policy is not known.") from error


def _apply_lock(read: tuple[_Read, ...], lock: Lock | None) -> tuple[tuple[_Read, ...], tuple[str, ...]]:
    """Take from each document what only they may set who may lock."""
    kept: list[_Read] = []
    warnings: list[str] = []
    for one in read:
        confined = confine(one.document, lock)
        kept.append(one.but(document=confined.document))
        if lock is not None and confined.dropped:
            names = ", ".join(confined.dropped)
            warnings.append(
                f"{escape(one.source.file)}: ignored: {names}; sandbox settings are locked by {lock.origin}"
            )
    return tuple(kept), tuple(warnings)


def _apply_trust(read: tuple[_Read, ...], home: str) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    """Cut untrusted documents down, the lowest first, each compared with all else that counts."""
    counting = {index: one.document for index, one in enumerate(read) if not one.source.project}
    warnings: list[str] = []
    for index in reversed(range(len(read))):
        one = read[index]
        if not one.source.project:
            continue
        tightened = tighten(one.document, merge(_in_order(counting)))
        trusted = tightened.document == one.document or is_trusted(home, one.source.file, one.data)
        counting[index] = one.document if trusted else tightened.document
        if not trusted and (warning := _warning(tightened, one.document)):
            warnings.append(warning)
    return _in_order(counting), tuple(reversed(warnings))


def _in_order(documents: Mapping[int, Document]) -> tuple[Document, ...]:
    return tuple(documents[index] for index in sorted(documents))


def _warning(tightened: Tightened, document: Document) -> str:
    """Return what the user should know of a document that was cut down, if it makes a difference."""
    notes = [f"ignored: {', '.join(tightened.dropped)}"] if tightened.dropped else []
    if tightened.document.get(AUTO_ALLOW) is False and document.get(AUTO_ALLOW) is not False:
        notes.append("commands still need approval")
    if not notes:
        return ""
    return f"{escape(document.file)} is not trusted; {'; '.join(notes)}. Read it, then run `stockade trust`"


def _admit(documents: tuple[Document, ...], lock: Lock | None) -> None:
    below = merge(document for document in documents if document.layer is not Layer.COMMAND_LINE)
    for document in documents:
        if document.layer is Layer.COMMAND_LINE:
            admit_command_line(document, lock, below)
