"""Ordinary work that changes many files: what it needs is generated, so that it is the same everywhere and offline.

A chore is prepared once in a directory of its own and then done again and again, each time in an empty directory; its
line finds what was prepared in ``$INPUT``.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

from contender import MissingError
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_FOLDER = 15
_TEXT = "a line of some length, as there are many\n" * 40


class Chore(Value):
    """One kind of work: its name, the programs that it needs, what prepares it, and the line that does it."""

    name: str
    needs: tuple[str, ...]
    prepare: Callable[[Path, int], None]
    line: str

    def require(self) -> None:
        """Raise if a program is missing."""
        for program in self.needs:
            if shutil.which(program) is None:
                message = f"there is no {program}"
                raise MissingError(message)


def _run(words: list[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()
        message = f"{words[0]} failed: {last[-1] if last else done.returncode}"
        raise MissingError(message)


def _files(folder: Path, count: int) -> None:
    for number in range(count):
        file = folder / f"folder{number // _FOLDER}" / f"file{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n{_TEXT}")


def _archive(folder: Path, size: int) -> None:
    _files(folder / "files", size)
    _run(["tar", "-cf", "files.tar", "files"], folder)


def _repository(folder: Path, size: int) -> None:
    repository = folder / "repository"
    _files(repository, size)
    _run(["git", "init", "-q", "-b", "main"], repository)
    _run(["git", "add", "."], repository)
    _run(["git", "-c", "user.name=n", "-c", "user.email=n@localhost", "commit", "-q", "-m", "all"], repository)


def _wheels(folder: Path, size: int) -> None:
    each = 30
    for number in range(max(1, size // each)):
        name = f"package{number}"
        about = f"{name}-1.0.dist-info"
        contents = {f"{name}/module{index}.py": f"value = {index}\n{'# text' * 100}\n" for index in range(each)}
        contents[f"{name}/__init__.py"] = ""
        contents[f"{about}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        contents[f"{about}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        record = "".join(f"{path},sha256={_digest(text)},{len(text)}\n" for path, text in contents.items())
        contents[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n"
        wheel = folder / "wheels" / f"{name}-1.0-py3-none-any.whl"
        wheel.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, text in contents.items():
                archive.writestr(path, text)
    _run([sys.executable, "-m", "venv", "environment"], folder)


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def _packages(folder: Path, size: int) -> None:
    each = 30
    project = folder / "project"
    project.mkdir()
    names = [f"package{number}" for number in range(max(1, size // each))]
    for name in names:
        contents = {f"lib/module{index}.js": f"module.exports = {index}; // {'text' * 100}\n" for index in range(each)}
        contents["package.json"] = json.dumps({"name": name, "version": "1.0.0"})
        with tarfile.open(project / f"{name}.tgz", "w:gz") as archive:
            for path, text in contents.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
    wanted = {name: f"file:{name}.tgz" for name in names}
    (project / "package.json").write_text(json.dumps({"name": "project", "version": "1.0.0", "dependencies": wanted}))
    words = ["npm", "install", "--package-lock-only", "--offline", "--no-audit", "--no-fund", "--cache", "../cache"]
    _run(words, project)


def _suite(folder: Path, size: int) -> None:
    tests = "".join(f"def test_{number}(tmp_path):\n    (tmp_path / 'x').write_text('x')\n" for number in range(10))
    for number in range(max(1, size // 75)):
        file = folder / "suite" / f"test_file{number}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(tests)


def _sources(folder: Path, size: int) -> None:
    count = max(2, size // 25)
    sources = folder / "sources"
    sources.mkdir()
    for number in range(count):
        body = f'#include <stdio.h>\nint part{number}(int n) {{ printf("%d", n); return n * {number}; }}\n'
        (sources / f"part{number}.c").write_text(body)
    (sources / "main.c").write_text("int part0(int); int main(void) { return part0(0); }\n")
    objects = " ".join(["main.o", *(f"part{number}.o" for number in range(count))])
    (sources / "Makefile").write_text(f"all: {objects}\n\t$(CC) -o all {objects}\n")


CHORES = (
    Chore("tar", ("tar",), _archive, "tar -xf $INPUT/files.tar"),
    Chore("git clone", ("git",), _repository, "git clone -q file://$INPUT/repository clone"),
    Chore(
        "pip install",
        (),
        _wheels,
        "$INPUT/environment/bin/python -m pip install -q --no-index --no-cache-dir --disable-pip-version-check "
        "--root-user-action=ignore --target target $INPUT/wheels/*.whl",
    ),
    Chore(
        "npm ci",
        ("npm",),
        _packages,
        "cp -r $INPUT/project . && cd project && npm ci --offline --no-audit --no-fund "
        "--no-update-notifier --silent --cache ../cache",
    ),
    Chore(
        "pytest",
        (),
        _suite,
        f"cp -r $INPUT/suite . && {sys.executable} -m pytest -q -p no:cacheprovider --rootdir . --basetemp t suite",
    ),
    Chore("make", ("make", "cc"), _sources, "cp -r $INPUT/sources . && make -s -j2 -C sources"),
)
