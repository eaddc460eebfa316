"""What the host's environment tells of its proxies, taken out of it: it may hold credentials, and helps nobody inside.

Rules:

- by name: a variable whose name ends in the word "proxy" (``ws_proxy``, ``DOCKER_HTTP_PROXY``, ``NPM_CONFIG_PROXY``,
  in any case and with any separator), or that has behind this word one for credentials or addresses
  (``HTTP_PROXY_PASSWORD``); all of ``CLOUDSDK_PROXY_*``. ``GOPROXY`` is no proxy in this sense, and stays;
- by option: ``-Dhttp.proxyPassword=...`` and its like, in whichever variable (``JAVA_TOOL_OPTIONS``, ``MAVEN_OPTS``).
  The other options in it stay. Git's settings in variables lose those about proxies;
- by value, last: a variable in which the password of one of those proxies stands (as it is, percent-encoded or within
  base64), or an address of one with a user in it. A password of few letters would be found everywhere: it counts
  together with its user, or alone as the whole value. Variables without which nothing runs are never taken for such.

Nothing is imported that costs: every command begins with this.
Source of truth: the manuals of curl, npm, Java (networking properties), Gradle, gcloud, git-config(1).
"""

from __future__ import annotations

from binascii import b2a_base64

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PROXY: Final = frozenset({"proxy", "proxies", "noproxy", "httpproxy", "httpsproxy", "socksproxy", "ftpproxy"})
_PASSWORD: Final = frozenset({"pass", "password", "passwd", "pwd", "passphrase", "userpwd", "token", "secret", "auth"})
_ACCESS: Final = _PASSWORD | {
    *("user", "username", "login", "authorization", "credential", "credentials"),
    *("url", "uri", "server", "servers"),
}
_CLOUD_SDK: Final = ["cloudsdk", "proxy"]
_NEEDED: Final = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "TERM"})
_GIT_KEY: Final = "GIT_CONFIG_KEY_"
_GIT_VALUE: Final = "GIT_CONFIG_VALUE_"
#: Git counts its variables, so that none may be missing; this one means nothing to it.
_NO_SETTING: Final = "stockade.removed"
#: A password of at least so many letters is looked for by itself.
_LONG: Final = 6
_WORTHWHILE: Final = 4
_QUOTES: Final = "\"'"


class Secret(Value):
    """What gives access to a proxy of the host; ``place`` is that proxy's host and port. Not shown."""

    user: str = ""
    password: str = ""
    place: str = ""

    def __repr__(self) -> str:
        """Show that there is one, and no more."""
        return "Secret(...)"


def names_proxy(name: str) -> bool:
    """Tell whether a variable of this name is about a proxy."""
    if "prox" not in name.lower():
        return False
    words = _words(name)
    if words[-1] in _PROXY or words[:2] == _CLOUD_SDK:
        return True
    return "proxy" in words and not _ACCESS.isdisjoint(words[words.index("proxy") :])


