"""Attacks on the walls of macOS: each succeeds outside as the control, and is refused inside without a trace."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import pytest

from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from pathlib import Path

# $O is a directory outside, the working directory is the project. Every line ends with 0 where nothing stops it.
ATTACKS: Final = {
    "write outside": 'echo x > "$O/made"',
    "write outside by a link": 'ln -s "$O" way && echo x > way/made',
    "write outside by ..": 'echo x > "../outside/made"',
    "change a file outside by a hard link": 'ln "$O/file" twin && echo x > twin',
    "rename a file in from outside": 'mv "$O/file" taken',
    "remove a file outside": 'rm "$O/file"',
    "change the mode outside": 'chmod 600 "$O/file"',
    "read what is denied": 'cat "$O/secret/key"',
    "list what is denied": 'ls "$O/secret"',
    "read what is denied by a link": 'ln -s "$O/secret/key" way && cat way',
    "read what is denied by the second path": 'cat "/System/Volumes/Data$O/secret/key"',
    "read what is denied in capitals": 'cat "$O/SECRET/KEY"',
    "read a name of one character": 'cat "$O/odd/\u00e9"',
    "read a name of one character of ASCII": 'cat "$O/odd/x"',
    "read a name with a quote": 'cat "$O/quo\'ted\\\\/x"',
    "write a hook": "echo x > .git/hooks/pre-commit",
    "write a hook in capitals": "echo x > .GIT/HOOKS/pre-commit",
    "move a repository away": "mv .git gone",
    "write a start-up file": "echo x > .bashrc",
    "write a start-up file below": "mkdir -p a/b && echo x > a/b/.zshrc",
    "write a denied file": "echo x > keep/this",
    "move a denied file's directory": "mv keep gone",
    "signal a process outside": "kill -0 $OUTSIDE",
    "read the clipboard": "pbpaste",
}
NETWORK: Final = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5):
    pass
"""


def _prepare(root: Path) -> tuple[Path, Path]:
    project, outside = root / "project", root / "outside"
    for directory in (project / ".git" / "hooks", project / "keep", outside / "secret"):
        directory.mkdir(parents=True)
    (project / "keep" / "this").touch()
    (outside / "file").write_text("as it was")
    for path in ("secret/key", "odd/\u00e9", "odd/x", "quo'ted\\/x"):
        (outside / path).parent.mkdir(exist_ok=True)
        (outside / path).write_text("canary")
    return project, outside


def _state(directory: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(tmp_path: Path, name: str) -> None:
    control, walled = (tmp_path / side for side in ("control", "walled"))
    sleeper = subprocess.Popen(["/bin/sleep", "300"])
    try:
        project, outside = _prepare(control.resolve())
        variables = {"O": str(outside), "OUTSIDE": str(sleeper.pid), "PATH": "/usr/bin:/bin"}
        ran = subprocess.run(
            ["/bin/sh", "-c", ATTACKS[name]], cwd=project, env=variables, capture_output=True, check=False
        )
        assert ran.returncode == 0, f"the control failed: {ran.stderr.decode()}"
        project, outside = _prepare(walled.resolve())
        values: dict[str, object] = {
            "sandbox.filesystem.denyRead": [f"{outside}/secret", f"{outside}/odd/?", f"{outside}/quo'ted\\\\"],
            "sandbox.filesystem.denyWrite": ["keep"],
        }
        settings = merge([Document(Layer.USER, "s.json", values)])
        policy = compile_policy(settings, cwd=str(project), home=str(walled / "home"))
        before = _state(outside)
        with BlockingSandbox(policy) as sandbox:
            inside = sandbox.run(["/bin/sh", "-c", ATTACKS[name]], env=variables | {"O": str(outside)}, timeout=60)
        assert inside.exit_code not in (0, 71), inside.stderr.decode()
        assert b"canary" not in inside.stdout
        assert _state(outside) == before
    finally:
        sleeper.kill()
        sleeper.wait()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["/bin/sh", "-c", "echo x > made && mv made moved && rm moved"], id="files"),
        pytest.param(["/bin/zsh", "-c", "print ok"], id="zsh"),
        pytest.param(["/usr/bin/git", "init", "-q", "../tmp-check"], id="git-is-found"),
        pytest.param([sys.executable, "-c", "import multiprocessing as m; m.Lock(); m.Queue()"], id="python"),
        pytest.param(["/usr/bin/id", "-un"], id="users"),
        pytest.param(["/bin/sh", "-c", 'mktemp "$TMPDIR/x.XXXX"'], id="temporary-files"),
    ],
)
def test_tools_work(tmp_path: Path, words: list[str]) -> None:
    project, _ = _prepare(tmp_path.resolve())
    policy = compile_policy(merge([]), cwd=str(project), home=str(tmp_path / "home"))
    with BlockingSandbox(policy) as sandbox:
        ran = sandbox.run(words, timeout=60)
    assert b"sandbox_apply" not in ran.stderr
    if words[0] != "/usr/bin/git":  # which is refused a repository outside, but must start
        assert ran.exit_code == 0, ran.stderr.decode()


def test_only_the_proxies_are_reached(tmp_path: Path) -> None:
    import socket

    project, _ = _prepare(tmp_path.resolve())
    policy = compile_policy(merge([]), cwd=str(project), home=str(tmp_path / "home"))
    with socket.create_server(("127.0.0.1", 0)) as server, BlockingSandbox(policy) as sandbox:
        port = str(server.getsockname()[1])
        subprocess.run([sys.executable, "-c", NETWORK, port], check=True)
        ran = sandbox.run([sys.executable, "-c", NETWORK, port], timeout=60)
    assert ran.exit_code != 0
    assert b"PermissionError" in ran.stderr


def test_refusals_are_told(tmp_path: Path) -> None:
    project, outside = _prepare(tmp_path.resolve())
    policy = compile_policy(merge([]), cwd=str(project), home=str(tmp_path / "home"))
    with BlockingSandbox(policy) as sandbox:
        time.sleep(2)  # the log comes up
        sandbox.run(["/bin/sh", "-c", f'echo x > "{outside}/made"; sleep 3'], timeout=60)
        targets = {violation.target for violation in sandbox.violations}
    assert f"{outside}/made" in targets
    assert not os.path.exists(outside / "made")
