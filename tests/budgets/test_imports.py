"""What a command imports, counted: `stockade` is started once per command, so that every module costs each time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stockade.cli.registry import COMMANDS

# The console script, as far as imports go; what the interpreter itself had loaded does not count.
PROGRAM = """
import sys
before = set(sys.modules)
sys.argv = ["stockade", *sys.argv[1:]]
from stockade.cli.main import main
status = main()
loaded = sorted(set(sys.modules) - before)
import json
print(json.dumps(loaded), file=sys.stderr)
sys.exit(status)
"""

HEAVY = {
    "anyio",
    "asyncio",
    "concurrent",
    "ctypes",
    "dataclasses",
    "email",
    "h11",
    "hashlib",
    "http",
    "idna",
    "importlib.metadata",
    "inspect",
    "ipaddress",
    "logging",
    "mcp",
    "msgspec",
    "multiprocessing",
    "pathlib",
    "pydantic",
    "pydantic_ai",
    "rich",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "textual",
    "threading",
    "tree_sitter",
    "typing_extensions",
    "urllib",
    "uvloop",
}


#: What the interpreter has beside its core, and `run` does without: each takes milliseconds, or brings one that does.
AVOIDED = {"argparse", "collections", "contextlib", "enum", "functools", "json", "re", "signal", "struct", "typing"}

#: Modules of ours that one `run` may import.
MODULES = 120


def _loaded(directory: Path, *words: str, path: str = "") -> set[str]:
    home = directory / "home"  # a project in a home is another matter, see ``stockade.policy.home_names``
    project = directory / "project"
    for folder in (home, project):
        folder.mkdir(exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=project,
        env={"HOME": str(home), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stderr.splitlines()[-1]))


def _heavy(loaded: set[str]) -> set[str]:
    return {heavy for heavy in HEAVY if any(name == heavy or name.startswith(f"{heavy}.") for name in loaded)}


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "settings.json"
    file.write_text(
        json.dumps(
            {
                "sandbox": {"enabled": True, "network": {"allowedDomains": ["example.com"]}},
                "permissions": {"deny": ["Read(~/.ssh)"]},
            }
        )
    )
    return file


def test_version_imports_this_and_no_more(tmp_path: Path) -> None:
    loaded = _loaded(tmp_path, "--version")
    assert {name for name in loaded if name.startswith("stockade")} == {
        "stockade",
        "stockade.annotation",
        "stockade.cli",
        "stockade.cli.main",
        "stockade.cli.registry",
        "stockade.cli.terminal",
        "stockade.errors",
        "stockade.suppress",
        "stockade.value",
    }
    assert _heavy(loaded) == set()
    assert loaded.isdisjoint({"argparse", "json", "shutil"})


def test_run_imports_neither_what_is_heavy_nor_what_it_can_do_without(tmp_path: Path, settings: Path) -> None:
    loaded = _loaded(tmp_path, "run", "--settings", str(settings), "-c", "true", path=os.defpath)
    assert "stockade.platforms.linux.walls" in loaded
    assert _heavy(loaded) == set()
    assert loaded & AVOIDED == set()
    assert len({name for name in loaded if name.startswith("stockade")}) <= MODULES


def test_check_imports_nothing_heavy(tmp_path: Path, settings: Path) -> None:
    loaded = _loaded(tmp_path, "check", str(settings))
    assert "stockade.cli.check" in loaded
    assert _heavy(loaded) == set()


def test_a_command_imports_no_other_command(tmp_path: Path, settings: Path) -> None:
    loaded = _loaded(tmp_path, "check", str(settings))
    modules = {f"stockade.cli.{command.module}" for command in COMMANDS.values()}
    assert loaded & modules == {"stockade.cli.check"}


def test_the_script_that_is_installed_is_our_own() -> None:
    """The one that an installer makes imports ``re``, which costs more than reading the settings does."""
    script = Path(sys.executable).with_name("stockade").read_text()
    assert script.splitlines()[1:] == (Path(__file__).parents[2] / "bin" / "stockade").read_text().splitlines()[1:]
    assert "import re" not in script
