"""Changes to the local settings file: planned as text, then written so that no crash can spoil it.

Planning is pure. An edit replaces, inserts or cuts a span of the text and never writes the rest anew: order,
indentation, line ends, escapes and spellings of numbers stay as their author left them.

Writing is one step for everybody who looks: a new file beside the old one, flushed, renamed over it. Rules:

- The folder is locked (``flock``) from reading to renaming, so that no two edits lose each other; an editor
  that knows no lock is noticed by the file's signature, and the edit is planned again.
- What is valid stays valid: the text is decoded before and after; anything wrong in it refuses the edit.
- A project's file must be trusted before it is edited; trust then passes to the new content. The store knows one
  content for each file, so the old one is remembered aside until the rename is done: after a crash in between the
  file counts as not trusted, and the next edit of that old content makes it good. What nobody reviewed never counts.
- In a project, a link that leads out of it is refused, and folders are opened link by link without following.
  In home, where dotfiles are often links, the edit goes to what the link leads to.

Source of truth: POSIX rename(2), flock(2), fsync(2).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from stockade.errors import InvalidTextError, SettingsError, StockadeError
from stockade.settings.catalog import Kind
from stockade.settings.content import LIMIT
from stockade.settings.decode import decode
from stockade.settings.layer import Layer
from stockade.settings.locks import require_unlocked
from stockade.settings.problem import Problem
from stockade.settings.sources import project_directory
from stockade.settings.trust import is_trusted, trust, trusted, untrust
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stockade.settings.catalog import Key
    from stockade.settings.locks import Lock
    from stockade.settings.sources import Locations

FOLDER: Final = ".stockade"
NAME: Final = "settings.local.json"

_NEW: Final = b"{}\n"
_BLANK: Final = " \t\r\n"
_MARK: Final = "\ufeff"  # some editors begin a file with it


class Edit(Value):
    """One change to one setting: a ``SetValue``, an ``AddItems`` or a ``RemoveItems``."""

    key: Key[Any]


class SetValue(Edit):
    """Give a setting that holds one value another value."""

    value: bool | int | str | tuple[str, ...]

    def check(self) -> None:
        """Refuse a value of the wrong kind; its range is judged when the result is decoded."""
        kinds = {Kind.FLAG: bool, Kind.NUMBER: int, Kind.TEXT: str, Kind.ARGV: tuple}
        if type(self.value) is not kinds.get(self.key.kind):
            message = f"{self.key.name} cannot be set to {self.value!r}"
            raise InvalidTextError(message, f"It takes {self.key.expected}.")


class _Items(Edit):
    items: tuple[str, ...]

    def check(self) -> None:
        """Refuse a setting that is no list."""
        if self.key.kind is not Kind.TEXTS:
            message = f"{self.key.name} is not a list of texts"
            raise InvalidTextError(message, f"It takes {self.key.expected}.")


class AddItems(_Items):
    """Put items at the end of a list; those that it has already are left where they are."""


class RemoveItems(_Items):
    """Take items out of a list; those that it does not have are no matter."""


class Written(Value):
    """What an edit did: the settings file, whether its content changed, whether it is new."""

    file: str
    changed: bool
    created: bool = False


class _Span(Value):
    """A member of an object or an element of a list: where it begins, where its value does, where both end."""

    name: str
    start: int
    value: int
    end: int
    content: object


class _Layout(Value):
    """How the author of a text lays it out; ``space`` is what follows a colon, and a comma within a line."""

    newline: str
    unit: str
    space: str
    inline: bool

    def render(self, value: object, indent: str | None) -> str:
        """Return JSON for a value that stands at an indentation, or on one line if there is none."""
        comma, unit = (f",{self.space}", None) if indent is None else (",", self.unit)
        text = json.dumps(value, ensure_ascii=False, indent=unit, separators=(comma, f":{self.space}"))
        return text.replace("\n", f"{self.newline}{indent}")


def plan_edit(text: bytes | None, edits: Iterable[Edit], *, file: str = NAME) -> bytes:
    """Return the text with the edits made, all else byte for byte as it was; None is a file that is not there.

    Raises SettingsError, which names ``file``, if the text is no JSON object or holds something else where the
    edit needs an object or a list. Whether the settings in it are valid is not judged here.
    """
    try:
        whole = (_NEW if text is None else text).decode("utf-8")
        draft = whole.removeprefix(_MARK)
        # A number is never looked at, and as a float no number of digits is too many.
        content = json.loads(draft, parse_int=float)
        if not isinstance(content, dict):
            raise _misfit(file, "$", "an object")
        for edit in edits:
            draft = _edited(draft, edit, file)
        return f"{_MARK if whole.startswith(_MARK) else ''}{draft}".encode()
    except (ValueError, RecursionError) as error:
        problem = Problem(file, "$", f"cannot be edited: {error}", "Mend the file by hand first.")
        raise SettingsError([problem]) from error


def _misfit(file: str, path: str, expected: str) -> SettingsError:
    return SettingsError([Problem(file, path, f"must be {expected} to be edited", "Mend the file by hand first.")])


def _edited(text: str, edit: Edit, file: str) -> str:
    parent, missing, found = _locate(text, edit.key, file)
    if isinstance(edit, SetValue):
        if found is None:
            return _append(text, parent, [edit.value], missing)
        return text[: found.value] + _layout(text).render(edit.value, None) + text[found.end :]
    if not isinstance(edit, _Items) or not edit.items:
        return text
    if found is None:
        items = list(dict.fromkeys(edit.items))
        return _append(text, parent, [items], missing) if isinstance(edit, AddItems) else text
    if not isinstance(found.content, list):
        raise _misfit(file, edit.key.path, "a list")
    if isinstance(edit, RemoveItems):
        return _cut(text, found.value, edit.items)
    fresh = [item for item in dict.fromkeys(edit.items) if item not in found.content]
    return _append(text, found.value, fresh) if fresh else text


def _locate(text: str, key: Key[Any], file: str) -> tuple[int, list[str], _Span | None]:
    """Return the innermost object on the way to a setting, the names that it lacks, and the setting if it is there."""
    names = key.name.split(".")
    parent, path = text.index("{"), "$"
    while True:
        # Of two members with one name the last counts, as it does for every reader of JSON.
        found = {span.name: span for span in _spans(text, parent)[0]}.get(names[0])
        if found is None or len(names) == 1:
            return parent, names, found
        path = f"{path}.{names.pop(0)}"
        if not isinstance(found.content, dict):
            raise _misfit(file, path, "an object")
        parent = found.value


def _spans(text: str, opening: int) -> tuple[list[_Span], int]:
    """Return what is inside the bracket at ``opening``, and where it closes; the text is known to be JSON."""
    read = json.JSONDecoder(parse_int=float).raw_decode
    spans: list[_Span] = []
    at = _skip(text, opening + 1)
    while text[at] not in "]}":
        start, name = at, ""
        if text[opening] == "{":
            name, at = read(text, at)
            at = _skip(text, _skip(text, at) + 1)
        content, end = read(text, at)
        spans.append(_Span(name, start, at, end, content))
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return spans, at


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def _blank_before(text: str, at: int) -> str:
    return text[len(text[:at].rstrip(_BLANK)) : at]


def _layout(text: str) -> _Layout:
    """Read the layout off the first member of the whole."""
    newline = "\r\n" if "\r\n" in text else "\n"
    spans, _ = _spans(text, text.index("{"))
    if not spans:
        return _Layout(newline, "  ", " ", inline=False)
    blank = _blank_before(text, spans[0].start)
    space = " " if _blank_before(text, spans[0].value) else ""
    return _Layout(newline, blank.rpartition("\n")[2] or "  ", space, inline="\n" not in blank)


def _append(text: str, opening: int, values: Sequence[object], missing: Sequence[str] = ()) -> str:
    """Put values at the end of a list, or one value, under the names that are missing, at the end of an object."""
    layout = _layout(text)
    spans, closing = _spans(text, opening)
    line = text[text.rfind("\n", 0, opening) + 1 : opening]
    base = line[: len(line) - len(line.lstrip(" \t"))]
    # New items stand as the last one does, the first of all as the whole text does.
    blank = _blank_before(text, spans[-1].start) if spans else "" if layout.inline else f"\n{base}{layout.unit}"
    indent = blank.rpartition("\n")[2] if "\n" in blank else None
    between = blank if len(spans) > 1 else layout.space
    lead = between if indent is None else layout.newline + indent
    entries = f",{lead}".join(_entry(layout, missing, value, indent) for value in values)
    if spans:
        return f"{text[: spans[-1].end]},{lead}{entries}{text[spans[-1].end :]}"
    inside = entries if indent is None else f"{lead}{entries}{layout.newline}{base}"
    return text[: opening + 1] + inside + text[closing:]


def _entry(layout: _Layout, missing: Sequence[str], value: object, indent: str | None) -> str:
    for name in reversed(missing[1:]):
        value = {name: value}
    rendered = layout.render(value, indent)
    return f"{layout.render(missing[0], None)}:{layout.space}{rendered}" if missing else rendered


def _cut(text: str, opening: int, items: Sequence[str]) -> str:
    spans, closing = _spans(text, opening)
    kept = [index for index, span in enumerate(spans) if span.content not in items]
    if not kept:
        return text[: opening + 1] + text[closing:] if spans else text
    for index in reversed(range(len(spans))):
        if index in kept:
            continue
        # The comma goes with the item: the one before it, or after it where nothing that stays is before.
        before = index > kept[0]
        start = spans[index - 1].end if before else spans[index].start
        end = spans[index].end if before else spans[index + 1].start
        text = text[:start] + text[end:]
    return text


_ATTEMPTS: Final = 5
_PATIENCE: Final = 5.0  # seconds; any program that may read the folder can hold its lock
_TEMPORARY: Final = (".stockade-", ".tmp")
_IGNORED: Final = f"{NAME}\n{'*'.join(_TEMPORARY)}\n".encode()
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_LOCKLESS: Final = (errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_HINTS: Final = dict.fromkeys((errno.EACCES, errno.EPERM), "Make the file and its folder yours and writable.") | {
    errno.EROFS: "The file system is read-only: mount it writable first.",
    errno.ENOSPC: "Free some space, then try again.",
    errno.EDQUOT: "Free some of your quota, then try again.",
}


class _Place(Value):
    """Where an edit goes. ``folders`` lead from ``root``, which is opened as it is, and are no links."""

    file: str
    root: str
    folders: tuple[str, ...]
    name: str
    project: bool

    @property
    def aside(self) -> str:
        """The name under which trust of the old content is kept: below a file, so nothing can ever have it."""
        return os.path.join(self.file, "before")


def apply(locations: Locations, edits: Sequence[Edit], *, lock: Lock | None, home_wide: bool = False) -> Written:
    """Make the edits in the project's local file, or in the one in home, and say what came of it.

    In home itself the two are one. Raises LockedError, SettingsError for what is or would be invalid, and
    StockadeError for what cannot be written or is not trusted; the file is then as it was.
    """
    require_unlocked(lock)
    place = _place(locations, home_wide=home_wide)
    try:
        with _opened(place) as folder:
            if _locked(folder, place.file):
                _sweep(folder)
            for _ in range(_ATTEMPTS):
                written = _attempt(folder, place, edits, locations.home)
                if written is not None:
                    return written
    except OSError as error:
        raise _failure(place.file, error) from error
    message = f"{place.file} keeps changing while it is edited"
    raise StockadeError(message, "Close the other program that writes it, then try again.")


def _place(locations: Locations, *, home_wide: bool) -> _Place:
    project = project_directory(locations)
    owned = home_wide or project == os.path.realpath(locations.home)
    root = locations.home if owned else project
    file = os.path.join(root, FOLDER, NAME)
    try:
        with suppress(FileExistsError):
            os.mkdir(os.path.join(root, FOLDER), 0o700 if owned else 0o777)
    except OSError as error:
        raise _failure(file, error) from error
    folder, name = os.path.split(os.path.realpath(file))
    if owned:
        return _Place(file, folder, (), name, project=False)
    if os.path.commonpath([project, folder]) != project or (os.path.islink(file) and not os.path.exists(file)):
        message = f"{file} is a link that leads out of the project, or nowhere"
        raise StockadeError(message, "Put a file in its place.")
    inner = os.path.relpath(folder, project)
    return _Place(file, project, () if inner == "." else tuple(inner.split(os.sep)), name, project=True)


@contextmanager
def _opened(place: _Place) -> Iterator[int]:
    folder = os.open(place.root, _FOLDER)
    try:
        for name in place.folders:
            inner = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _locked(folder: int, file: str) -> bool:
    """Lock the folder until it is closed; False where the file system has no locks, as some on a network."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError as error:
            if error.errno not in _LOCKLESS:
                raise
            return False
        else:
            return True
    message = f"{os.path.dirname(file)} is locked by another program"
    raise StockadeError(message, "Wait until its edit is done, or end it, then try again.")


