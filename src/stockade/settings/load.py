"""All layers at once: read, decode, locks, trust, merge.

Every problem of every file is reported together, and any of them stops the run: settings are never
looser because a file could not be read. What is not trusted, or stands above the project, only tightens;
what has no effect is a warning, one line each.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import SettingsError
from stockade.escape import escape
from stockade.settings.catalog import ALLOW_FLAG_SETTINGS, AUTO_ALLOW, MANAGED_ONLY
from stockade.settings.content import read_content
from stockade.settings.decode import examine
from stockade.settings.foreign_proxy import find_deny, require_ours, without_foreign_proxy
from stockade.settings.layer import Layer
from stockade.settings.locks import Lock, admit_command_line, confine, find_lock
from stockade.settings.merge import Settings, merge
from stockade.settings.ownership import managed_warnings
from stockade.settings.problem import Problem, whole_file
from stockade.settings.sources import FLAG_VARIABLE, Source, left_out, project_around_home, settings_files, sources
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
    """Every source that is there, the highest first, as far as it could be read, and all that is wrong with them.

    ``unreadable`` are the files of projects that are there but could not be read.
    """

    locations: Locations
    sources: tuple[_Read, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

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
    warnings = [*_left_out(locations), *_borrowed_home(locations)]
    unreadable: list[str] = []
    try:
        places = sources(locations)
    except SettingsError as error:
        return Reading(locations, (), error.problems)
    for source in places if provider is None else _with_provider(places):
        if source.layer is Layer.FLAG and source is not _PROVIDED and (no := _uncounted(sources_read)):
            warnings.append(f"{FLAG_VARIABLE} does not count: {no}; {escape(source.file)} was not read")
            continue
        try:
            one = _read(source, provider)
        except SettingsError as error:
            problems += error.problems
            unreadable += [source.file] if source.project else []
            continue
        if one is not None:
            sources_read.append(one)
            problems += one.problems
    return Reading(locations, tuple(sources_read), tuple(problems), tuple(warnings), tuple(unreadable))


def settle(reading: Reading, *, flags: Document | None = None) -> Loaded:
    """Return the settings in force: locks, trust, merge. Raises SettingsError or LockedError."""
    if reading.problems:
        raise SettingsError(reading.problems)
    lock = find_lock(reading.documents)
    confined, overruled = _apply_lock(reading.sources, lock)
    filtered, unfiltered = _apply_denies(confined)
    trusted, warnings = _apply_trust(filtered, reading.locations.home)
    documents = trusted if flags is None else (flags, *trusted)
    _admit(documents, lock)
    said = (warning for one in reading.sources for warning in one.warnings)
    return Loaded(
        merge(documents),
        documents,
        (*reading.warnings, *said, *overruled, *unfiltered, *warnings),
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
    document, idle = _without_idle(decoded.document)
    return _Read(source, data, document, (*warnings, *decoded.warnings, *idle), decoded.problems)


def _without_idle(document: Document) -> tuple[Document, tuple[str, ...]]:
    """Take away what only managed settings can say."""
    names = [key.name for key in MANAGED_ONLY if key.name in document.values]
    if document.layer is Layer.POLICY or not names:
        return document, ()
    values = {name: value for name, value in document.values.items() if name not in names}
    warning = f"{escape(document.file)}: ignored: {', '.join(names)}; only managed settings can set it"
    return document.but(values=values), (warning,)


def _uncounted(read: Iterable[_Read]) -> str:
    """Return which managed file says that the variable does not count, if the highest that speaks of it does."""
    said = (one.document for one in read if one.document.layer is Layer.POLICY)
    first = next((one for one in said if one.get(ALLOW_FLAG_SETTINGS) is not None), None)
    if first is None or first.get(ALLOW_FLAG_SETTINGS):
        return ""
    return f"{first.origin(ALLOW_FLAG_SETTINGS)} says {ALLOW_FLAG_SETTINGS.name}: false"


def _left_out(locations: Locations) -> Iterable[str]:
    files = ", ".join(map(escape, left_out(locations)))
    if not files:
        return ()
    if locations.ignore_project:
        return (f"left out, as you asked (--ignore-project): {files}",)
    return (f"not read, for they are another user's where everybody may put files: {files}",)


def _borrowed_home(locations: Locations) -> Iterable[str]:
    file = project_around_home(locations)
    if file is None:
        return ()
    from stockade.settings.home import borrowed  # few homes lie in a project

    return filter(None, (borrowed(locations.home, file),))


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


def _apply_denies(read: tuple[_Read, ...]) -> tuple[tuple[_Read, ...], tuple[str, ...]]:
    """Take from each document below the policy the proxies behind which the policy's denied domains do not hold."""
    deny = find_deny(one.document for one in read)
    if deny is None:
        return read, ()
    cut = [(one, *without_foreign_proxy(one.document, deny)) for one in read]
    kept = tuple(one.but(document=document) for one, document, _ in cut)
    return kept, tuple(warning for _, _, warning in cut if warning)


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
        whole = trusted and not one.source.above
        counting[index] = one.document if whole else tightened.document
        if not whole and (warning := _warning(tightened, one, trusted=trusted)):
            warnings.append(warning)
    return _in_order(counting), tuple(reversed(warnings))


def _in_order(documents: Mapping[int, Document]) -> tuple[Document, ...]:
    return tuple(documents[index] for index in sorted(documents))


def _warning(tightened: Tightened, read: _Read, *, trusted: bool) -> str:
    """Return what the user should know of a document that was cut down, if it makes a difference."""
    # Far up, what nobody has trusted would not count in its own place either, and is not worth a word.
    dropped = () if read.source.above and not trusted else tightened.dropped
    notes = [f"ignored: {', '.join(dropped)}"] if dropped else []
    if tightened.document.get(AUTO_ALLOW) is False and read.document.get(AUTO_ALLOW) is not False:
        notes.append("commands still need approval")
    if not notes:
        return ""
    file, words = escape(read.document.file), "; ".join(notes)
    if read.source.above:
        return f"{file} stands above the project that you are in, where it can only tighten; {words}"
    return f"{file} is not trusted; {words}. Read it, then run `stockade trust`"


def _admit(documents: tuple[Document, ...], lock: Lock | None) -> None:
    below = merge(document for document in documents if document.layer is not Layer.COMMAND_LINE)
    deny = find_deny(documents)
    for document in documents:
        if document.layer is Layer.COMMAND_LINE:
            admit_command_line(document, lock, below)
            require_ours(document, deny, below)