def without_proxies(host: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing tells of the host's proxies."""
    kept: dict[str, str] = {}
    secrets: set[Secret] = set()
    for name, value in host.items():
        if names_proxy(name):
            secrets.update(_secrets(name, value))
        elif "proxy" in (low := value.lower()) or "java.net.socks." in low:
            rest = without_options(value, secrets)
            if rest or not value:
                kept[name] = rest
        else:
            kept[name] = value
    _clear_git(kept)
    secrets = {secret for secret in secrets if secret.password or secret.place}
    if secrets:
        needles = _Needles(secrets)
        for name in [name for name, value in kept.items() if name not in _NEEDED and needles.are_in(value)]:
            if name.startswith(_GIT_VALUE):
                _clear_setting(kept, name.removeprefix(_GIT_VALUE))
            else:
                del kept[name]
    return kept


def without_options(text: str, secrets: set[Secret] | None = None) -> str:
    """Return a row of options without those that set a proxy for Java; their passwords are added to ``secrets``."""
    kept: list[str] = []
    removed = False
    define = False  # "-D" stood alone: the property is the next word
    for word in _split(text):
        plain = "".join(char for char in word if char not in _QUOTES)
        parts = plain.replace("--define=", "-D").split("-D")
        named = parts[1:] if not define else parts
        found = [part for part in named if _is_proxy_property(part.partition("=")[0])]
        if secrets is not None:
            secrets.update(
                Secret(password=part.partition("=")[2])
                for part in found
                if part.partition("=")[0].lower().endswith("password")
            )
        if found and define:
            kept.pop()
        if not found:
            kept.append(word)
        removed = removed or bool(found)
        define = plain in ("-D", "--define")
    return " ".join(kept) if removed else text


def _is_proxy_property(key: str) -> bool:
    low = key.strip().lower()
    return ("proxy" in low and not low.startswith("jdk.")) or low.startswith("java.net.socks.")


def _split(text: str) -> Iterator[str]:
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


def _words(name: str) -> list[str]:
    """Return the words of a name: ``systemProp.http.proxyUser`` has five."""
    text = "".join(
        f"_{char}" if char.isupper() and before.islower() else char
        for before, char in zip(" " + name, name, strict=False)
    )
    return [word for word in text.casefold().replace("-", "_").replace(".", "_").split("_") if word] or [""]


def _secrets(name: str, value: str) -> Iterator[Secret]:
    authority = value.partition("://")[2] or value
    for end in "/?#":
        authority = authority.partition(end)[0]
    access, at, place = authority.rpartition("@")
    if at:
        user, _, password = access.partition(":")
        # Without a password, the user is a token.
        yield Secret(_decoded(user), _decoded(password or user), place)
        yield Secret(user, password or user)
    elif "://" in value and authority:
        yield Secret(place=authority)
    if _words(name)[-1] in _PASSWORD:
        yield Secret(password=value)
        yield Secret(password=value.partition(":")[2])


def _clear_git(kept: dict[str, str]) -> None:
    for name, value in list(kept.items()):
        if name.startswith(_GIT_KEY) and "proxy" in value.lower():
            _clear_setting(kept, name.removeprefix(_GIT_KEY))


def _clear_setting(kept: dict[str, str], number: str) -> None:
    kept[f"{_GIT_KEY}{number}"] = _NO_SETTING
    kept[f"{_GIT_VALUE}{number}"] = ""


class _Needles:
    """What is looked for in values."""

    def __init__(self, secrets: set[Secret]) -> None:
        self._plain: set[str] = set()
        self._whole: set[str] = set()
        self._encoded: set[str] = set()
        for secret in secrets:
            password = secret.password
            if len(password) >= _LONG:
                self._plain.add(password)
                self._encoded |= _in_base64(password)
            elif password:
                if len(password) >= _WORTHWHILE:
                    self._whole.add(password)
                if secret.user:
                    self._plain.add(f"{secret.user}:{password}")
                    self._encoded |= _in_base64(f"{secret.user}:{password}")
            if secret.place:
                self._plain.add(f"@{secret.place}")

    def are_in(self, value: str) -> bool:
        once = _decoded(value)
        readings = {value, once, _decoded(once)}
        if not readings.isdisjoint(self._whole):
            return True
        letters = once.replace("-", "+").replace("_", "/")
        return any(needle in reading for needle in self._plain for reading in readings) or any(
            needle in letters for needle in self._encoded
        )


def _in_base64(text: str) -> set[str]:
    """Return how a text looks within base64: in three ways, by its place, without the letters that others share."""
    raw = text.encode("utf-8", "surrogateescape")
    found = set()
    for shift in range(3):
        letters = b2a_base64(bytes(shift) + raw, newline=False).decode("ascii").rstrip("=")
        whole = (shift + len(raw)) % 3 == 0
        found.add(letters[(0, 2, 3)[shift] : None if whole else -1])
    return {needle for needle in found if len(needle) >= _LONG}


def _decoded(text: str) -> str:
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
