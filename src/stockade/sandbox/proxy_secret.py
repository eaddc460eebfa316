"""Secrets of the host's proxies: how they are read from what tells of them, and found in what does not.

Rules:

- an address is read as RFC 3986 has it and, because people write passwords as they are, with all before the last "@"
  for the user and the password;
- a user without a password is no secret: it counts with its place. Only a long one with digits is taken for a token;
- a password is looked for as it is, percent-encoded, behind backslashes and within base64. One of few letters would be
  found everywhere: it counts together with its user, or alone as the whole value; one of fewer than four only with
  user and place. What stands in a variable that stays anyhow is no secret by itself;
- a place counts whole, with its port, with some user before it; that of a loopback address never does.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The least letters of a password that is looked for by itself.
_LONG: Final = 6
_WORTHWHILE: Final = 4
_TOKEN: Final = 20
_SCHEMES: Final = ("basic", "bearer", "digest", "ntlm", "negotiate")
#: What variables about passwords say that is no password.
_WORDS: Final = frozenset(
    {
        *("", "0", "1", "on", "off", "yes", "no", "true", "false", "none", "null", "any", "auto", "always", "never"),
        *("enabled", "disabled", "default", "required", "optional", "kerberos", "anyauth", *_SCHEMES),
    }
)
_SEPARATORS: Final = "\"'`<>,;|&{}[]()"


class Secret(Value):
    """What gives access to a proxy of the host; ``place`` is that proxy's host and port. Not shown."""

    user: str = ""
    password: str = ""
    place: str = ""

    def __repr__(self) -> str:
        """Show that there is one, and no more."""
        return "Secret(...)"


def is_plain(value: str) -> bool:
    """Tell whether a value, of a variable about passwords too, is certainly no secret."""
    return value.strip().lower() in _WORDS


def of_addresses(text: str) -> Iterator[Secret]:
    """Yield what the addresses in a text give away, in each way to read them."""
    parted = text
    for separator in _SEPARATORS:
        parted = parted.replace(separator, " ")
    for piece in {text.strip(), *text.split(), *parted.split()}:
        parts = piece.split("://")
        if len(parts) == 1 or ":" in parts[0]:
            yield from _of_access(piece, "")
        for at in range(1, len(parts)):
            yield from _of_access("://".join(parts[at : at + 3]), "://")


def of_password(text: str) -> Iterator[Secret]:
    """Yield what the value of a variable or option for credentials gives away."""
    text = text.strip().strip("\"'")
    scheme, _, rest = text.partition(" ")
    if rest and scheme.lower() in _SCHEMES:
        text = rest.strip()
    if is_plain(text) or text.count("/") > 1 > text.find("/"):  # a word; the path of a file
        return
    cut = text
    for separator in _SEPARATORS:
        cut = cut.partition(separator)[0]
    for reading in (text, cut, _from_base64(text)):
        user, colon, password = reading.partition(":")
        yield Secret(user if colon else "", password if colon else reading)
        yield Secret(password=decoded(reading))


def _of_access(rest: str, scheme: str) -> Iterator[Secret]:
    authority = _authority(rest)
    if "@" not in rest:
        if scheme and authority:
            yield Secret(place=authority)
        return
    for reading in {authority, rest}:
        access, at, place = reading.rpartition("@")
        if not at:
            continue
        user, _, password = access.partition(":")
        place = _authority(place)
        yield Secret(decoded(user), decoded(password), place)
        yield Secret(user, password, place)
        if not password and len(user) >= _TOKEN and user.isascii() and any(char.isdigit() for char in user):
            yield Secret(password=user)


def _authority(text: str) -> str:
    for end in "/?#":
        text = text.partition(end)[0]
    return text


def _from_base64(text: str) -> str:
    try:
        found = a2b_base64(text.encode("ascii"), strict_mode=True).decode()
    except (Error, ValueError):  # not base64, or not of a text
        return text
    return found if ":" in found else text


class Needles:
    """What is looked for in values; ``known`` are the values that stay anyhow."""

    def __init__(self, secrets: Iterable[Secret], known: Iterable[str] = ()) -> None:
        self._plain: set[str] = set()
        self._whole: set[str] = set()
        self._encoded: set[str] = set()
        self._places: set[str] = set()
        known = tuple(known)
        for secret in secrets:
            self._add_password(secret, is_known=any(secret.password in value for value in known))
            if _is_place(secret.place):
                self._places.add(f"@{secret.place}".lower())

    def _add_password(self, secret: Secret, *, is_known: bool) -> None:
        password, user, place = secret.password, secret.user, secret.place
        if not password:
            if user and place:
                self._plain.add(f"{user}@{place}" if _is_place(place) else f"//{user}@{place}")
        elif len(password) >= _LONG and not is_known:
            self._plain.add(password)
            self._encoded |= _in_base64(password)
        elif len(password) >= _WORTHWHILE:
            if not is_known:
                self._whole.add(password)
            if user:
                self._plain.add(f"{user}:{password}")
                self._encoded |= _in_base64(f"{user}:{password}")
        elif user and place:
            self._plain.add(f"{user}:{password}@{place}")

    def are_in(self, value: str) -> bool:
        """Tell whether a value brings in one of the secrets."""
        if self._read(value):
            return True
        once = decoded(value)
        if once != value and (self._read(once) or self._read(decoded(once))):
            return True
        if "\\" in once and (self._read(once.replace("\\", "")) or self._read(decoded(once.replace("\\", "")))):
            return True
        letters = once.replace("-", "+").replace("_", "/")
        return any(needle in letters for needle in self._encoded)

    def _read(self, text: str) -> bool:
        for needle in self._plain:  # a loop, for it is run for each variable
            if needle in text:
                return True
        return text in self._whole or ("@" in text and any(_names(text.lower(), place) for place in self._places))


def _is_place(place: str) -> bool:
    """Tell whether a place is one that only a proxy is at: with a port, and not on this machine."""
    host, _, port = place.lower().rpartition(":")
    here = host in ("", "localhost", "[::1]", "[::]", "0.0.0.0") or host.endswith(".localhost")  # noqa: S104 - compared
    return port.isdecimal() and not here and not host.startswith("127.")


def _names(text: str, place: str) -> bool:
    """Tell whether a place stands in a text whole."""
    at = text.find(place)
    while at >= 0:
        behind = text[at + len(place) : at + len(place) + 1]
        if not (behind.isalnum() or behind in ("-", "_")):
            return True
        at = text.find(place, at + 1)
    return False


def _in_base64(text: str) -> set[str]:
    """Return how a text looks within base64: in three ways, by its place, without the letters that others share."""
    raw = text.encode("utf-8", "surrogateescape")
    found = set()
    for shift in range(3):
        letters = b2a_base64(bytes(shift) + raw, newline=False).decode("ascii").rstrip("=")
        whole = (shift + len(raw)) % 3 == 0
        found.add(letters[(0, 2, 3)[shift] : None if whole else -1])
    return {needle for needle in found if len(needle) >= _LONG}


def decoded(text: str) -> str:
    """Undo percent-encoding, as far as there is any."""
    if "%" not in text:
        return text
    head, *rest = text.encode("utf-8", "surrogateescape").split(b"%")
    for part in rest:
        try:
            head += bytes((int(part[:2], 16),)) + part[2:] if len(part) > 1 else b"%" + part
        except ValueError:
            head += b"%" + part
    return head.decode("utf-8", "surrogateescape")
