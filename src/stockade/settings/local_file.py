"""The local settings file, which tools write: edited so that no crash can spoil it, nor anybody slip something in.

Writing is one step for everybody who looks: a new file beside the old one, flushed, renamed over it. Rules:

- The folder is locked (``flock``) from reading to renaming, so that no two edits lose each other; an editor
  that knows no lock is noticed by the file's signature, and the edit is planned again.
- What is valid stays valid: the text is decoded before and after; anything wrong in it refuses the edit.
- A project's file must be trusted before it is edited; trust then passes to the new content. Around the rename both
  contents are trusted, so that a crash in between leaves a trusted file, old or new; what nobody reviewed never counts.
- In a project, a link that leads out of it is refused, and folders are opened link by link without following.
  In home, where dotfiles are often links, the edit goes to what the link leads to.

Source of truth: POSIX rename(2), flock(2), fsync(2).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError
from stockade.escape import escape
from stockade.placeholder import is_kept
from stockade.settings.content import LIMIT
from stockade.settings.decode import decode
from stockade.settings.edit import NEW, plan_edit
from stockade.settings.layer import Layer
from stockade.settings.locks import require_unlocked
from stockade.settings.sources import project_directory
from stockade.settings.trust import is_trusted, trust, untrust
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stockade.settings.edit import Edit
    from stockade.settings.locks import Lock
    from stockade.settings.sources import Locations

FOLDER: Final = ".stockade"
NAME: Final = "settings.local.json"

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


class Written(Value):
    """What an edit did: the settings file, whether its content changed, whether it is new."""

    file: str
    changed: bool
    created: bool = False


class _Place(Value):
    """Where an edit goes. ``folders`` lead from ``root``, which is opened as it is, and are no links."""

    file: str
    root: str
    folders: tuple[str, ...]
    name: str
    project: bool


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
    message = f"{escape(place.file)} keeps changing while it is edited"
    raise StockadeError(message, "Close the other program that writes it, then try again.")


def is_held(locations: Locations) -> bool:
    """Say whether a sandbox keeps the project's local file from being made at the moment."""
    file = os.path.join(project_directory(locations), FOLDER, NAME)
    return _is_kept(os.path.dirname(file)) or _is_kept(file)


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
        message = f"{escape(file)} is a link that leads out of the project, or nowhere"
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
    message = f"{escape(os.path.dirname(file))} is locked by another program"
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
    if planned == (NEW if text is None else text):
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
                message = f"{escape(place.file)} is not a file of settings"
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
    message = f"{escape(place.file)} is not trusted, and to edit it would be to trust all of it"
    raise StockadeError(message, "Read it, then run `stockade trust`.")


def _swapped_with_trust(home: str, place: _Place, before: bytes | None, after: bytes, swap: Callable[[], bool]) -> bool:
    """Swap, with trust passing from the old content to the new, and back if the swap does not happen."""
    old = () if before is None else (before,)
    trust(home, place.file, after, *old)
    swapped = False
    try:
        swapped = swap()
    finally:
        kept = (after,) if swapped else old
        # Where this fails, both contents stay trusted until the next edit, as after a crash.
        with suppress(StockadeError):
            trust(home, place.file, *kept) if kept else untrust(home, place.file)
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
    if _is_kept(os.path.dirname(file)) or _is_kept(file):
        message = f"{escape(file)} cannot be made while a sandboxed command runs here"
        return StockadeError(message, "Try again when it has ended, or change the settings in your home.")
    hint = _HINTS.get(error.errno or 0, "See that its folder is there, and is one.")
    return StockadeError(f"{escape(file)} cannot be edited: {error.strerror or error}", hint)


def _is_kept(path: str) -> bool:
    """Tell whether a sandbox keeps a name from being made."""
    try:
        return is_kept(path)
    except OSError:
        return False
