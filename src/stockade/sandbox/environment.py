"""The environment of a command: the host's, less what could inject code, plus what the sandbox tells.

Rules: variables that make a loader, a shell or an interpreter run code of the host's choosing are dropped;
what tells of the host's proxies is dropped under any name, for they are not reachable and may hold credentials (see
``host_proxy``); package managers keep
their caches in the session's own temporary directory, because the real ones are not writable.
Source of truth: ld.so(8), bash(1), environ(7); the caches' variables are those of each tool's manual.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.sandbox.host_proxy import names_proxy, without_proxies

if TYPE_CHECKING:
    from collections.abc import Mapping

_DROPPED: Final = frozenset(
    {
        "BASHOPTS",
        "BASH_ENV",
        "CDPATH",
        "ENV",
        "GCONV_PATH",
        "GLOBIGNORE",
        "HOSTALIASES",
        "IFS",
        "LOCALDOMAIN",
        "MALLOC_TRACE",
        "NLSPATH",
        "PERL5DB",
        "PERL5OPT",
        "PROMPT_COMMAND",
        "PS4",
        "PYTHONBREAKPOINT",
        "PYTHONINSPECT",
        "PYTHONSTARTUP",
        "RES_OPTIONS",
        "RUBYOPT",
        "SHELLOPTS",
    }
)
_DROPPED_PREFIXES: Final = ("LD_", "DYLD_", "BASH_FUNC_")
_KEPT: Final = frozenset({"LD_LIBRARY_PATH"})
#: Where each package manager keeps its cache, below the session's temporary directory.
CACHES: Final = {
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "GOCACHE": "go-build",
    "GOMODCACHE": "go-mod",
}


def dropped(name: str) -> bool:
    """Tell whether a variable of the host does not get inside."""
    if name in _DROPPED or names_proxy(name):
        return True
    return name.startswith(_DROPPED_PREFIXES) and name not in _KEPT


def inherited(host: Mapping[str, str]) -> dict[str, str]:
    """Return what of the host's environment gets inside."""
    return {name: value for name, value in without_proxies(host).items() if not dropped(name)}


def inside(
    host: Mapping[str, str],
    temporary: str,
    proxies: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a command; ``extra`` is what the caller asked for by name, and counts most."""
    return completed(inherited(host), temporary, proxies, extra)


def completed(
    kept: Mapping[str, str],
    temporary: str,
    proxies: Mapping[str, str] | None = None,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a command, of what was ``inherited`` already."""
    caches = {name: f"{temporary}/cache/{folder}" for name, folder in CACHES.items() if name not in kept}
    told = {"SANDBOX_RUNTIME": "1", "TMPDIR": temporary, "TMP": temporary, "TEMP": temporary}
    return {**kept, **caches, **told, **(proxies or {}), **(extra or {})}