def _sweep(folder: int) -> None:
    """Remove what edits that were killed have left; no other is under way while the folder is locked."""
    prefix, suffix = _TEMPORARY
    for name in os.listdir(folder):
        if name.startswith(prefix) and name.endswith(suffix):
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)


def _attempt(folder: int, place: _Place, edits: Sequence[Edit], home: str) -> Written | None:
    """Read, plan, check and write; None if the file was changed meanwhile by somebody who knows no lock."""
    text, old = _read(folder, place)
    planned = _checked(place, text, edits, home)
    if planned == (_NEW if text is None else text):
        return Written(place.file, changed=False)
    if text is None and place.folders == (FOLDER,):
        # The local file is kept out of git, unless the project has its own idea of what to ignore there.
        with _prepared(folder, _IGNORED, None, private=False) as temporary:
            _swapped(folder, temporary, ".gitignore", None)
    with _prepared(folder, planned, old, private=not place.project) as temporary:

        def swap() -> bool:
            return _swapped(folder, temporary, place.name, old)

        done = _swapped_with_trust(home, place, text, planned, swap) if place.project else swap()
    return Written(place.file, changed=True, created=text is None) if done else None


def _read(folder: int, place: _Place) -> tuple[bytes | None, os.stat_result | None]:
    try:
        with open(place.name, "rb", opener=lambda name, _: os.open(name, _FILE, dir_fd=folder)) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
                message = f"{place.file} is not a file of settings"
                raise StockadeError(message, "Put a settings file there, or remove it.")
            return stream.read(LIMIT), status
    except FileNotFoundError:
        return None, None


