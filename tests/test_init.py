"""The library's face: what `stockade` exports, and that asking for nothing imports nothing."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stockade

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def test_everything_that_is_named_is_there_and_documented() -> None:
    assert [name for name in stockade.__all__ if getattr(stockade, name) is None] == []
    undocumented = [
        name for name in stockade.__all__ if not name.startswith("_") and not getattr(stockade, name).__doc__
    ]
    assert undocumented == []
    assert set(stockade.__all__) <= set(dir(stockade))


def test_type_checkers_are_told_what_is_imported() -> None:
    """The imports for types, the table and ``__all__`` name the same things from the same places."""
    told = {
        alias.asname or alias.name: node.module + (f":{alias.name}" if alias.asname else "")
        for node in ast.walk(ast.parse(inspect.getsource(stockade)))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("stockade.")
        for alias in node.names
    }
    assert told == stockade._HOMES
    assert sorted([*told, "__version__"]) == sorted(stockade.__all__)


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = stockade.nonsense  # type: ignore[attr-defined]  # that is the point


def test_to_import_the_package_imports_nothing_else() -> None:
    program = "import sys, stockade; print(*sorted(name for name in sys.modules if name.startswith('stockade')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "stockade\n"


def test_a_policy_in_three_lines(tmp_path: Path) -> None:
    home, project = tmp_path.resolve() / "home", tmp_path / "project"
    for folder in (home / ".stockade", project):
        folder.mkdir(parents=True)
    (home / ".stockade/settings.json").write_text('{"sandbox": {"network": {"allowedDomains": ["a.example"]}}}')
    policy = stockade.load_policy(project, environ={"HOME": str(home)})
    assert stockade.decide_host(policy.network, "A.example.", 443, can_ask=False).verdict.value == "allowed"
    assert stockade.decide_path(policy.files, stockade.Access.WRITE, "out/x", stockade.Disk()).allowed
    assert not stockade.decide_exclusion(policy.commands.excluded, "docker ps").excluded


def _block(language: str, number: int = 1) -> str:
    """Return a block of README.md in a language."""
    return README.split(f"```{language}\n")[number].split("```", 1)[0]


def test_the_readme_does_what_it_says(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    (home / ".stockade").mkdir()
    (home / ".stockade" / "settings.json").write_text(_block("json"))
    words = [sys.executable, "-c", _block("python")]
    ran = subprocess.run(words, cwd=home, env={"HOME": str(home)}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [line.split(" ")[0] for line in ran.stdout.splitlines()] == ["hello", "0", "allowed:", "may", "no"]


def test_the_readme_asks_before_it_refuses(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _block("python", 2)]
    ran = subprocess.run(words, cwd=tmp_path, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("evil.net:443: ")
    assert ran.stdout.endswith(": not on a Sunday\n")
    assert ran.stdout.count("\n") == 1


def test_the_readme_shows_a_refusal_as_it_is(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "stockade", "run", "-c", "curl -sS http://evil.net"]
    environment = {"HOME": str(tmp_path), "PATH": os.defpath}
    ran = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert ran.stdout.strip() == _block("text").strip()
