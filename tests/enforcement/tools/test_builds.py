"""Compilers, interpreters and package managers work inside, with no network and with a home that is not writable."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import sys
import tarfile
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.tools.conftest import Bench

MAKEFILE = """\
program: main.o part.o
\t$(CC) -o $@ $^
%.o: %.c
\t$(CC) -c -o $@ $<
clean:
\trm -f *.o program
"""
MAIN = '#include <stdio.h>\nint part(void);\nint main(void) { printf("%d\\n", part()); return 0; }\n'


def test_make_and_gcc_build_a_program_that_runs(tools_bench: Bench) -> None:
    project = tools_bench.project
    (project / "Makefile").write_text(MAKEFILE)
    (project / "main.c").write_text(MAIN)
    (project / "part.c").write_text("int part(void) { return 42; }\n")
    assert tools_bench.good("make --silent -j4 && ./program") == "42\n"
    assert tools_bench.good("make --silent clean && ls -I refs") == "Makefile\nmain.c\npart.c\n"


def _wheel(directory: Path, name: str = "tiny") -> Path:
    """Write a wheel with one module and one script."""
    files = {
        f"{name}.py": b"def main():\n    print('tiny runs')\n",
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{name}-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}-1.0.dist-info/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n".encode(),
    }
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files.items())
    files[f"{name}-1.0.dist-info/RECORD"] = f"{record}{name}-1.0.dist-info/RECORD,,\n".encode()
    wheel = directory / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return wheel


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def test_a_virtual_environment_and_pip_install_of_a_local_wheel(tools_bench: Bench) -> None:
    wheel = _wheel(tools_bench.home)
    tools_bench.good(f"{tools_bench.python} -m venv env")
    done = tools_bench.run(f"env/bin/pip install --no-index --disable-pip-version-check {wheel}")
    assert (done.exit_code, done.stderr) == (0, b"")
    assert tools_bench.good("env/bin/tiny") == "tiny runs\n"
    cache = tools_bench.good("env/bin/pip cache dir")
    assert cache == tools_bench.good('echo "$XDG_CACHE_HOME/pip"')
    assert cache.startswith(f"{tools_bench.root}/caches/stockade-projects/project-")
    tools_bench.good("env/bin/pip uninstall --yes --quiet tiny")
    assert os.listdir(tools_bench.home) == [wheel.name]


def test_pip_builds_from_source_without_the_network(tools_bench: Bench) -> None:
    """Build isolation makes temporary environments of its own; the backend here is of the project itself."""
    source = tools_bench.project / "source"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    wheel = _wheel(tools_bench.project)
    (source / "backend.py").write_text(
        "import shutil\n"
        "def build_wheel(directory, config=None, metadata=None):\n"
        f"    shutil.copy({str(wheel)!r}, directory)\n"
        f"    return {wheel.name!r}\n"
    )
    tools_bench.good(f"{tools_bench.python} -m venv env")
    done = tools_bench.run("env/bin/pip install --no-index --disable-pip-version-check ./source && env/bin/tiny")
    assert done.stderr == b""
    assert done.stdout.endswith(b"tiny runs\n")


def test_pip_without_the_network_fails_and_does_not_hang(tools_bench: Bench) -> None:
    tools_bench.good(f"{tools_bench.python} -m venv env")
    done = tools_bench.run("env/bin/pip install --retries 0 --timeout 5 tiny", timeout=60)
    assert done.exit_code == 1
    assert done.limit is None


def _package(directory: Path) -> Path:
    """Write the tarball of an npm package with an install script."""
    manifest = {
        "name": "tiny",
        "version": "1.0.0",
        "main": "index.js",
        "bin": {"tiny": "index.js"},
        "scripts": {"postinstall": "node -e \"require('fs').writeFileSync('built','')\""},
    }
    files = {
        "package/package.json": json.dumps(manifest).encode(),
        "package/index.js": b"#!/usr/bin/env node\nconsole.log('tiny runs')\n",
    }
    path = directory / "tiny-1.0.0.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755
            archive.addfile(entry, BytesIO(content))
    return path


def test_npm_installs_a_local_tarball_and_runs_its_scripts(tools_bench: Bench) -> None:
    package = _package(tools_bench.home)
    manifest = {"name": "app", "version": "1.0.0", "private": True, "scripts": {"test": "tiny"}}
    (tools_bench.project / "package.json").write_text(json.dumps(manifest))
    done = tools_bench.run(f"npm install --offline --no-audit --no-fund {package}")
    assert done.exit_code == 0, done.stderr
    assert b"EROFS" not in done.stderr + done.stdout
    assert (tools_bench.project / "node_modules/tiny/built").exists()
    assert tools_bench.good("npm test --silent") == "tiny runs\n"
    assert tools_bench.good("npx --offline tiny") == "tiny runs\n"
    assert tools_bench.good("rm -r node_modules && npm ci --offline --no-audit --no-fund --silent && ls -I refs") == (
        "node_modules\npackage-lock.json\npackage.json\n"
    )
    assert os.listdir(tools_bench.home) == [package.name]


def test_npm_without_the_network_fails_and_says_so_in_a_log_that_it_could_write(tools_bench: Bench) -> None:
    done = tools_bench.run("npm install --fetch-retries=0 --no-audit --no-fund no-such-package-anywhere", timeout=60)
    assert done.exit_code not in (0, None)
    assert b"A complete log of this run can be found in" in done.stderr
    assert os.listdir(tools_bench.home) == []


def test_node_runs_with_workers_children_and_a_compile_cache(tools_bench: Bench) -> None:
    (tools_bench.project / "main.js").write_text(
        "const { Worker, isMainThread, parentPort } = require('worker_threads');\n"
        "const { execFileSync, fork } = require('child_process');\n"
        "if (process.argv[2] === 'child') { process.send('child'); process.disconnect(); }\n"
        "else if (!isMainThread) parentPort.postMessage('worker');\n"
        "else {\n"
        "  console.log(execFileSync('echo', ['ran']).toString().trim());\n"
        "  new Worker(__filename).on('message', (text) => {\n"
        "    console.log(text);\n"
        "    fork(__filename, ['child']).on('message', (text) => console.log(text));\n"
        "  });\n"
        "}\n"
    )
    assert tools_bench.good("node main.js") == "ran\nworker\nchild\n"


def test_pytest_runs_inside(tools_bench: Bench) -> None:
    (tools_bench.project / "test_it.py").write_text(
        "def test_it(tmp_path):\n    (tmp_path / 'file').write_text('x')\n    assert tmp_path.exists()\n"
    )
    done = tools_bench.run(f"{sys.executable} -m pytest -q --color=no")
    assert (done.exit_code, done.stderr) == (0, b"")
    assert b"1 passed" in done.stdout
    assert b"warning" not in done.stdout


COUNT = 20_000


def test_tar_packs_and_unpacks_twenty_thousand_files(tools_bench: Bench) -> None:
    tools_bench.good(
        f'mkdir many && cd many && {tools_bench.python} -c "\nimport os\n'
        f"for n in range({COUNT}):\n"
        "    os.makedirs(str(n % 100), exist_ok=True)\n"
        "    open(f'{n % 100}/{n}', 'w').write(str(n))\n\""
    )
    tools_bench.good("tar -cf many.tar many && mkdir copy && tar -C copy -xf many.tar && diff -r many copy/many")
    assert tools_bench.good("find copy -type f | wc -l").strip() == str(COUNT)
    tools_bench.good("rm -r many copy many.tar")


SQLITE = """
import sqlite3
database = sqlite3.connect('data.db')
print(database.execute('pragma journal_mode=wal').fetchone()[0])
database.execute('create table if not exists t (x)')
with database:
    database.executemany('insert into t values (?)', [(n,) for n in range(1000)])
