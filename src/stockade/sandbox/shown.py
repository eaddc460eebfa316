"""What of a user's own caches and settings shows in a private cache: links to it, and no copy.

A variable such as CARGO_HOME moves more than a cache: settings and credentials beside it count too, and what the user
has downloaded is worth reading. So the private folder holds links to that. It can be read through them as before, and
written as little as before: a command replaces a link in its own cache, never what it leads to.

Rules:

- ``names`` are linked if they are there, and of ``each`` folder every entry. What is there already stays.
- What of ``once`` is wanted (the project has the file ``marker``) is laid out anew, directory by directory with a link
  for each file, so that commands can add to it; the first time only, and no more than so many entries.
- Commands may write here while we do: no link of theirs is followed. What takes more than one step is built beside the
  cache, where they do not see it, and moved there whole.
- Go reads the user's modules by itself, as a proxy of files that is asked first.

Source of truth: the manuals of cargo, gradle, huggingface_hub, playwright, puppeteer, cypress, torch, matplotlib,
ccache; ``go help environment``, go.dev/ref/mod (GOPROXY, module cache layout); Maven's resolver (local repositories).
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stockade.sandbox.environment import Shown

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Entries of one folder that are linked, at most.
MOST: Final = 20_000
#: Files that Maven and cargo write in place; without the first, Maven takes what it finds for its own.
_UNSHOWN: Final = ("_remote.repositories", "resolver-status.properties", ".lock", ".lastUpdated", "maven-metadata")
_GO_PROXY: Final = "https://proxy.golang.org,direct"
_GO_SETTINGS: Final = "go/env"
_LONGEST: Final = 65536
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@+")


def show(shown: Shown, users: str, cache: str, project: str) -> None:
    """Show a place of the user's in the cache; what cannot be shown is left out."""
    with suppress(OSError):
        top = os.open(cache, _FLAGS)
        try:
            _link(top, shown.folder, users, shown.names)
            for inner in shown.each:
                names = _entries(f"{users}/{inner}")
                if names:
                    _link(top, f"{shown.folder}/{inner}", f"{users}/{inner}", names)
            if shown.once and os.path.exists(f"{project}/{shown.marker}"):
                for inner in shown.once:
                    _lay_out(top, f"{shown.folder}/{inner}", f"{users}/{inner}", os.path.dirname(cache))
        finally:
            os.close(top)


def go_proxy(modules: str, kept: Mapping[str, str], home: str) -> str:
    """Return where Go looks for modules, those that the user has before all; "" if that cannot be said."""
    files = f"{modules}/cache/download"
    if not os.path.isdir(files) or not _PLAIN.issuperset(files):
        return ""
    settings = kept.get("GOENV") or f"{kept.get('XDG_CONFIG_HOME') or f'{home}/.config'}/{_GO_SETTINGS}"
    return f"file://{files},{kept.get('GOPROXY') or _written(settings, 'GOPROXY') or _GO_PROXY}"


def _written(file: str, name: str) -> str:
    """Return what ``go env -w`` wrote for a name."""
    # "off" is no file; and what commands put in the place of one must keep nobody waiting.
    if not os.path.isabs(file):
        return ""
    with (
        suppress(OSError, UnicodeDecodeError),
        open(file, encoding="utf-8", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as lines,
    ):
        for line in lines.read(_LONGEST).splitlines():
            key, _, value = line.partition("=")
            if key.strip() == name:
                return value.strip()
    return ""


def _link(top: int, folder: str, users: str, names: tuple[str, ...]) -> None:
    there = [name for name in names if os.path.lexists(f"{users}/{name}")]
    if not there:
        return
    place = _opened(top, folder)
    try:
        for name in there:
            with suppress(FileExistsError):
                os.symlink(f"{users}/{name}", name, dir_fd=place)
    finally:
        os.close(place)


def _entries(place: str) -> tuple[str, ...]:
    """Return the names in a directory; those with a dot are locks and the like."""
    try:
        return tuple(name for name in os.listdir(place)[:MOST] if not name.startswith("."))
    except OSError:
        return ()


def _opened(top: int, folder: str) -> int:
    """Open a folder of the cache, made if it is missing, through no link."""
    place = os.dup(top)
    for name in folder.split("/"):
        if not name:
            continue
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=place)
            inner = os.open(name, _FLAGS, dir_fd=place)
        finally:
            os.close(place)
        place = inner
    return place


def _lay_out(top: int, folder: str, users: str, beside: str) -> None:
    """Lay out a tree of links at a folder that is not there yet."""
    above, _, last = folder.rstrip("/").rpartition("/")
    place = _opened(top, above)
    made = f"{beside}/.new-{os.urandom(6).hex()}"
    try:
        try:
            os.stat(last, dir_fd=place, follow_symlinks=False)
        except FileNotFoundError:
            os.mkdir(made, 0o700)
            for path in _files(users, made):
                os.symlink(f"{users}/{path}", f"{made}/{path}")
            os.rename(made, last, dst_dir_fd=place)
    except OSError:
        from stockade.platforms.temporary import remove_tree

        remove_tree(made)
        raise
    finally:
        os.close(place)


def _files(users: str, made: str) -> Iterator[str]:
    """Yield the files below a place, relative to it, when the directory for each has been made."""
    todo, count = [""], 0
    while todo:
        folder = todo.pop()
        with suppress(OSError), os.scandir(f"{users}/{folder}") as entries:
            for entry in entries:
                count += 1
                if count > MOST:
                    return
                path = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    os.mkdir(f"{made}/{path}", 0o700)
                    todo.append(f"{path}/")
                elif not any(part in entry.name for part in _UNSHOWN):
                    yield path
