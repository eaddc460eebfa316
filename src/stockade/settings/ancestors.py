"""The directories above a working directory: by its real name, and by the name that somebody entered it by.

A command that replaces a directory of a project by a link does not take it out of the project. So of the
entered name each link counts, also one that another link leads to: with the directory that holds it, and all above.
Home is passed over, for its files are the user's; what is above home counts like all else.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The kernel follows 40 links in one name (path_resolution(7)); a shell that went there in steps may have a longer one.
MOST_LINKS: Final = 400


def ancestors(cwd: str, entered: str, home: str) -> Iterator[str]:
    """Yield the working directory and all above it but home, the nearest first; then those of the links, if any."""
    seen = {os.path.realpath(home)}
    for start in (os.path.realpath(cwd), *(link_places(entered) if entered else ())):
        for place in upwards(start):
            if place not in seen:
                seen.add(place)
                yield place


def upwards(place: str) -> Iterator[str]:
    """Yield a directory and all above it, to the root of the disk."""
    while True:
        yield place
        parent = os.path.dirname(place)
        if parent == place:
            return
        place = parent


def link_places(name: str) -> Iterator[str]:
    """Yield the real directory of each link that an absolute name leads through, in the order they are followed."""
    place, left, links = "/", name.split("/")[::-1], 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            place = os.path.dirname(place)
            continue
        path = os.path.join(place, part)
        target = _target(path)
        if target is None:
            place = path
            continue
        yield place
        links += 1
        if links == MOST_LINKS:
            return
        place = "/" if target.startswith("/") else place
        left += target.split("/")[::-1]


def tidy(place: str) -> str:
    """Return the one spelling of an absolute directory: no empty names and dots; links stay as they are.

    What ``..`` means depends on links, so that a name with it becomes the real one.
    """
    if ".." in place.split("/"):
        place = os.path.realpath(place)
    return "/" + os.path.normpath(place).lstrip("/")  # POSIX leaves two leading slashes a meaning of their own


def database_home() -> str:
    """Return this user's home by the user database; "" for a user without an entry, or without a home in it."""
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
    return tidy(home) if os.path.isabs(home) else ""


def holds(directory: str, home: str) -> bool:
    """Tell whether a directory is a home or lies above it, whatever both are called."""
    inside = f"{directory.rstrip('/')}/"
    return f"{home}/".startswith(inside) or any(_is_same(directory, place) for place in upwards(os.path.realpath(home)))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:  # no link, or nothing that can be looked at
        return None
