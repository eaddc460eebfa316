"""The peers: plain bubblewrap, sandlock and srt, each with the policy that comes nearest to ours.

They are installed when a benchmark runs, into a cache of their own, at the version that their registry has by then;
the version is printed with the results. Debian's packages come by way of ``scripts/system-packages``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from contender import SHELL, Contender, Ground, MissingError, Spawned
from driven import Driven

_HERE = Path(__file__).parent
_SRT = "@anthropic-ai/sandbox-runtime"
_MODULES = Path("srt", "node_modules", *_SRT.split("/"))


def call(words: list[str]) -> str:
    """Run a program for its output; what goes wrong makes the peer missing."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        message = f"{words[0]}: {error.strerror}"
        raise MissingError(message) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines() or [f"status {done.returncode}"]
        message = f"{Path(words[0]).name} failed: {last[-1]}"
        raise MissingError(message)
    return done.stdout.strip()


def need(programs: dict[str, str]) -> None:
    """Have programs installed that are missing; keys are programs, values Debian's packages."""
    missing = [package for program, package in programs.items() if shutil.which(program) is None]
    if not missing:
        return
    print(f"installing {' '.join(missing)}")
    call([str(_HERE.parent / "scripts" / "system-packages"), "--package", *missing])


def program(name: str) -> str:
    """Return where a program is."""
    found = shutil.which(name)
    if found is None:
        message = f"{name} is not installed"
        raise MissingError(message)
    return found


class Bwrap(Spawned):
    """bubblewrap started anew for each command, with a bind for each protected place."""

    name = "bwrap"
    title = "bwrap per command, same binds"
    is_peer = True

    def prepare(self, cache: Path) -> str:  # noqa: ARG002 - comes from the system's packages
        """Have it installed."""
        need({"bwrap": "bubblewrap"})
        return call(["bwrap", "--version"]).removeprefix("bubblewrap ")

    def prefix(self) -> tuple[str, ...]:
        """Read everything, write the tree, but for the protected places; nothing of the host's processes or network."""
        tree = str(self.ground.tree)
        binds = [word for place in self.ground.protected for word in ("--ro-bind", str(place), str(place))]
        walls = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", tree, tree, *binds]
        spaces = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--chdir", tree]
        return (program("bwrap"), *walls, *spaces, "--", SHELL, "-c")


class Sandlock(Driven):
    """sandlock's Python library: Landlock and seccomp, no namespaces."""

    name = "sandlock"
    title = "sandlock library"
    is_peer = True

    def prepare(self, cache: Path) -> str:
        """Install it into an environment of its own."""
        python = cache / "sandlock" / "bin" / "python"
        if not python.exists():
            print("installing sandlock")
            call([sys.executable, "-m", "venv", "--clear", str(cache / "sandlock")])
            call([str(python), "-m", "pip", "install", "--quiet", "sandlock"])
        return call([str(python), "-c", "import sandlock; print(sandlock.__version__)"])

    def words(self, ground: Ground) -> tuple[str, ...]:
        """Start the driver with the places that it denies, which is the only way to protect them within the tree."""
        policy = {
            "shell": SHELL if self.has_shell else "",
            "tree": str(ground.tree),
            "denied": [str(place) for place in ground.protected],
        }
        python = ground.cache / "sandlock" / "bin" / "python"
        return (str(python), str(_HERE / "drivers" / "sandlock_driver.py"), json.dumps(policy))


class SandlockDirect(Sandlock):
    """The same without a shell, which is the case that sandlock is fastest at."""

    name = "sandlock-direct"
    title = "sandlock library, `true` without a shell"
    has_shell = False


def _prepare_srt(cache: Path) -> str:
    need({"bwrap": "bubblewrap", "socat": "socat", "rg": "ripgrep", "node": "nodejs", "npm": "npm"})
    if not (cache / _MODULES / "package.json").exists():
        print(f"installing {_SRT}")
        (cache / "srt").mkdir(parents=True, exist_ok=True)
        call(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(cache / "srt"), _SRT])
    version: str = json.loads((cache / _MODULES / "package.json").read_text("utf-8"))["version"]
    return f"{version} on node {call(['node', '--version']).removeprefix('v')}"


class SrtLibrary(Driven):
    """srt in one node process, initialised once."""

    name = "srt"
    title = "srt library"
    is_peer = True

    def prepare(self, cache: Path) -> str:
        """Have it installed, and the programs that it needs."""
        return _prepare_srt(cache)

    def words(self, ground: Ground) -> tuple[str, ...]:
        """Start the driver with the module and the settings."""
        module = ground.cache / _MODULES / "dist" / "index.js"
        return (program("node"), str(_HERE / "drivers" / "srt_driver.mjs"), str(module), str(ground.settings))


class SrtCommand(Spawned):
    """srt's command line, from nothing to the end of the command."""

    name = "srt-cli"
    title = "srt command line"
    is_peer = True

    def prepare(self, cache: Path) -> str:
        """Have it installed, and the programs that it needs."""
        return _prepare_srt(cache)

    def prefix(self) -> tuple[str, ...]:
        """Start node itself: the way through ``env`` in the script's first line would count against srt."""
        script = self.ground.cache / _MODULES / "dist" / "cli.js"
        return (program("node"), str(script), "--settings", str(self.ground.settings), "-c")


PEERS: tuple[type[Contender], ...] = (Bwrap, Sandlock, SandlockDirect, SrtLibrary, SrtCommand)
