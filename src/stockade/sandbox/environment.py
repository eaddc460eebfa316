"""The environment of a command: the host's, less what could inject code, plus what the sandbox tells.

Rules: variables that make a loader, a shell or an interpreter run code of the host's choosing are dropped;
what tells of the host's proxies is dropped under any name, for they are not reachable and may hold credentials (see
``host_proxy``); package managers keep
their caches in the project's private cache (``platforms.private_cache``), because the real ones are not writable; where
there is none, in the session's own temporary directory. XDG_RUNTIME_DIR becomes a directory of the session.
Source of truth: ld.so(8), bash(1), environ(7); the caches' variables are those of each tool's manual.
"""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError
from stockade.platforms.private_cache import NAME, PrivateCache, caches_directory, user_caches
from stockade.policy.path_pattern import is_at_or_below
from stockade.sandbox.host_proxy import names_proxy, without_proxies
from stockade.settings.layer import Layer
from stockade.suppress import suppress
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stockade.platforms.backend import Walls
    from stockade.policy.model import SandboxPolicy

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
#: Where each package manager keeps its cache, below the session's temporary directory, where there is no private one.
CACHES: Final = {
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "GOCACHE": "go-build",
    "GOMODCACHE": "go-mod",
}
#: Variables that name a place in the project's private cache. Most folders have the name that they have in
#: XDG_CACHE_HOME if nobody says otherwise. Left out, each for a reason:
#: - YARN_CACHE_FOLDER: yarn 1 takes XDG_CACHE_HOME; yarn 2 and later would leave a cache that is part of the project.
#: - UV_PYTHON_INSTALL_DIR, PIPX_HOME, RUSTUP_HOME: what is installed there the host would run, from a project's files.
#: - XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME: settings and data of the user's, which can be read as they are.
#:   But without a place for its profile Chromium does not start, and the user's own profile is nobody else's business.
#: - RUFF_CACHE_DIR, MYPY_CACHE_DIR, TOX_WORK_DIR: the project holds these itself.
PRIVATE: Final = {
    "XDG_CACHE_HOME": "",
    "BUNDLE_USER_CACHE": "bundle",
    "BUN_INSTALL_CACHE_DIR": "bun",
    "CARGO_HOME": "cargo",
    "CCACHE_DIR": "ccache",
    "CHROME_CONFIG_HOME": "chrome-config",
    "COMPOSER_CACHE_DIR": "composer",
    "CONDA_PKGS_DIRS": "conda",
    "CYPRESS_CACHE_FOLDER": "Cypress",
    "DENO_DIR": "deno",
    "GEM_SPEC_CACHE": "gem",
    "GOCACHE": "go-build",
    "GOLANGCI_LINT_CACHE": "golangci-lint",
    "GOMODCACHE": "go/pkg/mod",
    "GOPATH": "go",
    "GRADLE_USER_HOME": "gradle",
    "HATCH_CACHE_DIR": "hatch",
    "HATCH_DATA_DIR": "hatch-data",
    "HF_HOME": "huggingface",
    "MPLCONFIGDIR": "matplotlib",
    "NUGET_PACKAGES": "nuget",
    "PIP_CACHE_DIR": "pip",
    "PLAYWRIGHT_BROWSERS_PATH": "ms-playwright",
    "PNPM_HOME": "pnpm-home",
    "POETRY_CACHE_DIR": "pypoetry",
    "PRE_COMMIT_HOME": "pre-commit",
    "PUPPETEER_CACHE_DIR": "puppeteer",
    "SCCACHE_DIR": "sccache",
    "TORCH_HOME": "torch",
    "UV_CACHE_DIR": "uv",
    "YARN_GLOBAL_FOLDER": "yarn-global",
    "electron_config_cache": "electron",
    "npm_config_cache": "npm",
}
_HATCH: Final = "HATCH_CONFIG"
_MAVEN: Final = "-Dmaven.repo.local="
#: What a shell leaves as it is.
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@+,:=")


_GO: Final = "GOFLAGS"
_UNSTAMPED: Final = "-buildvcs"


class Shown(Value):
    """What the user has of a kind of cache, and how much of it shows in the private one; see ``sandbox.shown``.

    ``place`` is where the user has it if ``variable`` is not set: in the home directory, or, if ``cached``, in the
    user's cache directory. ``folder`` is its place in the private cache.
    """

    variable: str
    place: str
    folder: str
    names: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    marker: str = ""
    cached: bool = False


