"""A policy becomes the text of a Seatbelt profile. Nothing here touches anything.

The last rule that matches wins, so the order is: what every program needs (``base.sbpl``), reads, writes, the session's
temporary directory, network, unix sockets, and those of them that are denied. Every deny carries the message by which
the log names the command.

Limits: a path is no longer than the kernel takes one, and the whole fits with the environment into the arguments of a
program (1 MiB on macOS); what does not is an error that says so, never a shorter profile.
"""

from __future__ import annotations

import os.path

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.escape import escape
from stockade.platforms.macos import network_rules, write_rules
from stockade.platforms.macos.place_filter import SECOND_PATH, at, at_or_below, covered, made
from stockade.platforms.macos.read_rules import parents_of_shown, read_denies
from stockade.platforms.macos.sexpr import Quoted, bytes_of, show
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.filesystem.plan import Plan
    from stockade.filesystem.terrain import Terrain
    from stockade.platforms.macos.sexpr import Form
    from stockade.policy.files import Ground
    from stockade.policy.model import Sockets
    from stockade.policy.places import Places

BASE: Final = "base.sbpl"
#: The message that stands for each command's own in a profile that is made once for many.
UNTAGGED: Final = "CMD64_@_END_@"
#: PATH_MAX of macOS is 1024. A regular expression for such a path, every character of it special or in both cases.
LONGEST_TEXT: Final = 8192
LONGEST_PATH: Final = 1024
#: ARG_MAX of macOS is 1 MiB, for arguments and environment together.
LARGEST: Final = 640 * 1024


class Profile(Value):
    """A profile for one state of rules and disk; ``tagged`` makes it one command's own."""

    text: str

    def tagged(self, message: str) -> str:
        """Return the text with the message of a command."""
        return self.text.replace(UNTAGGED, message)


class Own(Value):
    """What is the session's own: where commands may keep things, and what is around that and none of their business."""

    temporary: str = ""
    private: str = ""
    cache: str = ""
    caches: str = ""


NOTHING: Final = Own()


class _Section(Value):
    title: str
    forms: tuple[Form, ...]

    def text(self) -> str:
        return "\n".join((f"; {self.title}", *map(show, self.forms)))


def make_profile(
    ground: Ground, plan: Plan, places: Terrain, *, sockets: Sockets, ports: Iterable[int] = (), own: Own = NOTHING
) -> Profile:
    """Return the profile for rules laid over a disk, or raise ``UnavailableError`` if it would be too large.

    ``plan`` is the plan for the same rules and disk; ``ports`` are those of the proxies on localhost.
    """
    sections = [
        _Section("Everything that nothing below allows", (_rule("deny", ("default",), ()),)),
        *_reads(ground, plan, places),
        *_writes(ground, plan, places),
        *_own(own),
        *_network(sockets, tuple(ports), own.temporary),
        *(_denied_sockets(ground, sockets, places) if sockets.denied_unix else ()),
    ]
    head, *rest = [section.text() for section in sections if section.forms]
    text = "\n\n".join(("(version 1)", head, base(), *rest)) + "\n"
    _check(sections, text)
    return Profile(text)


def base() -> str:
    """Return the part that is the same in all profiles."""
    with open(os.path.join(os.path.dirname(__file__), BASE), encoding="utf-8") as file:
        return file.read().strip()


def _reads(ground: Ground, plan: Plan, places: Places) -> Iterator[_Section]:
    read = ("file-read*",)
    denies = read_denies(ground)
    for reach, filters in denies.items():
        title = f'Reading is denied by "{escape(reach.rule.value.text)}" of {escape(str(reach.rule.origin))}'
        yield _Section(title, _denying(read, filters))
    hidden = write_rules.hidden_by_plan(ground, plan, places)
    yield _Section("The same by the links that lead there", _denying(read, hidden))
    if any(denies.values()):
        second = _denying(read, at_or_below(SECOND_PATH))
        yield _Section("The same by the second path that macOS has for every file", second)
    shown = _allowing(("file-read-metadata",), parents_of_shown(ground))
    yield _Section("The way to what is opened again inside a deny", shown)