def _checked(place: _Place, text: bytes | None, edits: Sequence[Edit], home: str) -> bytes:
    if text is not None:
        if place.project:
            _require_trust(home, place, text)
        decode(text, Layer.LOCAL, place.file)
    planned = plan_edit(text, edits, file=place.file)
    decode(planned, Layer.LOCAL, place.file)
    return planned


def _require_trust(home: str, place: _Place, text: bytes) -> None:
    if is_trusted(home, place.file, text):
        return
    # An edit was killed before its rename. Without a record for the file itself, the user has since revoked it.
    if os.path.realpath(place.file) in trusted(home) and is_trusted(home, place.aside, text):
        trust(home, place.file, text)
        untrust(home, place.aside)
        return
    message = f"{place.file} is not trusted, and to edit it would be to trust all of it"
    raise StockadeError(message, "Read it, then run `stockade trust`.")


def _swapped_with_trust(home: str, place: _Place, before: bytes | None, after: bytes, swap: Callable[[], bool]) -> bool:
    """Swap, with trust passing from the old content to the new, and back if the swap does not happen."""
    if before is not None:
        trust(home, place.aside, before)
    trust(home, place.file, after)
    swapped = False
    try:
        swapped = swap()
    finally:
        # Where this fails, what is left is what a crash would leave, and the next edit makes it good.
        with suppress(StockadeError):
            if not swapped:
                untrust(home, place.file) if before is None else trust(home, place.file, before)
            if before is not None:
                untrust(home, place.aside)
    return swapped


@contextmanager
def _prepared(folder: int, data: bytes, old: os.stat_result | None, *, private: bool) -> Iterator[str]:
    """Write the data, with the owner and mode of the old file, under a name that is gone afterwards if not renamed."""
    temporary = os.urandom(8).hex().join(_TEMPORARY)
    descriptor = os.open(temporary, _FRESH, 0o600 if private or old else 0o666, dir_fd=folder)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            if old is not None:
                new = os.fstat(descriptor)
                if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                    os.fchown(descriptor, old.st_uid, old.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
            os.fsync(descriptor)
        yield temporary
    finally:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)


def _swapped(folder: int, temporary: str, name: str, old: os.stat_result | None) -> bool:
    """Rename in one step; False, and nothing done, if the file is not the old one any more."""
    try:
        now = _signature(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        now = None
    if now != (_signature(old) if old else None):
        return False
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    # The edit is made and cannot be unmade; a file system that flushes no folders is no failure of it.
    with suppress(OSError):
        os.fsync(folder)
    return True


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _failure(file: str, error: OSError) -> StockadeError:
    hint = _HINTS.get(error.errno or 0, "See that its folder is there, and is one.")
    return StockadeError(f"{file} cannot be edited: {error.strerror or error}", hint)