other = sqlite3.connect('data.db')
print(other.execute('select count(*) from t').fetchone()[0])
"""


def test_a_sqlite_database_with_a_write_ahead_log(tools_bench: Bench) -> None:
    (tools_bench.project / "main.py").write_text(SQLITE)
    assert tools_bench.good(f"{tools_bench.python} main.py && {tools_bench.python} main.py") == (
        "wal\n1000\nwal\n2000\n"
    )


PROCESSES = {
    "a pool by fork": "with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(abs, [-1, 2]))",
    "a pool by spawn": "with multiprocessing.get_context('spawn').Pool(2) as pool: print(pool.map(abs, [-1, 2]))",
    "an executor": "with ProcessPoolExecutor(2) as pool: print(list(pool.map(abs, [-1, 2])))",
    "a queue and a lock": (
        "queue, lock = multiprocessing.Queue(), multiprocessing.Lock()\n"
        "    process = multiprocessing.Process(target=queue.put, args=([1, 2],))\n"
        "    process.start()\n"
        "    with lock: print(queue.get())\n"
        "    process.join()"
    ),
    "shared memory": (
        "memory = shared_memory.SharedMemory(create=True, size=2)\n"
        "    memory.buf[:2] = bytes([1, 2])\n"
        "    other = shared_memory.SharedMemory(memory.name)\n"
        "    print(list(other.buf[:2]))\n"
        "    memory.unlink()"
    ),
}


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in PROCESSES.items()])
def test_multiprocessing(tools_bench: Bench, body: str) -> None:
    (tools_bench.project / "main.py").write_text(
        "import multiprocessing\nfrom concurrent.futures import ProcessPoolExecutor\n"
        f"from multiprocessing import shared_memory\nif __name__ == '__main__':\n    {body}\n"
    )
    assert tools_bench.good(f"{tools_bench.python} -W ignore main.py") == "[1, 2]\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("with multiprocessing.Manager() as manager: print(list(manager.list([1, 2])))", id="a manager"),
        pytest.param(
            "with multiprocessing.get_context('forkserver').Pool(2) as pool: print(pool.map(abs, [-1, 2]))",
            id="a pool by forkserver",
        ),
    ],
)
@pytest.mark.parametrize("allowed", [False, True])
def test_multiprocessing_with_listening_sockets_works(tools_bench: Bench, body: str, *, allowed: bool) -> None:
    (tools_bench.project / "main.py").write_text(f"import multiprocessing\nif __name__ == '__main__':\n    {body}\n")
    tools_bench.sandbox(network__allowAllUnixSockets=allowed)
    done = tools_bench.run(f"{tools_bench.python} main.py", timeout=30)
    assert (done.exit_code, done.stdout, done.stderr, done.violations) == (0, b"[1, 2]\n", b"", ())


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("npm config set fund false", id="npm config"),
        pytest.param("mkdir -p ~/.config/tool", id="mkdir"),
        pytest.param("echo x >~/.bash_history", id="history"),
    ],
)
def test_what_insists_on_writing_to_the_home_is_told_so(tools_bench: Bench, line: str) -> None:
    done = tools_bench.run(line)
    assert done.exit_code not in (0, None)
    assert b"read-only file system" in done.stderr.lower() or b"EROFS" in done.stderr
    assert os.listdir(tools_bench.home) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("python3 -c 'import readline, ssl, ctypes; print(1)'", id="python"),
        pytest.param("node -e 'console.log(1)'", id="node"),
        pytest.param("npm exec --offline -c 'echo 1'", id="npm exec"),
        pytest.param("bash -ic 'echo 1' 2>/dev/null", id="an interactive bash"),
        pytest.param("git ls-remote . >/dev/null 2>&1 || echo 1", id="git outside a repository"),
        pytest.param("printf 'int main(void){return 0;}' | gcc -x c - -o \"$TMPDIR/a\" && echo 1", id="gcc"),
        pytest.param("make --version >/dev/null && echo 1", id="make"),
    ],
)
def test_what_can_do_without_a_writable_home_does(tools_bench: Bench, line: str) -> None:
    assert tools_bench.good(line) == "1\n"
    assert os.listdir(tools_bench.home) == []


def test_java_compiles_and_runs(tools_bench: Bench) -> None:
    (tools_bench.project / "Main.java").write_text(
        'class Main { public static void main(String[] a) { System.out.println("java runs"); } }\n'
    )
    done = tools_bench.run("javac Main.java && java -Xshare:auto Main")
    assert (done.exit_code, done.stdout, done.stderr) == (0, b"java runs\n", b"")
