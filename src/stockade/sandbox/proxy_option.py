"""What a value says about a proxy: whether it gives access to one, in options, addresses or lists of keys.

Rules:

- a value gives access with an address that holds a user, if "proxy" stands before or beside it (``--proxy URL``,
  ``http_proxy=URL``, ``"httpProxy":"URL"``), if its host is called so, or if its scheme is one of SOCKS; with curl's
  ``-x`` and ``-U``; and with a key for credentials of a proxy that has a value
  (``--proxy-user``, ``-PproxyPassword=``). "proxy" in the path or in the host of a database says nothing;
- in JSON, TOML and other lists of keys that tell of a proxy, any password counts as the proxy's.

Source of truth: the manuals of curl, Gradle, docker, apt.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.sandbox.proxy_name import gives_access, is_password_word, is_secret
from stockade.sandbox.proxy_secret import decoded, is_plain, of_addresses, of_password

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.sandbox.proxy_secret import Secret

_QUOTES: Final = "\"'"
_ENDS_ADDRESS: Final = frozenset('"`<>')
_ENDS_PATH: Final = frozenset("?#,;=&|'")
_BRACKETS: Final = "\"'`{}[]<>"
_HEX_GROUP: Final = 4
_QUOTED: Final = frozenset(_QUOTES)
_EXCEPTIONS: Final = ("noproxy", "no_proxy", "no-proxy")
_DIGESTS: Final = ("sha256:", "sha512:")
_DIGEST: Final = 32
#: How far a value is read.
_FAR: Final = 4096
#: host:port:user:password, and the other way round.
_FIELDS: Final = 4


def brings_access(value: str, secrets: set[Secret], *, named: bool = False) -> bool:
    """Tell whether a value gives access to a proxy, and add how to ``secrets``; ``named``: its name speaks of one."""
    readings = {value, decoded(value)}
    found = [reading for reading in readings if _brings(reading, secrets, named=named)]
    for reading in found:
        secrets.update(of_addresses(reading))
    return bool(found)


def _brings(text: str, secrets: set[Secret], *, named: bool) -> bool:
    low = text.lower()
    learnt = [*_credentials(text, low)] if "prox" in low else []
    if (named or "prox" in low) and (named or text.lstrip()[:1] in ("{", "[") or "\n" in text):
        learnt += _passwords(text, low)
    for word in {text.strip(), *text.replace(",", " ").replace(";", " ").split()} if named else ():
        if password := _password_of_row(word):
            learnt.append(password)
    for word in learnt:
        secrets.update(of_password(word))
    if learnt or _is_curl(text, secrets):
        return True
    return "@" in text and (_has_address(text, low, named=named) or _has_access(text, named=named))


def _password_of_row(word: str) -> str:
    """Return the password of ``host:port:user:password`` or ``user:password:host:port``; an IPv6 address has none."""
    fields = word.split(":")
    if len(fields) < _FIELDS or not all(fields) or all(_is_group(field) for field in fields):
        return ""
    if fields[1].isdecimal():
        return ":".join(fields[3:])
    return ":".join(fields[1:-2]) if fields[-1].isdecimal() else ""


def _is_group(field: str) -> bool:
    field = field.partition("/")[0]
    return len(field) <= _HEX_GROUP and all(char in "0123456789abcdefABCDEF" for char in field)


def _has_address(text: str, low: str, *, named: bool) -> bool:
    """Tell whether there is an address with a user in it that is a proxy's."""
    outside, begin, users = "", 0, False
    at = text.find("://")
    while at >= 0:
        scheme = at
        while scheme > begin and (low[scheme - 1].isalnum() or low[scheme - 1] in "+-."):
            scheme -= 1
        end = at + 3
        following = text.find("://", end)
        if text[scheme - 1 : scheme] in _QUOTED and "prox" in low[begin:scheme]:
            # Quotes may hold a password with blanks.
            quoted = _quoted(text, end, text[scheme - 1])
            users = users or _is_access(quoted, "")
        while end != following and end < len(text) and not text[end].isspace() and text[end] not in _ENDS_ADDRESS:
            end += 1
        rest = text[at + 3 : end]
        place = rest.rpartition("@")[2]
        if _is_access(rest, low[scheme:at]):
            users = True
            if _is_proxy(low[scheme:at], place.lower()):
                return True
        # The path belongs to the address, but what follows it may be a label of the next.
        end -= len(place) - min((place.find(char) for char in _ENDS_PATH if char in place), default=len(place))
        outside += low[begin:scheme] + " "
        begin, at = end, following
    outside += low[begin:]
    for exception in _EXCEPTIONS:
        outside = outside.replace(exception, " ")
    return users and (named or "prox" in outside)


def _quoted(text: str, begin: int, quote: str) -> str:
    end = text.find(quote, begin)
    while end >= 0 and text[end + 1 : end + 2].strip(",;}])"):  # the quote of a quote
        end = text.find(quote, end + 1)
    return text[begin : end if end >= 0 else None]


