"""A workbench for real tools: a project, a home that nobody may write to from inside, and one open sandbox."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.result import Result

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#: So that git on the host and inside neither asks who commits nor obeys what this machine's users have set.
_GIT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "init.defaultBranch",
    "GIT_CONFIG_VALUE_0": "main",
}


class Bench:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.home = root / "home"
        self.project.mkdir()
        self.home.mkdir()
        self.environment = {
            "PATH": _PATH,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "USER": "ada",
            "SHELL": "/bin/bash",
            # Outside of home, which tests compare before and after.
            "XDG_CACHE_HOME": str(root / "caches"),
        } | _GIT
        #: The interpreter that these tests run on, which is there for every user who runs them.
        self.python = os.path.realpath(sys.executable)
        self._sandbox: BlockingSandbox | None = None

    def policy(self, **values: Any) -> SandboxPolicy:
        """Return a policy with settings given as ``filesystem__allowWrite=("/x",)``."""
        named = {f"sandbox.{name.replace('__', '.')}": value for name, value in values.items()}
        settings = merge([Document(Layer.USER, "settings.json", named)])
        return compile_policy(settings, cwd=str(self.project), home=str(self.home))

    def policy_at(self, directory: Path) -> SandboxPolicy:
        """Return the default policy of a session that works in another directory."""
        return compile_policy(
            merge([Document(Layer.USER, "settings.json", {})]), cwd=str(directory), home=str(self.home)
        )

    def sandbox(self, **values: Any) -> BlockingSandbox:
        """Return the one sandbox of this test, open; settings count at the first call."""
        if self._sandbox is None:
            self._sandbox = BlockingSandbox(self.policy(**values), environment=self.environment)
            self._sandbox.open()
        return self._sandbox

    def run(self, line: str, **options: Any) -> Result:
        """Run a line inside, however it ends."""
        return self.sandbox().run(line, **({"timeout": 100} | options))

    def good(self, line: str, **options: Any) -> str:
        """Run a line inside that must succeed; return what it said."""
        done = self.run(f"set -e\n{line}", **options)
        assert done.exit_code == 0, f"{done.exit_code} {done.signal} {done.limit}\n{done.stdout!r}\n{done.stderr!r}"
        return done.stdout.decode()

    def close(self) -> None:
        """End the sandbox; nothing of it may be left in the project."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


@pytest.fixture
def tools_bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path.resolve())
    yield bench
    bench.close()
