"""Settings that change while a session runs: noticed, loaded anew, told to whoever asked.

Rules:

- ``Watch.poll`` looks once and returns; it has no thread and no event loop of its own. A look costs one ``stat`` for
  each path that can hold settings, there or not, and for each drop-in of the administrator.
- What counts is the content. A stat signature only saves reading, and only once the file has rested: two writes in
  one tick of the file system's clock can leave the same signature.
- What is invalid changes nothing: the last good settings stay in force, and the change says why.
- A subscriber that raises is reported as any uncaught exception is, and does not keep the news from the others.

Source of truth: inode(7) on time stamps; the coarsest clock of a file system in use ticks every two seconds (FAT).
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import contextmanager

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import SettingsError, StockadeError
from stockade.settings.content import read_content
from stockade.settings.load import load as load_all
from stockade.settings.sources import settings_files
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from stockade.settings.load import Loaded
    from stockade.settings.sources import Locations

INTERVAL: Final = 0.25  # seconds between looks, so that a change is known within one
_TICK: Final = 2_000_000_000  # nanoseconds


class Change(Value):
    """News about settings: what is in force from now on, and why that is not what the files say, if it is not."""

    loaded: Loaded
    error: StockadeError | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """All that people should be told, one line each."""
        if self.error is None:
            return self.loaded.warnings
        return (f"{self.error.message}; the settings before stay in force", *self.loaded.warnings)


class _Look(Value):
    """What one path held. ``content`` is compared; a ``rested`` one need not be read while the signature stays."""

    content: object
    signature: tuple[int, ...] = ()
    rested: bool = False


class Watch:
    """The settings of some locations, kept up to date by polling. For one thread at a time.

    ``load`` is how they are loaded; a host with flags or a provider of its own passes a function that knows them.
    Loads at once, and raises what that raises: without settings that were good once, there is nothing to keep.
    """

    def __init__(self, locations: Locations, load: Callable[[Locations], Loaded] = load_all) -> None:
        self._locations = locations
        self._load = load
        self._subscribers: dict[object, Callable[[Change], object]] = {}
        # Looking comes before loading: what changes in between is then found by the next look.
        self._seen = _look_at(settings_files(locations), {})
        self._current = Change(load(locations))

    @property
    def current(self) -> Change:
        """The settings in force, and the error that keeps newer ones out, if there is one."""
        return self._current

    def poll(self) -> Change | None:
        """Look once. If anything changed that matters, tell the subscribers and return it."""
        before = self._seen
        paths = (*settings_files(self._locations), *self._current.loaded.files)
        self._seen = _look_at(dict.fromkeys(paths), before)
        if _contents(self._seen) == _contents(before):
            return None
        return self.reload()

    def reload(self) -> Change | None:
        """Load now, whatever the files look like: for a host whose provider has news."""
        try:
            change = Change(self._load(self._locations))
        except StockadeError as error:
            change = Change(self._current.loaded, error)
        if _says_the_same(change, self._current):
            return None
        self._current = change
        for subscriber in tuple(self._subscribers.values()):
            _tell(subscriber, change)
        return change

    def subscribe(self, callback: Callable[[Change], object]) -> Callable[[], None]:
        """Call back with each change from now on; the function returned ends that, and may be called twice."""
        ticket = object()
        self._subscribers[ticket] = callback

        def unsubscribe() -> None:
            self._subscribers.pop(ticket, None)

        return unsubscribe


@contextmanager
def watching(
    locations: Locations,
    callback: Callable[[Change], object],
    *,
    load: Callable[[Locations], Loaded] = load_all,
    interval: float = INTERVAL,
) -> Iterator[Watch]:
    """Poll in a thread while the block runs; the callback is called in that thread, never after the block."""
    import threading  # only for hosts that want to be told

    watch = Watch(locations, load)
    watch.subscribe(callback)
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(interval):
            watch.poll()

    thread = threading.Thread(target=work, name="stockade-settings-watch", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()


def _tell(subscriber: Callable[[Change], object], change: Change) -> None:
    try:
        subscriber(change)
    except Exception as error:  # noqa: BLE001  # it is the host's code, and must not keep the news from others
        sys.excepthook(type(error), error, error.__traceback__)


def _says_the_same(one: Change, other: Change) -> bool:
    if one.error is None or other.error is None:
        return one == other
    # Errors compare by identity; what they say is in their fields.
    return one.loaded == other.loaded and vars(one.error) == vars(other.error)


def _contents(looks: Mapping[str, _Look]) -> dict[str, object]:
    return {path: look.content for path, look in looks.items()}


def _look_at(paths: Iterable[str], before: Mapping[str, _Look]) -> dict[str, _Look]:
    looks: dict[str, _Look] = {}
    for path in paths:
        look = looks[path] = _look(path, before.get(path))
        if isinstance(look.content, frozenset):
            for name in look.content:
                inner = os.path.join(path, name)
                looks[inner] = _look(inner, before.get(inner))
    return looks


def _look(path: str, before: _Look | None) -> _Look:
    now = time.time_ns()
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        # A link that leads nowhere is an error to the loader, where a missing file is none.
        return _Look((type(error), os.path.islink(path)))
    signature = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if before is not None and before.rested and before.signature == signature:
        return before
    content = _names(path) if stat.S_ISDIR(status.st_mode) else _content(path)
    return _Look(content, signature, rested=now - status.st_ctime_ns > _TICK)


def _names(path: str) -> object:
    try:
        return frozenset(name for name in os.listdir(path) if name.endswith(".json"))
    except OSError as error:
        return type(error)


def _content(path: str) -> object:
    import hashlib  # most runs end before anything changes

    try:
        content = read_content(path)
    except SettingsError as error:
        return error.message
    # Owner and mode count as well: the loader judges by them whom it believes.
    return None if content is None else (hashlib.sha256(content.data).digest(), content.owner, content.mode)