def _writes(ground: Ground, plan: Plan, places: Places) -> Iterator[_Section]:
    write, unlink = ("file-write*",), ("file-write-unlink",)
    unread = tuple(found for filters in read_denies(ground).values() for found in filters)
    unread += write_rules.hidden_by_plan(ground, plan, places)
    denied = write_rules.denied(ground)
    names = write_rules.protected_names(ground)
    protected = write_rules.protected_places(ground, places, names)
    opened = write_rules.writable(ground)
    barred = write_rules.barred_by_plan(plan, opened, (*unread, *denied, *names, *protected))
    guarded = (*write_rules.guarded_names(ground), *write_rules.guarded_places(ground, plan, places))
    yield _Section("Writing is allowed", _allowing(write, opened))
    yield _Section("What cannot be read cannot be written", _denying(write, unread))
    yield _Section("Writing is denied, or would make what must stay missing", _denying(write, denied))
    yield _Section("Protected names, wherever they are", _denying(write, names))
    yield _Section("Other protected places", _denying(write, protected))
    yield _Section("Links to what is closed, and the same files by links", _denying(write, barred))
    yield _Section("What holds something closed stays where it is", _denying(unlink, guarded))


def _own(own: Own) -> Iterator[_Section]:
    for private in filter(None, (own.private, own.caches)):
        hidden = _denying(("file-read*", "file-write*"), at_or_below(private))
        # A program that asks for its real path looks at every directory on the way.
        way = _way(private, own.cache) if own.cache and private == own.caches else at(private)
        yield _Section("What belongs to Stockade", (*hidden, *_allowing(("file-read-metadata",), way)))
    if own.temporary:
        filters = at_or_below(own.temporary)
        yield _Section("The session's own temporary directory", _allowing(("file-read*", "file-write*"), filters))
    if own.cache:
        filters = at_or_below(own.cache)
        yield _Section("The project's private cache", _allowing(("file-read*", "file-write*"), filters))
        # Renamed, they would take the caches of other projects to where commands may write.
        held = _denying(("file-write-unlink",), _way("/", f"{own.cache}/"))
        yield _Section("What holds the caches stays where it is", held)


def _way(outer: str, inner: str) -> tuple[Form, ...]:
    """Return filters for a directory and those between it and one below."""
    found = [*at(outer)]
    while (inner := os.path.dirname(inner)) != outer:
        found += at(inner)
    return tuple(found)


def _network(sockets: Sockets, ports: tuple[int, ...], temporary: str) -> Iterator[_Section]:
    yield _Section("The proxies, and nothing else", tuple(network_rules.proxies(ports)))
    yield _Section("Servers on this machine", tuple(network_rules.local_binding(sockets)))
    yield _Section("Unix sockets", tuple(network_rules.unix_sockets(sockets, temporary)))


def _denied_sockets(ground: Ground, sockets: Sockets, places: Terrain) -> Iterator[_Section]:
    """Yield what keeps denied sockets closed: last of all, so that nothing is allowed behind it."""
    from stockade.filesystem.socket_places import denied_places

    patterns = denied_places(sockets, places).patterns
    closed = tuple(
        dict.fromkeys(each for one in patterns for each in (covered(one) if one.is_glob else made(one.path)))
    )
    title = "Unix sockets that are denied, whatever is allowed"
    yield _Section(title, _denying(("network-outbound",), network_rules.denied_sockets(closed)))
    yield _Section("By another name they would be others", _denying(("file-write*",), closed))
    holders = write_rules.holders(ground, patterns)
    yield _Section("What holds them stays where it is", _denying(("file-write-unlink",), holders))


def _allowing(operations: tuple[str, ...], filters: tuple[Form, ...]) -> tuple[Form, ...]:
    return (("allow", *operations, *filters),) if filters else ()


def _denying(operations: tuple[str, ...], filters: tuple[Form, ...]) -> tuple[Form, ...]:
    return (_rule("deny", operations, filters),) if filters else ()


def _rule(action: str, operations: tuple[str, ...], filters: tuple[Form, ...]) -> Form:
    return (action, *operations, *filters, ("with", "message", Quoted(UNTAGGED)))


def _check(sections: list[_Section], text: str) -> None:
    for found in _texts(tuple(form for section in sections for form in section.forms)):
        if len(bytes_of(found)) > LONGEST_TEXT:
            message = f'a rule about "{escape(found, 80)}" is too long for a profile'
            raise UnavailableError(message, "name a directory above it, or use fewer wildcards")
    size = len(bytes_of(text))
    if size > LARGEST:
        message = f"the profile would have {size} bytes, more than the {LARGEST} that can be given to sandbox-exec"
        raise UnavailableError(message, "name directories instead of single files, or lower mandatoryDenySearchDepth")


def _texts(form: Form) -> Iterator[str]:
    todo = [form]
    while todo:
        each = todo.pop()
        if isinstance(each, Quoted):
            yield each.text
        elif isinstance(each, tuple):
            todo += each
