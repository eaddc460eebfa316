"""Ordinary work that changes many files, made of what every machine has, so that it can be done anywhere and offline.

Files have the sizes and the contents of real ones: Python's own library is unpacked, cloned and installed, npm's own
packages are installed. Nothing but empty files would show what observing costs at its worst.

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
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from contender import MissingError
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

_REPOSITORY = Path(__file__).resolve().parent.parent
#: What is no library: other people's packages, and tests of the library, which not every system installs.
_LEFT_OUT = frozenset({"site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "turtledemo"})
_WHEEL_FILES = 30


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


def _run(words: list[str], folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()
        message = f"{words[0]} failed: {last[-1] if last else done.returncode}"
        raise MissingError(message)
    return done.stdout


def _library(count: int) -> list[Path]:
    """Return files of Python's own library, of which every machine has about a thousand."""
    root = Path(sysconfig.get_path("stdlib"))
    found = sorted(path for path in root.rglob("*.py") if _LEFT_OUT.isdisjoint(path.relative_to(root).parts))
    return found[:count]


def _files(folder: Path, count: int) -> None:
    root = Path(sysconfig.get_path("stdlib"))
    for file in _library(count):
        copy = folder / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def _archive(folder: Path, size: int) -> None:
    _files(folder / "files", size)
    _run(["tar", "-czf", "files.tar.gz", "files"], folder)


def _repository(folder: Path, size: int) -> None:
    repository = folder / "repository"
    _files(repository, size)
    _run(["git", "init", "-q", "-b", "main"], repository)
    _run(["git", "add", "."], repository)
    _run(["git", "-c", "user.name=n", "-c", "user.email=n@localhost", "commit", "-q", "-m", "all"], repository)


def _wheels(folder: Path, size: int) -> None:
    files = _library(size // 2)  # each of them is compiled, too
    for start in range(0, len(files), _WHEEL_FILES):
        name = f"package{start}"
        about = f"{name}-1.0.dist-info"
        modules = enumerate(files[start : start + _WHEEL_FILES])
        contents = {f"{name}/module{index}.py": file.read_text(encoding="utf-8") for index, file in modules}
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
    project = folder / "project"
    project.mkdir()
    wanted = {}
    for package in _own_packages(size):
        about = json.loads((package / "package.json").read_text(encoding="utf-8"))
        # Its own dependencies would have to be among them in the version it wants.
        about = {key: about[key] for key in ("name", "version", "main", "license") if key in about}
        wanted[about["name"]] = f"file:{package.name}.tgz"
        with tarfile.open(project / f"{package.name}.tgz", "w:gz") as archive:
            for file in sorted(path for path in package.rglob("*") if path.is_file()):
                text = json.dumps(about).encode() if file == package / "package.json" else file.read_bytes()
                entry = tarfile.TarInfo(f"package/{file.relative_to(package)}")
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text))
    (project / "package.json").write_text(json.dumps({"name": "project", "version": "1.0.0", "dependencies": wanted}))
    words = ["npm", "install", "--package-lock-only", "--offline", "--no-audit", "--no-fund", "--cache", "../cache"]
    _run(words, project)


def _own_packages(size: int) -> list[Path]:
    """Return packages that npm itself is made of, with about so many files."""
    root = Path(_run(["npm", "root", "-g"], _REPOSITORY).splitlines()[-1]) / "npm" / "node_modules"
    found: list[Path] = []
    files = 0
    for about in sorted(root.glob("*/package.json")):
        if files < size:
            found.append(about.parent)
            files += sum(path.is_file() for path in about.parent.rglob("*"))
    if not found:
        message = f"npm has no packages in {root}"
        raise MissingError(message)
    return found


def _suite(folder: Path, size: int) -> None:
    for number in range(max(1, size // 75)):
        file = folder / "suite" / f"test_file{number}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(_SUITE_HEAD + "".join(_TEST.format(number=index) for index in range(10)))


_SUITE_HEAD = "import json\nimport re\n\n"
#: A test that thinks for some milliseconds, and writes and reads a file.
_TEST = """
def test_{number}(tmp_path):
    rows = [{{"number": row * {number}, "text": f"row {{row}} of {number}"}} for row in range(500)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    again = json.loads((tmp_path / "rows.json").read_text())
    found = [re.sub("[aeiou]", "", row["text"]).split() for row in again]
    assert sorted(map(tuple, found)) == sorted({{tuple(words) for words in found}})
    assert again == rows


"""


def _sources(folder: Path, size: int) -> None:
    count = max(2, size // 75)
    sources = folder / "sources"
    sources.mkdir()
    for number in range(count):
        (sources / f"part{number}.c").write_text(_HEAD + "".join(_function(number, index) for index in range(40)))
    (sources / "main.c").write_text("int part0_0(int *, int); int main(void) { int n = 0; return part0_0(&n, 1); }\n")
    objects = " ".join(["main.o", *(f"part{number}.o" for number in range(count))])
    (sources / "Makefile").write_text(f"CFLAGS = -O2\nall: {objects}\n\t$(CC) -o all {objects}\n")


_HEAD = "#include <errno.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n"


def _function(part: int, index: int) -> str:
    return f"""
int part{part}_{index}(int *numbers, int count) {{
    int total = {index};
    for (int at = 0; at < count; at++) {{
        if (numbers[at] % {index + 2} == 0) total += numbers[at] * {part + 1};
        else if (numbers[at] > total) total ^= numbers[at] >> {index % 7};
        else numbers[at] = total - at;
    }}
    char text[64];
    snprintf(text, sizeof text, "%d of %d: %d", {index}, {part}, total);
    return strlen(text) > 8 ? total : errno;
}}
"""


CHORES = (
    Chore("tar", ("tar",), _archive, "tar -xzf $INPUT/files.tar.gz"),
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
