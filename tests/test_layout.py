"""The house is in order: names, sizes, twins, who imports whom, and nothing that speaks of one machine."""

from __future__ import annotations

import ast
import os
import re
import statistics
import subprocess
import tomllib
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "stockade"
TESTS = ROOT / "tests"
MODULES = sorted(SOURCE.rglob("*.py"))
SPECIAL = {"__init__", "__main__"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
LARGEST = 500
MEDIAN = 150


def _dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path) -> set[str]:
    """Return all modules that a module names in an import, wherever it stands, but for those of types alone."""
    found: set[str] = set()
    todo: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            # `from stockade.settings import catalog` may name a module or a name in one: only a file tells.
            found |= {_imported(node.module or "", alias.name) for alias in node.names}
        todo += ast.iter_child_nodes(node)
    return found


def _imported(module: str, name: str) -> str:
    path = SOURCE.parent.joinpath(*module.split("."), name)
    return f"{module}.{name}" if path.is_dir() or path.with_suffix(".py").is_file() else module


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def test_every_module_says_what_it_is_for() -> None:
    assert [_dotted(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))] == []


def test_every_module_has_its_twin_test() -> None:
    twins = [path.relative_to(SOURCE).with_name(f"test_{path.name}") for path in MODULES if path.stem not in SPECIAL]
    assert [f"tests/{twin}" for twin in twins if not (TESTS / twin).is_file()] == []


def test_no_module_has_a_vague_name() -> None:
    vague = {word for path in MODULES for word in path.relative_to(SOURCE).with_suffix("").parts} & VAGUE
    assert vague == set()


def test_modules_are_small() -> None:
    lines = {path.relative_to(SOURCE).as_posix(): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > LARGEST} == {}
    assert statistics.median(lines.values()) <= MEDIAN


@pytest.mark.parametrize(
    ("importer", "imported", "exempt"),
    [
        pytest.param("stockade.platforms.linux", "stockade.platforms.macos", (), id="Linux does not see macOS"),
        pytest.param("stockade.platforms.macos", "stockade.platforms.linux", (), id="macOS does not see Linux"),
        pytest.param("stockade", "textual", ("stockade.tui",), id="textual at the edge alone"),
        pytest.param("stockade", "mcp", ("stockade.mcp",), id="mcp at the edge alone"),
        pytest.param("stockade", "pydantic_ai", ("stockade.agent",), id="pydantic-ai at the edge alone"),
        pytest.param("stockade", "dataclasses", (), id="records are of Value"),
    ],
)
def test_who_must_not_import_whom(importer: str, imported: str, exempt: tuple[str, ...]) -> None:
    wrong = {
        _dotted(path)
        for path in MODULES
        if _within(_dotted(path), importer)
        and not any(_within(_dotted(path), package) for package in exempt)
        and any(_within(name, imported) for name in _imports(path))
    }
    assert wrong == set()


#: Where settings meet their meaning: what a text means, all of it for some locations, and that kept up to date.
READERS = {"stockade.policy.compile", "stockade.policy.effective", "stockade.policy.live"}


def test_only_a_few_modules_of_the_policy_read_settings() -> None:
    """The rest of the policy may know where a value came from, but not what was written."""
    wrong = {
        (_dotted(path), name)
        for path in MODULES
        if _within(_dotted(path), "stockade.policy") and _dotted(path) not in READERS
        for name in _imports(path)
        if _within(name, "stockade.settings") and name != "stockade.settings.layer"
    }
    assert wrong == set()


def _files() -> Iterator[Path]:
    """Yield the files of the repository: those of git, or of the directory where this is no clone."""
    words = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this tree is no clone of a git repository")
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            yield ROOT / name


# Put together from pieces, so that this file does not hold what it looks for.
PLACEHOLDERS = "a|ada|alice|ann|bob|dev|eve|me|u|user|x|you"
FOREIGN = re.compile(
    "|".join(
        (
            r"(?<![\w}])/ro" + r"ot/[\w.]",
            r"(?<![\w}])/ho" + rf"me/(?!(?:{PLACEHOLDERS})\b)\w",
            r"(?<![\w}])/Us" + rf"ers/(?!(?:{PLACEHOLDERS})\b)\w",
            "py" + r"pi\.org",
            "python" + r"hosted\.org",
            "npm" + r"js\.(?:org|com)",
        )
    )
)


def test_no_file_speaks_of_one_machine_or_registry() -> None:
    clone = re.compile(re.escape(str(ROOT)) + r"\b") if len(PurePath(ROOT).parts) > 2 else None
    found = {
        (path.relative_to(ROOT).as_posix(), number, match.group())
        for path in _files()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        for pattern in (FOREIGN, clone)
        if pattern and (match := pattern.search(line))
    }
    assert found == set()


def _scripts() -> list[Path]:
    starts = {path: path.read_bytes()[:256].partition(b"\n")[0] for path in _files()}
    return [
        path
        for path, start in starts.items()
        if (start.startswith(b"#!") and b"python" not in start) or path.suffix in {".sh", ".bash"}
    ]


def test_shell_scripts_can_be_run() -> None:
    scripts = _scripts()
    assert {"setup", "demo", "test", "check", "run"} <= {path.name for path in scripts}
    for path in scripts:
        sourced = path.suffix == ".bash"
        assert os.access(path, os.X_OK) != sourced, f"{path}: executable, unless it is only sourced"
        parsed = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
        assert (parsed.returncode, parsed.stderr) == (0, "")


def _canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def test_the_lock_agrees_with_the_project() -> None:
    """Every dependency is locked, each with a hash, at a version that the project accepts."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["dev"],
    ]
    lock = (ROOT / "requirements" / "dev.txt").read_text("utf-8")
    entries = re.findall(r"^([\w.-]+)==([\w.]+)((?:.*\\\n)(?:    --hash=sha256:[0-9a-f]{64}.*\n)+)", lock, re.MULTILINE)
    locked = {_canonical(name): version for name, version, _ in entries}
    assert len(entries) == len(re.findall(r"^\w", lock, re.MULTILINE)), "an entry without a hash"
    too_old = {
        requirement: locked.get(_canonical(requirement))
        for requirement in wanted
        if _version(locked.get(_canonical(requirement), "")) < _version(requirement.partition(">=")[2])
    }
    assert too_old == {}


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text))
