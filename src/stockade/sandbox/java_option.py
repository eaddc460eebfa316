"""Options of Java about proxies, cut out of a row of options.

Rules:

- Java's properties (``-Dhttp.proxyPassword=...``, behind ``-D`` or ``--define``) are cut out and the other options
  stay, in any variable. ``-DWITH_PROXY=1`` is a macro of a compiler, and stays; with credentials in it, it goes;
- ``-D key value`` is no option of Java, but goes whole.

Source of truth: the manuals of Java (networking properties), Gradle.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.sandbox.proxy_name import gives_access, is_password
from stockade.sandbox.proxy_secret import Secret, is_plain, of_addresses, of_password

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUOTES: Final = "\"'"
_DEFINE: Final = ("-D", "--define")
_DOTTED: Final = ("http.proxy", "https.proxy", "ftp.proxy", "java.net.socks.")
_BARE: Final = ("socksProxy", "proxySet")


def without_options(text: str, secrets: set[Secret] | None = None) -> str:
    """Return a row of options without those that set a proxy for Java; their passwords are added to ``secrets``."""
    found: set[Secret] = set() if secrets is None else secrets
    while (rest := _cut(text, found)) != text:
        text = rest
    return text


def _cut(text: str, secrets: set[Secret]) -> str:
    kept: list[str] = []
    removed = define = skip = secret = False  # define: "-D" stood alone, the property is the next word
    for word in split(text):
        plain = _plain(word)
        if skip:
            secrets.update({*of_password(plain), *of_password(word)} if secret else ())
            skip = False
            continue
        parts = plain.replace("--define=", "-D").split("-D")
        keys = [_key(part) for part in (parts if define else parts[1:]) if _goes(part)]
        if keys:
            removed = True
            for key in keys:
                value = plain.partition(key)[2].partition("=")[2]
                secrets.update(of_addresses(value))
                if gives_access(key) and is_password(key):
                    for reading in (value, value.partition("-D")[0], word.partition("=")[2]):
                        secrets.update(of_password(reading))
            if define:
                kept.pop()
            skip, secret = define and "=" not in plain, any(gives_access(key) and is_password(key) for key in keys)
        else:
            kept.append(word)
        define = bool(kept) and _plain(kept[-1]) in _DEFINE
    return ("\n" if "\n" in text else " ").join(kept) if removed else text


def _plain(word: str) -> str:
    return word.replace('"', "").replace("'", "")


def _key(part: str) -> str:
    return part.partition("=")[0]


def _goes(part: str) -> bool:
    """Tell whether a property is one of Java's, or gives access to a proxy."""
    key, _, value = part.partition("=")
    key = key.strip().removeprefix("systemProp.")
    low = key.lower()
    if low.startswith(_DOTTED) or key.startswith(_BARE) or low.endswith(".nonproxyhosts"):
        return True
    return "prox" in low and ((gives_access(key) and not is_plain(value)) or _has_user(value))


def _has_user(value: str) -> bool:
    return "@" in value and ("://" in value or ":" in value.partition("@")[0])


def split(text: str) -> Iterator[str]:
    """Yield the words of a row of options, quotes and all; a blank in quotes or behind a backslash parts nothing."""
    word, quote, escaped = "", "", False
    for char in text:
        if char.isspace() and not quote and not escaped:
            if word:
                yield word
            word = ""
            continue
        word += char
        if char in _QUOTES and not escaped:
            quote = "" if char == quote else quote or char
        escaped = char == "\\" and not escaped
    if word:
        yield word
