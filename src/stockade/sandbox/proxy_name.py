"""What a name says about a proxy: of a variable, of an option, of a key in JSON.

Rules:

- a name is read word by word, in any case, with any separator, without digits: ``SOCKS5_PROXY``, ``httpProxy``;
- programs obey names that end in "proxy" behind a scheme or a tool (``ws_proxy``, ``NPM_CONFIG_PROXY``), glued or not,
  and ``CLOUDSDK_PROXY_*``. ``TRUST_PROXY`` is not among them; ``GOPROXY`` names a mirror of modules;
- SOCKS is a proxy without the word (``SOCKS5_PASSWORD``);
- a name gives access if a word for credentials or addresses follows "proxy", glued or not (``PROXYPASSWORD``), or one
  for passwords stands before it.

Source of truth: the manuals of curl, npm, Java (networking properties), Gradle, gcloud.
"""

from __future__ import annotations

from stockade.annotation import Final

_SCHEMES: Final = frozenset(
    {
        *("", "all", "auto", "ftp", "ftps", "gopher", "grpc", "http", "https", "no", "rsync", "rtsp", "sftp"),
        *("socks", "socksh", "ssl", "tcp", "tls", "web", "ws", "wss"),
        *("agent", "apt", "aws", "bundle", "cargo", "cgi", "composer", "conda", "config", "curl", "docker", "electron"),
        *("gem", "git", "hg", "npm", "pip", "pnpm", "svn", "uv", "wget", "yarn"),
    }
)
_USERS: Final = frozenset({"user", "username", "userid", "login"})
_ADDRESSES: Final = frozenset({"url", "urls", "uri", "server", "servers"})
_PASSWORDS: Final = frozenset(
    {
        *("pass", "password", "passwd", "pwd", "pw", "passphrase", "userpwd", "userpass", "token", "secret"),
        *("cred", "creds", "credential", "credentials"),
    }
)
_ACCESS: Final = _USERS | _ADDRESSES | _PASSWORDS | {"auth", "basic", "bearer", "key", "apikey"}
_STEMS: Final = ("pass", "pwd", "auth", "cred", "user", "login")
_WITHIN: Final = ("password", "passwd", "passphrase", "secret", "token", "credential")
#: Words that only begin like one for credentials.
_OTHERS: Final = frozenset({"passthrough", "passive", "authority"})
_CLOUD_SDK: Final = ["cloudsdk", "proxy"]
_MIRRORS: Final = frozenset({"GOPROXY", "GONOPROXY"})


def is_obeyed(name: str) -> bool:
    """Tell whether programs take a variable of this name for their proxy."""
    words = words_of(name)
    before = _before_proxy(words)
    return words[:2] == _CLOUD_SDK or (before is not None and before in _SCHEMES)


def ends_in_proxy(name: str) -> bool:
    """Tell whether the last word of a name is a proxy, obeyed or not."""
    return not is_mirror(name) and _before_proxy(words_of(name)) is not None


def is_mirror(name: str) -> bool:
    """Tell whether a variable names where modules come from, and no proxy."""
    return name in _MIRRORS


def gives_access(name: str) -> bool:
    """Tell whether a name stands for what gives access to a proxy: a user, a password, an address."""
    words = words_of(name)
    before, behind = _around(words)
    if behind is None:
        return False
    if any(_is_access(word) for word in behind) or not _PASSWORDS.isdisjoint(before):
        return True
    return (_before_proxy(words) or "") in _ACCESS


def is_password(name: str) -> bool:
    """Tell whether the value of such a name is a secret, whatever it looks like."""
    before, behind = _around(words_of(name))
    if behind is not None and not _PASSWORDS.isdisjoint(before):
        return True
    last = words_of(name)[-1]
    for ending in ("proxy", "proxies"):
        last = last.rpartition(ending)[2] if not last.endswith(ending) else last.removesuffix(ending)
    last = last or (words_of(name)[-2:-1] or [""])[0]
    return _is_access(last) and last not in _USERS and last not in _ADDRESSES


def is_password_word(name: str) -> bool:
    """Tell whether the last word of a name stands for a password, of a proxy or not."""
    return words_of(name)[-1] in _PASSWORDS


def is_secret(name: str) -> bool:
    """Tell whether a key in JSON or the like stands for a secret, of a proxy or not."""
    return is_password_word(name) or words_of(name)[-1] == "auth"


def words_of(name: str) -> list[str]:
    """Return the words of a name: ``systemProp.http.proxyUser`` has five."""
    text = "".join(
        f"_{char}" if char.isupper() and before.islower() else "" if char.isdecimal() else char
        for before, char in zip(" " + name, name, strict=False)
    )
    return [word for word in text.casefold().replace("-", "_").replace(".", "_").split("_") if word] or [""]


def _before_proxy(words: list[str]) -> str | None:
    """Return what stands before "proxy" where this ends a name, glued or as a word; ``None`` where it does not."""
    for ending in ("proxy", "proxies"):
        if words[-1].endswith(ending):
            glued = words[-1].removesuffix(ending)
            return glued or (words[-2] if len(words) > 1 else "")
    return None


def _around(words: list[str]) -> tuple[list[str], list[str] | None]:
    for at, word in enumerate(words):
        glued, found, rest = word.partition("prox" if "prox" in word else "socks")
        if found:
            behind = rest.removeprefix("ies") if rest.startswith("ies") else rest.removeprefix("y")
            return [*words[:at], glued], [behind, *words[at + 1 :]]
    return words, None


def _is_access(word: str) -> bool:
    if word in _OTHERS:
        return False
    return word in _ACCESS or word.startswith(_STEMS) or any(part in word for part in _WITHIN)
