"""Which hosts a rule of the allowed or denied domains is about.

Forms: ``example.com`` (that host alone), ``*.example.com`` (its subdomains of any depth, not itself), an
IPv4 address, an IPv6 address in brackets; each with or without ``:port``. Without a port, every port.
Deny lists also take ``*`` (every host), ``*:25`` (every host on that port) and ``*.com``.

Rules:

- the host part goes through ``Host.parse``, so a rule and a request meet in the same canonical form;
- ``*.`` stands only at the beginning and only before a name: addresses have no subdomains;
- an allow rule needs two labels after ``*.``. No list of public suffixes is kept, because an old list
  would be wrong in silence: ``*.co.uk`` and ``*.github.io`` are taken as written, and whoever writes them
  allows every site that strangers register there;
- ``localhost`` and ``127.0.0.1`` are two hosts: a rule on one says nothing of the other;
- nothing is guessed: a scheme, path, user name or space is refused with the text that was meant.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.host import Host, HostKind
from stockade.policy.port import Port, split_port
from stockade.value import Value

_ANY: Final = "*"
_SUBDOMAINS: Final = "*."
_HINT: Final = "write example.com, *.example.com or an IP address, with :port if only one port is meant"


class DomainPattern(Value):
    """Hosts and ports that one rule covers. Build it with ``DomainPattern.parse``.

    ``host`` is the host that the rule names; with ``subdomains`` the rule is about what lies below it,
    and without a ``host`` it is about every host. ``port`` is ``None`` for every port.
    """

    host: Host | None
    subdomains: bool = False
    port: Port | None = None

    @property
    def any_host(self) -> bool:
        """Whether every host is covered."""
        return self.host is None

    @property
    def text(self) -> str:
        """The canonical spelling; parsing it gives this pattern again."""
        host = _ANY if self.host is None else f"{_SUBDOMAINS if self.subdomains else ''}{self.host}"
        return host if self.port is None else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Return the canonical spelling."""
        return self.text

    def matches_host(self, host: Host) -> bool:
        """Say whether the rule covers this host on some port."""
        if self.host is None:
            return True
        if self.subdomains:
            return host.kind is HostKind.NAME and host.text.endswith(f".{self.host.text}")
        return host == self.host

    def matches(self, host: Host, port: Port) -> bool:
        """Say whether the rule covers this host on this port."""
        return (self.port is None or self.port == port) and self.matches_host(host)

    @classmethod
    def parse(cls, text: str, *, deny: bool = False) -> DomainPattern:
        """Read a pattern of an allow list (or of a deny list), or raise ``InvalidTextError``."""
        _refuse_what_is_not_host_and_port(text)
        host_text, port_text = split_port(text)
        port = None if port_text is None else _port(text, port_text)
        if host_text == _ANY:
            if not deny:
                hint = "list the hosts that are needed; *.example.com covers the subdomains of one domain"
                raise _not_a_pattern(text, "every host is too much to allow", hint)
            return cls(None, port=port)
        if host_text.startswith(_SUBDOMAINS):
            return cls(_parent(text, host_text.removeprefix(_SUBDOMAINS), deny=deny), subdomains=True, port=port)
        return cls(_host(text, host_text), port=port)


def _not_a_pattern(text: str, why: str, hint: str = _HINT) -> InvalidTextError:
    return InvalidTextError(f'"{escape(text)}" is not a domain pattern: {why}', hint)


def _refuse_what_is_not_host_and_port(text: str) -> None:
    """Refuse URLs and parts of URLs, with what to write instead."""
    if not text:
        message = "the domain pattern is empty"
        raise InvalidTextError(message, _HINT)
    scheme, mark, rest = text.partition("://")
    if mark:
        raise _not_a_pattern(text, f'it has a scheme, "{escape(scheme)}://"', _instead(rest))
    if "/" in text:
        before, _, after = text.partition("/")
        if after.isascii() and after.isdigit() and _is_address(before):
            raise _not_a_pattern(text, "ranges of addresses are not supported", "list the addresses one by one")
        raise _not_a_pattern(text, "it has a path", _instead(text))
    if text.startswith(f"{_SUBDOMAINS}["):
        raise _not_a_pattern(text, "an address has no subdomains", f"write {escape(text.removeprefix(_SUBDOMAINS))}")
    if "@" in text:
        raise _not_a_pattern(text, "it has a user name", _instead(text))


def _instead(text: str) -> str:
    """Return the hint for a URL without its scheme: the host and port in it, if there are any."""
    authority = text.partition("/")[0].rpartition("@")[2]
    return f"write {escape(authority)}" if authority else _HINT


def _is_address(text: str) -> bool:
    try:
        return Host.parse(text).kind is not HostKind.NAME
    except InvalidTextError:
        return False


def _port(text: str, port_text: str) -> Port:
    if port_text in ("", _ANY):
        raise _not_a_pattern(text, "it has a colon but no port", "leave the colon out to mean every port")
    try:
        return Port.parse(port_text)
    except InvalidTextError as error:
        raise _not_a_pattern(text, error.message, error.hint) from None


def _host(text: str, host_text: str) -> Host:
    if _ANY in host_text:
        hint = 'write "*." once, at the beginning: *.example.com'
        raise _not_a_pattern(text, "a * stands only for whole labels at the beginning", hint)
    try:
        return Host.parse(host_text)
    except InvalidTextError as error:
        raise _not_a_pattern(text, error.message) from None


def _parent(text: str, host_text: str, *, deny: bool) -> Host:
    parent = _host(text, host_text)
    if parent.kind is not HostKind.NAME:
        raise _not_a_pattern(text, "an address has no subdomains", f"write {parent}")
    if "." not in parent.text and not deny:
        why = f"all of .{parent.text} is too much to allow"
        raise _not_a_pattern(text, why, f"name the domain: *.example.{parent.text}")
    return parent
