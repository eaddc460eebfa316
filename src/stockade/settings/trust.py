"""Which project files the user has trusted: by place and by the exact bytes.

The place is the project's real directory and the name in it: a link below a project that leads to a trusted file does
not make another project of the same words, whose relative paths would mean other places.

The store is ``~/.stockade/trusted.json``, outside every project, mode 0600: an object from path to a
list of SHA-256, the newest first. The list is short: one content, and during an edit the one before.
Whoever could write the store could loosen every project's sandbox, so a store that is a link, belongs
to somebody else, can be written by others or makes no sense is refused with an error; it is never
used and never silently replaced. Writers take turns by a lock on ``trusted.lock`` beside it.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias, TypeGuard
from stockade.escape import escape
from stockade.settings.content import read_content
from stockade.settings.json_text import JsonObject, parse
from stockade.settings.problem import whole_file
from stockade.settings.sources import is_open_to_all, trust_store
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable

    Entries: TypeAlias = dict[str, tuple[str, ...]]

_PATIENCE: Final = 5.0  # seconds to wait for another writer, who needs milliseconds
_DIGEST_LENGTH: Final = 64
_MOST: Final = 2  # contents of one file


def is_trusted(home: str, file: str, content: bytes) -> bool:
    """Tell whether the user has trusted this file with this content. Raises SettingsError."""
    return _digest(content) in trusted(home).get(_place(file), ())


def trust(home: str, file: str, content: bytes, *older: bytes) -> None:
    """Remember that the user trusts this file with this content, or older ones, and no other. Raises SettingsError."""
    real = _place(file)
    digests = tuple(map(_digest, (content, *older)[:_MOST]))
    _update(home, lambda entries: entries | {real: digests})


def untrust(home: str, file: str) -> None:
    """Forget a file, whatever its content. Raises SettingsError."""
    real = _place(file)
    _update(home, lambda entries: {path: digests for path, digests in entries.items() if path != real})


def trusted(home: str) -> Entries:
    """Return every trusted file with the hashes of its content. Raises SettingsError."""
    return _read(trust_store(home))


def _place(file: str) -> str:
    folder, name = os.path.split(os.path.abspath(file))
    return os.path.join(os.path.realpath(os.path.dirname(folder)), os.path.basename(folder), name)


def _digest(content: bytes) -> str:
    import hashlib  # most runs have no project file that loosens

    return hashlib.sha256(content).hexdigest()


def _read(store: str) -> Entries:
    if os.path.islink(store):
        raise whole_file(store, "is a link", "Replace it by a file of your own, mode 600.")
    content = read_content(store)
    if content is None:
        return {}
    if content.owner not in (0, os.geteuid()):
        raise whole_file(store, f"belongs to user {content.owner}", "Remove it, or run as that user.")
    if content.mode & (stat.S_IWGRP | stat.S_IWOTH) or is_open_to_all(os.path.dirname(store)):
        raise whole_file(
            store, "can be written by other users", f"chmod go-w {escape(store)} {escape(os.path.dirname(store))}"
        )
    return _entries(content.data, store)


def _entries(data: bytes, store: str) -> Entries:
    raw = parse(data, store)
    entries = dict(raw) if isinstance(raw, JsonObject) else {}
    digests = {path: tuple(listed) for path, listed in entries.items() if _are_digests(listed)}
    if not isinstance(raw, JsonObject) or len(digests) != len(raw):
        raise whole_file(store, "is damaged", "Remove it and trust your projects again with `stockade trust`.")
    return digests


def _are_digests(listed: object) -> TypeGuard[list[str]]:
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST:
        return False
    return all(isinstance(digest, str) and len(digest) == _DIGEST_LENGTH for digest in listed)


def _update(home: str, change: Callable[[Entries], Entries]) -> None:
    store = trust_store(home)
    try:
        os.makedirs(os.path.dirname(store), mode=0o700, exist_ok=True)
        turn = _take_turn(os.path.join(os.path.dirname(store), "trusted.lock"))
        try:
            before = _read(store)
            after = change(before)
            if after != before:
                _replace(store, _encode(after))
        finally:
            os.close(turn)
    except OSError as error:
        raise whole_file(store, f"cannot be written: {error.strerror}", "Check the directory's permissions.") from None


def _encode(entries: Entries) -> bytes:
    import json  # only when trust changes

    # ASCII only: a path that is not UTF-8 holds lone surrogates, which JSON can escape but UTF-8 cannot hold.
    return (json.dumps(entries, indent=2, sort_keys=True) + "\n").encode("ascii")


def _take_turn(lock: str) -> int:
    """Return the writers' lock, held until it is closed. A process that never lets go makes us fail, not wait."""
    import fcntl  # only when trust changes
    import time

    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise whole_file(lock, "is held by another process", "Try again, or end that process.") from None
                time.sleep(0.01)
            else:
                return descriptor
    except BaseException:
        os.close(descriptor)
        raise


def _replace(store: str, data: bytes) -> None:
    """Put a new store in place of the old one, whole or not at all."""
    directory = os.path.dirname(store)
    temporary = f"{store}.{os.getpid()}.{os.urandom(4).hex()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, store)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync(directory)


def _sync(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