def _is_access(rest: str, scheme: str) -> bool:
    if scheme.startswith("socks"):  # there is no path
        return "@" in rest
    authority = rest
    for end in "/?#":
        authority = authority.partition(end)[0]
    if "@" in authority:
        return ":" in authority.rpartition("@")[0] or scheme.startswith(("http", "socks"))
    access = rest.rpartition("@")[0]  # "/", "?" or "#" stands in the password as it is
    return ":" in access and not authority.rpartition(":")[2].isdecimal()


def _is_proxy(scheme: str, place: str) -> bool:
    if scheme.startswith("socks"):
        return True
    host, _, path = place.partition("/")
    return scheme in ("http", "https") and "prox" in host and not path.strip("',;)]}")


def _has_access(text: str, *, named: bool) -> bool:
    """Tell whether ``user:password@place`` stands where a proxy does, without a scheme."""
    parted = text
    for bracket in _BRACKETS:
        parted = parted.replace(bracket, " ")
    return any(
        _is_placed([bare for word in row.split() if (bare := word.strip(_BRACKETS)).strip(":=,")], named=named)
        for row in (parted, text)
    )


def _is_placed(words: list[str], *, named: bool) -> bool:
    for before, word in zip(["", *words], words, strict=False):
        is_short = before.startswith("-") and not before.startswith("--") and before.endswith("x")
        access, at, place = word.partition("@")
        if not at or ":" not in access or (place.startswith(_DIGESTS) and len(place) > _DIGEST):
            continue
        label = access.partition("=")[0] if "=" in access else access.partition(":")[0] if access.count(":") > 1 else ""
        low = (before + label).lower()
        if named or is_short or word.startswith("-x") or "prox" in low or before.startswith(("--socks", "--preproxy")):
            return True
    return False


def _is_curl(text: str, secrets: set[Secret]) -> bool:
    """Tell whether curl's short options for a proxy and for its user stand together."""
    if "-U" not in text or "-x" not in text:
        return False
    words = [word.strip(_QUOTES) for word in text.split()]
    access = [word for before, word in zip(["", *words], words, strict=False) if before == "-U"]
    access += [word.removeprefix("-U") for word in words if word.startswith("-U")]
    found = [word for word in access if ":" in word]
    for word in found:
        secrets.update(of_password(word))
    return bool(found)


def _credentials(text: str, low: str) -> Iterator[str]:
    """Yield the values of keys for credentials of a proxy."""
    for begin, end in _keys(low, "prox"):
        key = text[begin:end]
        if not gives_access(key) or (key.startswith("-D") and len(key) > len("-D")):  # see java_option
            continue
        value, is_apart = _value(text, end)
        if is_apart and not key.startswith("-"):
            before = text[max(0, begin - _FAR) : begin].split()
            if not (before and before[-1].startswith("-")) and not is_password_word(key):
                continue
        if value and not is_plain(value) and ("://" not in value or "@" in value):
            yield value


def _passwords(text: str, low: str) -> Iterator[str]:
    """Yield the values of keys for passwords, whose they may be."""
    for stem in ("pass", "pw", "auth", "token", "secret", "cred"):
        for begin, end in _keys(low, stem):
            value, is_apart = _value(text, end)
            if value and not is_apart and is_secret(text[begin:end]) and not is_plain(value):
                yield value


def _keys(low: str, stem: str) -> Iterator[tuple[int, int]]:
    """Yield where names with a stem in them begin and end; the name of a file in a directory does not count."""
    at = low.find(stem)
    while at >= 0:
        begin = end = at
        while begin and (low[begin - 1].isalnum() or low[begin - 1] in "_-."):
            begin -= 1
        while end < len(low) and (low[end].isalnum() or low[end] in "_-."):
            end += 1
        if not (begin > 1 and low[begin - 1] == "/" and not low[begin - 2].isspace()):
            yield begin, end
        at = low.find(stem, end)


def _value(text: str, end: int) -> tuple[str, bool]:
    """Return the value behind a key, and whether nothing but a blank stands between."""
    rest = text[end : end + _FAR].lstrip("\\\"'")
    behind = rest.lstrip()
    if behind[:1] in ("=", ":"):
        behind = behind.lstrip("=:").lstrip()
    elif behind == rest:
        return "", False
    else:
        return behind.split(maxsplit=1)[0] if behind else "", True
    if behind[:1] in ("\\", '"', "'"):
        quote = behind.lstrip("\\")[:1]
        return behind.lstrip("\\")[1:].partition(quote)[0].rstrip("\\") if quote else "", False
    if behind[:6].lower() == "basic ":
        return " ".join(behind.split(maxsplit=2)[:2]), False
    return (behind.split(maxsplit=1) or [""])[0].rstrip(",;}]"), False