SHOWN: Final = (
    Shown(
        "CARGO_HOME",
        ".cargo",
        "cargo",
        names=("config.toml", "config", "credentials.toml", "credentials"),
        once=("registry/cache", "registry/index"),
        marker="Cargo.toml",
    ),
    Shown("MAVEN_OPTS", ".m2/repository", "maven", once=("",), marker="pom.xml"),
    Shown("GRADLE_USER_HOME", ".gradle", "gradle", ("gradle.properties", "init.gradle", "init.gradle.kts", "init.d")),
    Shown("HF_HOME", "huggingface", "huggingface", ("token", "stored_tokens"), ("hub", "datasets"), cached=True),
    Shown("PLAYWRIGHT_BROWSERS_PATH", "ms-playwright", "ms-playwright", each=("",), cached=True),
    Shown("CYPRESS_CACHE_FOLDER", "Cypress", "Cypress", each=("",), cached=True),
    Shown("PUPPETEER_CACHE_DIR", ".cache/puppeteer", "puppeteer", each=("chrome", "chrome-headless-shell", "firefox")),
    Shown("TORCH_HOME", "torch", "torch", each=("hub/checkpoints",), cached=True),
    Shown("MPLCONFIGDIR", ".config/matplotlib", "matplotlib", ("matplotlibrc", "stylelib")),
    Shown("CCACHE_DIR", ".ccache", "ccache", ("ccache.conf",)),
)


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
    own: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a command, of what was ``inherited`` already.

    ``own`` are the variables of this session; without them caches are in the temporary directory.
    """
    told = {"SANDBOX_RUNTIME": "1", "TMPDIR": temporary, "TMP": temporary, "TEMP": temporary}
    caches = short_lived(kept, temporary) if own is None else own
    return {**kept, **caches, **told, **(proxies or {}), **(extra or {})}


def short_lived(kept: Mapping[str, str], temporary: str) -> dict[str, str]:
    """Return the variables of caches that go with the session; one that the user has set stays."""
    return {name: f"{temporary}/cache/{folder}" for name, folder in CACHES.items() if name not in kept}


def long_lived(kept: Mapping[str, str], cache: str, is_writable: Callable[[str], bool]) -> dict[str, str]:
    """Return the variables of a private cache.

    One that the user has set to a place that commands can write stays, and so does one that names no place.
    """
    found = {
        name: f"{cache}/{folder}" if folder else cache
        for name, folder in PRIVATE.items()
        if not (set_to := kept.get(name)) or (set_to.startswith("/") and not is_writable(os.path.normpath(set_to)))
    }
    if "CONDA_PKGS_DIRS" in found and kept.get("CONDA_EXE", "").startswith("/"):
        # Of several the first that can be written is used, and the others are read.
        found["CONDA_PKGS_DIRS"] += f",{os.path.dirname(os.path.dirname(kept['CONDA_EXE']))}/pkgs"
    options = kept.get("MAVEN_OPTS", "")
    if _MAVEN not in options and _PLAIN.issuperset(cache):
        # Maven's start script splits the variable at blanks, whatever the quotes.
        found["MAVEN_OPTS"] = f"{options} {_MAVEN}{cache}/maven".lstrip()
    if not kept.get("UV_LINK_MODE"):
        found["UV_LINK_MODE"] = "copy"  # the cache is a mount of its own, so that uv would try to link, and warn
    return found


class Environment:
    """The variables of a session's commands, and the private cache that they name."""

    def __init__(self, host: Mapping[str, str]) -> None:
        """Take the host's variables; nothing is made."""
        self._host = host
        self.inherited = inherited(host)
        self._policy: SandboxPolicy | None = None
        self._own: dict[str, str] | None = None
        #: Those that this session holds; a project's cache is held until the session ends.
        self._held: dict[str, PrivateCache] = {}

    def settle(self, policy: SandboxPolicy, walls: Walls, temporary: str) -> tuple[str, ...]:
        """Find the cache that commands get under this policy, and have the walls open it; return notes."""
        if policy is self._policy:
            return ()
        cache: PrivateCache | None = None
        notes: tuple[str, ...] = ()
        if is_kept(policy, self._host):
            try:
                cache = self._hold(policy)
            except UnavailableError as error:
                notes = _told_once(f"caches go with this session: {error.message}; {error.hint}", temporary)
        if cache is None:
            # What other sandboxes keep stays out of reach, whatever is open to commands.
            walls.lend("", caches_directory(policy.home, self._host))
            self._own = short_lived(self.inherited, temporary)
        else:
            walls.lend(cache.path, cache.base)
            self._own = self._long_lived(policy, cache.path)
        self._own |= _runtime(self.inherited, policy, temporary) | _unstamped(self.inherited, policy.cwd)
        self._policy = policy
        return notes

    def variables(
        self, temporary: str, proxies: Mapping[str, str] | None = None, extra: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """Return the environment of a command."""
        return completed(self.inherited, temporary, proxies, extra, self._own)

    def release(self) -> None:
        """Let go of the cache; may be called again, and ``settle`` after it."""
        self._policy = None
        while self._held:
            self._held.popitem()[1].release()

    def _hold(self, policy: SandboxPolicy) -> PrivateCache:
        if policy.cwd not in self._held:
            self._held[policy.cwd] = PrivateCache.hold(policy.cwd, policy.home, self._host)
        return self._held[policy.cwd]

    def _long_lived(self, policy: SandboxPolicy, cache: str) -> dict[str, str]:
        allows = [rule.value for rule in policy.files.write_allow]
        found = long_lived(self.inherited, cache, lambda path: any(each.depth_on(path) is not None for each in allows))
        shown = [
            (each, users)
            for each in SHOWN
            if each.variable in found and os.path.isdir(users := self._users(each, policy.home))
        ]
        if not self.inherited.get(_HATCH) and not os.path.exists(self._hatch(policy.home)):
            found[_HATCH] = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hatch.toml")
        modules = self._modules(policy.home) if "GOMODCACHE" in found else ""
        if shown or (modules and os.path.isdir(modules)):
            from stockade.sandbox.shown import go_proxy, show

            for each, users in shown:
                show(each, users, cache, policy.cwd)
            if modules and (proxy := go_proxy(modules, self.inherited, policy.home)):
                found["GOPROXY"] = proxy
        return found

    def _users(self, shown: Shown, home: str) -> str:
        """Return the user's own place of this kind."""
        set_to = self.inherited.get(shown.variable, "")
        if set_to.startswith("/"):
            return set_to
        return f"{user_caches(home, self._host)}/{shown.place}" if shown.cached else f"{home}/{shown.place}"

    def _hatch(self, home: str) -> str:
        """Return where the user's settings of hatch are."""
        usual = f"{home}/Library/Application Support" if sys.platform == "darwin" else f"{home}/.config"
        return f"{self.inherited.get('XDG_CONFIG_HOME') or usual}/hatch/config.toml"

    def _modules(self, home: str) -> str:
        """Return where the user has Go's modules."""
        paths = self.inherited.get("GOPATH") or f"{home}/go"
        return self.inherited.get("GOMODCACHE") or f"{paths.partition(os.pathsep)[0]}/pkg/mod"


def is_kept(policy: SandboxPolicy, host: Mapping[str, str]) -> bool:
    """Tell whether the policy lets a cache be kept: the setting is on, and no deny of somebody's is about the place.

    A read deny *around* it is about what the user has there, and that stays hidden; commands read what they wrote.
    """
    if not policy.mode.private_cache:
        return False
    denies = [rule.value for rule in policy.files.write_deny if rule.origin.layer is not Layer.DEFAULTS]
    hides = [rule.value for rule in policy.files.read_deny]
    if not denies and not hides:
        return True
    around = user_caches(policy.home, host)
    places = {f"{around}/{NAME}", f"{os.path.realpath(around)}/{NAME}"}
    denies += [one.moved_to(os.path.realpath(one.static_prefix)) for one in denies]
    if any(one.depth_on(place) is not None for one in denies for place in places):
        return False
    return not any(is_at_or_below(one.static_prefix, place) for one in hides for place in places)


def _unstamped(kept: Mapping[str, str], project: str) -> dict[str, str]:
    """Return what keeps ``go build`` from asking git about a project that is no repository.

    Commands see an empty ``.git`` there (``platforms.linux.staging``), and go 1.18 and later fail if git does.
    """
    flags = kept.get(_GO, "")
    if sys.platform != "linux" or _UNSTAMPED in flags or os.path.lexists(f"{project}/.git/HEAD"):
        return {}
    if os.path.lexists(f"{project}/.git") and not os.path.isdir(f"{project}/.git"):
        return {}
    return {_GO: f"{flags} {_UNSTAMPED}=false".strip()}


def _runtime(kept: Mapping[str, str], policy: SandboxPolicy, temporary: str) -> dict[str, str]:
    """Return a runtime directory that can be written and goes with the session, if the user has one at all.

    The user's own stays where commands may reach sockets, for they are looked for there.
    """
    if not kept.get("XDG_RUNTIME_DIR") or policy.sockets.all_unix or policy.sockets.unix:
        return {}
    with suppress(FileExistsError):
        os.mkdir(f"{temporary}/run", 0o700)
    return {"XDG_RUNTIME_DIR": f"{temporary}/run"}


def _told_once(note: str, temporary: str) -> tuple[str, ...]:
    """Return a note unless this user got one already, since the machine was started: it is no news with every run."""
    try:
        os.close(os.open(f"{os.path.dirname(temporary)}/cache-note", os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return ()
    return (note,)
