"""Where a workflow runs: a home of its own with a project in it, and a look at what was left there."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from workflow import REPOSITORY

if TYPE_CHECKING:
    from loopback_host import LoopbackHost
    from workflow import Workflow

STOCKADE = Path(sys.executable).parent / "stockade"
SYSTEM = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#: Programs of the host obey these, so that no command may leave one.
HELD = (
    *(".bash_profile", ".bashrc", ".claude", ".gitconfig", ".gitmodules", ".idea", ".mcp.json", ".profile"),
    *(".ripgreprc", ".stockade", ".vscode", ".zprofile", ".zshrc", "refs"),
)
#: What git itself puts into a new repository's configuration, or `user.name` and the like: nothing is started by these.
HARMLESS = ("core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "user.")
#: Stockade's own places in a home.
OWN = (".cache/stockade-projects", ".local/state/stockade", ".local/share/stockade", ".stockade")
GITCONFIG = """\
[user]
\tname = Ada
\temail = ada@example.com
[init]
\tdefaultBranch = main
"""
#: What ``stockade doctor`` recommends. It lies where git looks whatever home the user database names.
SAFE = """\
[safe]
\tbareRepository = explicit
"""
#: How names end that were set aside.
ASIDE = re.compile(r"\.stockade-[0-9]+$")


class Place:
    """A home and a project in it, with the environment of somebody who works there."""

    def __init__(self, folder: Path, tools: Path, host: LoopbackHost) -> None:
        self.home = folder / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        self.home.chmod(0o700)
        (self.home / ".gitconfig").write_text(GITCONFIG)
        (self.home / ".config" / "git").mkdir(parents=True)
        (self.home / ".config" / "git" / "config").write_text(SAFE)
        self.host = host
        self.port = _free_port()
        #: For runs without walls, which give no such directory by themselves.
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.environment = {
            "PATH": f"{tools}/python/bin:{tools}/node/node_modules/.bin:{_postgres()}{SYSTEM}",
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": f"{self.home}/.config",
            "USER": "ada",
            "LOGNAME": "ada",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "NODE_PATH": f"{tools}/node/node_modules",
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"{host.url}/simple/",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_DEFAULT_INDEX": f"{host.url}/simple/",
            "UV_PYTHON_DOWNLOADS": "never",
            "npm_config_registry": f"{host.url}/npm/",
            "npm_config_globalconfig": "/dev/null",
            "npm_config_update_notifier": "false",
            "npm_config_audit": "false",
            "npm_config_fund": "false",
            "GOFLAGS": "-mod=mod",
            "GOPROXY": "off",
            "GOTOOLCHAIN": "local",
        }

    def begin(self, start: str) -> None:
        """Make the project what the workflow starts from."""
        if start == REPOSITORY:
            self.on_host(
                "git init -q && printf '# Project\\n' >README.md && git add . && git commit -qm first"
                " && git -C . checkout -q -b work"
            )

    def words(self, text: str) -> str:
        """Fill in what a text of a workflow leaves open."""
        given = {
            "{host}": self.host.address,
            "{port}": str(self.port),
            "{home}": str(self.home),
            "{stockade}": str(STOCKADE),
        }
        for word, value in given.items():
            text = text.replace(word, value)
        return text

    def on_host(self, line: str, before: str = "") -> str:
        """Run lines without walls that must succeed; return what they said. A failure tells what was said before."""
        done = subprocess.run(
            ["bash", "-ec", self.words(line)],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, f"on the host: {line}\n{done.stdout}{done.stderr}\n{before}"
        return done.stdout

    def remains(self, workflow: Workflow) -> list[str]:
        """Return what is there and should not be: placeholders, hooks, configuration, files in the home, processes."""
        return [
            *(f"left in the project: {name}" for name in HELD if self._left(name, workflow)),
            *(f"set aside: {path}" for path in self._set_aside()),
            *(f"no file of anybody's: {path}" for path in self._nodes() if path not in workflow.homes),
            *self._of_git(workflow),
            *(f"left in the home: {path}" for path in self._of_home(workflow)),
            *(f"still running: {text}" for text in self._processes()),
        ]

    def _left(self, name: str, workflow: Workflow) -> bool:
        return os.path.lexists(self.project / name) and name not in workflow.makes

    def _set_aside(self) -> list[str]:
        walked = os.walk(self.project)
        return [
            f"{folder}/{name}" for folder, names, files in walked for name in (*names, *files) if ASIDE.search(name)
        ]

    def _nodes(self) -> list[str]:
        found = []
        for folder, _, names in os.walk(self.home):
            for name in names:
                mode = os.lstat(os.path.join(folder, name)).st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
                    found.append(os.path.relpath(os.path.join(folder, name), self.home))
        return found

    def _of_git(self, workflow: Workflow) -> list[str]:
        git = self.project / ".git"
        if not git.exists():
            return []
        found = []
        if git.is_dir():
            names = os.listdir(git / "hooks") if (git / "hooks").is_dir() else []
            found += [
                f"a hook: {name}"
                for name in names
                if not name.endswith(".sample") and ".git/hooks" not in workflow.makes
            ]
            if not names and not os.listdir(git):
                return [*found, "an empty .git"]
        self.on_host("git fsck --strict --no-dangling --no-progress")
        keys = self.on_host("git config --local --list --name-only").split()
        allowed = (*HARMLESS, *workflow.configures)
        found += [f"configuration: {key}" for key in keys if not key.startswith(allowed)]
        status = self.on_host("git status --porcelain --untracked-files=normal")
        found += [
            f"git status: {line}"
            for line in status.splitlines()
            if line[3:].strip("/") in HELD and line[3:].strip("/") not in workflow.makes
        ]
        return found

    def _of_home(self, workflow: Workflow) -> list[str]:
        allowed = ("project", ".gitconfig", ".config/git", *OWN, *workflow.homes)
        found = []
        for folder, _, names in os.walk(self.home):
            at = os.path.relpath(folder, self.home)
            inside = "" if at == "." else f"{at}/"
            found += [
                f"{inside}{name}"
                for name in names
                if not any(f"{inside}{name}" == each or inside.startswith(f"{each}/") for each in allowed)
            ]
        return found

    def _processes(self) -> list[str]:
        """Return the processes of this home that do not end by themselves in a few seconds."""
        mark = f"HOME={self.home}".encode()
        found: list[str] = []
        for _ in range(50):
            found = []
            for name in os.listdir("/proc"):
                if not name.isdecimal() or int(name) == os.getpid():
                    continue
                try:
                    if mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                        found.append(
                            Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                        )
                except OSError:
                    continue
            if not found:
                break
            time.sleep(0.1)
        return found

    def close(self) -> None:
        """Remove it all."""
        shutil.rmtree(self.home.parent, onerror=_open_and_retry)


def _open_and_retry(_: object, path: str, __: object) -> None:
    """Open a directory that a tool made read-only (Go's modules), and remove what is in it."""
    os.chmod(os.path.dirname(path), 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)


def _free_port() -> int:
    """Return a port of loopback that nobody has: workflows run side by side."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def _postgres() -> str:
    """Return the directory of Debian's server programs, which are not on anybody's PATH, with a colon."""
    folder = Path("/usr/lib/postgresql")
    return "".join(f"{each}/bin:" for each in sorted(folder.iterdir())[-1:]) if folder.is_dir() else ""
