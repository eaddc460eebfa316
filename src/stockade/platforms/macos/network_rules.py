"""Rules about sockets: the proxies' ports, servers on this machine, unix sockets by path.

Seatbelt knows addresses only as ``localhost`` or any, so which hosts may be reached is the proxies' matter. There is no
private localhost on macOS: with ``allowLocalBinding``, commands reach every server of this machine's localhost.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.macos.place_filter import SECOND_PATH, at_or_below, covered
from stockade.platforms.macos.sexpr import Quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.platforms.macos.sexpr import Form
    from stockade.policy.model import Sockets

_ANYWHERE: Final = Quoted("*:*")
_EVERY_PATH: Final = ("path-regex", Quoted("^/"))


def proxies(ports: Iterable[int]) -> Iterator[Form]:
    """Yield rules that let the proxies be reached."""
    for port in sorted(set(ports)):
        yield ("allow", "network-outbound", ("remote", "ip", Quoted(f"localhost:{port}")))


def local_binding(sockets: Sockets) -> Iterator[Form]:
    """Yield rules that let commands be servers, and reach servers of this machine."""
    if sockets.local_binding:
        # A socket for both kinds of addresses is bound to neither localhost in Seatbelt's eyes, hence any.
        yield ("allow", "network-bind", "network-inbound", ("local", "ip", _ANYWHERE))
        yield ("allow", "network-outbound", ("remote", "ip", Quoted("localhost:*")))


def unix_sockets(sockets: Sockets, temporary: str) -> Iterator[Form]:
    """Yield rules about unix sockets: those listed, and those that commands make in their temporary directory."""
    filters = [found for rule in sockets.unix for found in covered(rule.value)]
    filters += at_or_below(temporary) if temporary else ()
    if sockets.all_unix:
        filters = [_EVERY_PATH]
    if filters:
        places = [_of_socket(each) for each in dict.fromkeys(filters)]
        yield ("allow", "network-bind", "network-inbound", *(("local", "unix-socket", place) for place in places))
        yield ("allow", "network-outbound", *(("remote", "unix-socket", place) for place in places))


def denied_sockets(filters: Iterable[Form]) -> tuple[Form, ...]:
    """Return filters of places as a rule has them about sockets that no command may connect to."""
    # By its second path every file would be another one to an allow of all.
    return tuple(("remote", "unix-socket", _of_socket(each)) for each in (*filters, *at_or_below(SECOND_PATH)))


def _of_socket(filtered: Form) -> Form:
    """Return a filter as it stands inside one of sockets, where a regular expression is called otherwise."""
    return ("path-regex", *filtered[1:]) if isinstance(filtered, tuple) and filtered[0] == "regex" else filtered
