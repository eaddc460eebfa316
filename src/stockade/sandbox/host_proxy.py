"""What the host's environment tells of its proxies, taken out of it: it may hold credentials, and helps nobody inside.

Rules:

- by name: a variable that programs take for their proxy, and one for credentials of a proxy (``proxy_name``);
- by value: one whose value gives access to a proxy (``proxy_option``). Where the name speaks of a proxy as well, any
  address with a user in it does. Options of Java about proxies are cut out (``java_option``). Git's settings in
  variables lose those about proxies;
- by secret, last: a variable in which a secret of one of those proxies stands (``proxy_secret``); if it
  stands in definitions (``-Dkey=secret``) alone, only those go.

Variables without which nothing runs are never taken for such. ``GOPROXY`` is no proxy in this sense: it goes by its
secrets alone. The other modules are imported where something speaks of a proxy, for every command begins with this.
Source of truth: the manuals that those modules name, git-config(1).
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.sandbox.proxy_secret import Needles, Secret

_NEEDED: Final = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "TERM"})
_GIT_ALL: Final = "GIT_CONFIG_PARAMETERS"
_GIT_KEY: Final = "GIT_CONFIG_KEY_"
_GIT_VALUE: Final = "GIT_CONFIG_VALUE_"
#: Git counts its variables, so that none may be missing; this one means nothing to it.
_NO_SETTING: Final = "stockade.removed"


def names_proxy(name: str) -> bool:
    """Tell whether a variable of this name goes, whatever its value is."""
    if not _is_about_proxy(name.lower()):
        return False
    from stockade.sandbox.proxy_name import gives_access, is_obeyed

    return is_obeyed(name) or gives_access(name)


def without_proxies(host: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing tells of the host's proxies."""
    secrets: set[Secret] = set()
    kept = dict(host)
    for name, value in host.items():
        if name not in _NEEDED and _speaks(name, value):
            rest = _without_proxy(name, value, host, secrets)
            if rest is None:
                _remove(kept, name)
            elif rest != value:
                kept[name] = rest
    if secrets:
        from stockade.sandbox.proxy_secret import Needles

        needles = Needles(secrets, [kept[name] for name in _NEEDED if name in kept])
        for name, value in [(name, value) for name, value in kept.items() if needles.are_in(value)]:
            if name in _NEEDED:
                continue
            if rest := _without_definitions(value, needles):
                kept[name] = rest
            else:
                _remove(kept, name)
    return kept


def _without_definitions(value: str, needles: Needles) -> str:
    """Return a row of options without those definitions that hold a secret; nothing, if one is elsewhere too."""
    from stockade.sandbox.java_option import split

    if "-D" not in value:
        return ""
    rest = " ".join(word for word in split(value) if not (word.startswith("-D") and needles.are_in(word)))
    return "" if needles.are_in(rest) else rest


def _speaks(name: str, value: str) -> bool:
    """Tell whether a variable is worth a look; most are not."""
    if _is_about_proxy(name.lower()) or _is_about_proxy(value.lower()):
        return True
    # Of what does not say "proxy", curl's short options are left.
    is_option = value[:1] == "-" or " -" in value or '"-' in value or "'-" in value
    return is_option and "x" in value and ("@" in value or "-U" in value)


def _is_about_proxy(low: str) -> bool:
    return "prox" in low or "socks" in low


def _without_proxy(name: str, value: str, host: Mapping[str, str], secrets: set[Secret]) -> str | None:
    """Return what is left of a value, or ``None`` if the variable goes; what it gives away is added to ``secrets``."""
    from stockade.sandbox.java_option import without_options
    from stockade.sandbox.proxy_name import is_mirror, is_password
    from stockade.sandbox.proxy_option import brings_access
    from stockade.sandbox.proxy_secret import of_addresses, of_password

    if is_mirror(name):
        return value
    setting, value_of = name, value
    if name.startswith(_GIT_KEY):
        setting, value_of = value, host.get(_GIT_VALUE + name.removeprefix(_GIT_KEY), "")
    is_named = _is_about_proxy(setting.lower())
    if (is_named and (name != setting or names_proxy(name) or _is_proxy(name, value))) or (
        name == _GIT_ALL and "prox" in value.lower()
    ):
        secrets.update(of_addresses(value_of))
        if is_password(setting):
            secrets.update(of_password(value_of))
        brings_access(value_of, secrets, named=is_named)
        return None
    rest = without_options(value, secrets)
    if brings_access(rest, secrets, named=is_named) or (value and not rest):
        return None
    return rest


def _is_proxy(name: str, value: str) -> bool:
    """Tell whether a variable that programs may not know holds the address of a proxy all the same."""
    from stockade.sandbox.proxy_name import ends_in_proxy

    user, colon, password = value.partition(":")
    is_pair = bool(user and colon and password) and ":" not in password and not password.strip("/").isdecimal()
    return ends_in_proxy(name) and ("@" in value or "://" in value or is_pair)


def _remove(kept: dict[str, str], name: str) -> None:
    for prefix in (_GIT_KEY, _GIT_VALUE):
        if name.startswith(prefix):
            number = name.removeprefix(prefix)
            kept[f"{_GIT_KEY}{number}"] = _NO_SETTING
            kept[f"{_GIT_VALUE}{number}"] = ""
            return
    kept.pop(name, None)
