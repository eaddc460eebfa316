"""The filters of Seatbelt's rules, each as a function of what is attempted.

Source of truth: the profiles that macOS ships in /System/Library/Sandbox/Profiles and those of Chromium, as far as they
show what a filter means. An address is ``localhost`` or ``*`` and a port or ``*``; localhost is 127.0.0.1 and ::1.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.platforms.macos.seatbelt_regex import compile_regex
from stockade.platforms.macos.sexpr import Quoted, show
from stockade.policy.path_pattern import is_at_or_below

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.macos.attempt import Attempt
    from stockade.platforms.macos.sexpr import Form

    Filter: TypeAlias = Callable[[Attempt], bool]
    Test: TypeAlias = Callable[[str], bool]

_LOCALHOST: Final = ("127.0.0.1", "[::1]", "localhost")
_PROTOCOLS: Final = ("ip", "tcp", "udp")
#: Filters that ask about a name, by what comes before how the name is compared.
_NAMED: Final = (
    "global-name",
    "local-name",
    "sysctl-name",
    "ipc-posix-name",
    "iokit-registry-entry-class",
    "iokit-user-client-class",
    "preference-domain",
    "notification-name",
)
#: Filters that ask for one word, and the field of the attempt that must equal it.
_WORDS: Final = {"vnode-type": "kind", "socket-domain": "domain", "socket-protocol": "protocol", "target": "target"}


def compile_filter(form: Form) -> Filter:  # noqa: PLR0911 - one for each shape of filter
    """Return the function, or raise ``InvalidTextError`` if the filter is not known."""
    match form:
        case ("require-all", *inner) if inner:
            return _all([compile_filter(each) for each in inner])
        case ("require-any", *inner) if inner:
            return _any([compile_filter(each) for each in inner])
        case ("require-not", inner):
            negated = compile_filter(inner)
            return lambda attempt: not negated(attempt)
        case ("local" | "remote", "unix-socket", path):
            return compile_filter(path)
        case (("local" | "remote") as end, str(protocol), Quoted(text=address)) if protocol in _PROTOCOLS:
            return _address(str(end), address)
        case (str(name), str(word)) if name in _WORDS:
            return _word(_WORDS[name], word)
        case (str(name), *texts) if texts and all(isinstance(each, Quoted) for each in texts):
            return _any([_text(form, name, each.text) for each in texts if isinstance(each, Quoted)])
    raise _unknown(form)


def _all(filters: list[Filter]) -> Filter:
    return lambda attempt: all(matches(attempt) for matches in filters)


def _any(filters: list[Filter]) -> Filter:
    if len(filters) == 1:
        return filters[0]
    return lambda attempt: any(matches(attempt) for matches in filters)


def _word(field: str, word: str) -> Filter:
    return lambda attempt: bool(getattr(attempt, field) == word)


def _text(form: Form, name: str, text: str) -> Filter:
    """Compile a filter whose operand is a text."""
    if name in ("literal", "path", "path-literal"):
        return lambda attempt: attempt.path == text
    if name == "subpath":
        return lambda attempt: bool(attempt.path) and is_at_or_below(attempt.path, text)
    if name == "prefix":
        return lambda attempt: attempt.path.startswith(text)
    if name in ("regex", "path-regex"):
        pattern = compile_regex(text)
        return lambda attempt: bool(attempt.path) and pattern.search(attempt.raw_path) is not None
    if name == "extension":
        return lambda _attempt: False  # nobody hands out extensions here
    for known in _NAMED:
        if name in (known, f"{known}-prefix", f"{known}-regex"):
            test = _test(name.removeprefix(known), text)
            return lambda attempt: bool(attempt.name) and test(attempt.name)
    raise _unknown(form)


def _test(way: str, text: str) -> Test:
    if way == "-regex":
        pattern = compile_regex(text)
        return lambda name: pattern.search(name.encode("utf-8", "surrogateescape")) is not None
    if way == "-prefix":
        return lambda name: name.startswith(text)
    return lambda name: name == text


def _address(end: str, address: str) -> Filter:
    host, _, port = address.rpartition(":")
    if host not in ("*", "localhost") or not (port == "*" or (port.isascii() and port.isdigit())):
        message = f'"{escape(address)}" is no address that Seatbelt takes'
        raise InvalidTextError(message, "Write localhost or *, a colon, and a port or *.")

    def matches(attempt: Attempt) -> bool:
        asked_host, _, asked_port = getattr(attempt, end).rpartition(":")
        known = bool(asked_host) and (host == "*" or asked_host in _LOCALHOST)
        return known and port in ("*", asked_port)

    return matches


def _unknown(form: Form) -> InvalidTextError:
    return InvalidTextError(f'the filter "{escape(show(form), 300)}" is not known here', "Add it to filters.py.")
