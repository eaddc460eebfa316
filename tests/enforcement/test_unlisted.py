"""An empty project looks empty: placeholders are not listed, so that whatever asks for an empty directory goes on."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.slow_memory import SLOW_MEMORY

from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount
from stockade.platforms.linux.program import name

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground

    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.blocking_process import BlockingProcess

#: Ways to say how many names are in the working directory.
COUNTS = {
    "ls": "ls -A | wc -l",
    "find": "find . -mindepth 1 | wc -l",
    "listdir": "python3 -c 'import os; print(len(os.listdir()))'",
    "scandir": "python3 -c 'import os; print(len(list(os.scandir())))'",
    "a descriptor": "python3 -c 'import os; print(len(os.listdir(os.open(\".\", os.O_RDONLY))))'",
    "the whole path": 'ls -A "$PWD" | wc -l',
    "by /proc": "ls -A /proc/self/cwd/ | wc -l",
    "os.walk": "python3 -c 'import os; print(sum(len(d) + len(f) for _, d, f in os.walk(\".\")))'",
    "shell patterns": "bash -c 'shopt -s dotglob nullglob; set -- *; echo $#'",
    "zsh's patterns": "zsh -c 'set -- *(DN); echo $#'",
    "node": 'node -e \'console.log(require("fs").readdirSync(".").length)\'',
    "node, by promise": 'node -e \'require("fs").promises.readdir(".").then(n => console.log(n.length))\'',
    "node, step by step": 'node -e \'let d = require("fs").opendirSync("."), n = 0; while (d.readSync()) n++; '
    "console.log(n)'",
    "du": "du -a . | tail -n +2 | wc -l",
    "tar": "tar cf - . | tar tf - | tail -n +2 | wc -l",
}

#: Calls as they are, from threads that do nothing else, some with descriptors and memory that come and go.
HOSTILE = """
import ctypes, mmap, os, platform, random, signal, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
calls = [217, 78] if platform.machine() == "x86_64" else [61]
page = mmap.mmap(-1, 65536 + 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
# What is written beyond the end must not hit memory of this program's own, which would end by a signal.
libc.mprotect(ctypes.c_void_p(start + 65536), ctypes.c_size_t(4096), 0)
until = time.monotonic() + 1.5
shared = os.open(".", os.O_RDONLY)

def list_at_random(seed):
    chance = random.Random(seed)
    while time.monotonic() < until:
        descriptor = chance.choice([shared, shared, 99, -1, 1 << 31, os.open(".", os.O_RDONLY)])
        address = chance.choice([start, start, 0, 8, 1 << 47, (1 << 64) - 8, start + 65530])
        count = chance.choice([0, 1, 24, 32, 280, 4096, 65536, 0xFFFFFFFF, (1 << 64) - 1])
        libc.syscall(ctypes.c_long(chance.choice(calls)), ctypes.c_long(descriptor), ctypes.c_void_p(address),
                     ctypes.c_ulong(count))
        if descriptor not in (shared, 99, -1, 1 << 31):
            os.close(descriptor)

def move():
    while time.monotonic() < until:
        os.lseek(shared, 0, os.SEEK_SET)
        libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(4096), random.choice([1, 3]))

def die():
    while time.monotonic() < until:
        child = os.fork()
        if child == 0:
            while True:
                os.listdir(".")
        time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

threads = [threading.Thread(target=list_at_random, args=(seed,)) for seed in range(4)]
threads += [threading.Thread(target=move), threading.Thread(target=die)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(os.listdir("."))
"""

#: Whoever writes into its memory sleeps.
SLOW = (
    SLOW_MEMORY
    + """
changing = threading.Thread(target=change)
changing.start()
found = [os.listdir(".") for _ in range(10)]
stopped.set()
changing.join()
print(found == [[]] * 10)
"""
)


def _said(sandbox: BlockingSandbox, line: str, *, status: int = 0) -> str:
    done = sandbox.run(line)
    assert (done.exit_code, done.stderr) == (status, b"")
    return done.stdout.decode()


def _end(process: BlockingProcess) -> str:
    assert process.stdout is not None
    assert process.stderr is not None
    said, errors = process.stdout.read(), process.stderr.read()
    assert (process.wait().exit_code, errors) == (0, b"")
    return said.decode()


def _names(sandbox: BlockingSandbox) -> list[str]:
    return _said(sandbox, "ls -A").split()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, make_ground: object) -> BlockingSandbox:
    """A sandbox around a project that stays empty."""
    ground: Ground = make_ground(tmp_path_factory.mktemp("ground").resolve() / "ground")  # type: ignore[operator]
    return ground.sandbox()


@pytest.mark.parametrize("way", COUNTS)
def test_an_empty_project_looks_empty(empty: BlockingSandbox, way: str) -> None:
    assert _said(empty, COUNTS[way]).strip() == "0"


def test_the_host_sees_what_is_there(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with sandbox.spawn("ls -A; echo ready; exec sleep 60") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert ".mcp.json" in os.listdir(ground.project)


def test_a_held_name_is_there_all_the_same(empty: BlockingSandbox) -> None:
    """It is an empty directory that nothing can be put into, nor in the place of."""
    line = "ls -d .mcp.json; (echo x >.mcp.json || mkdir .mcp.json/x || rmdir .mcp.json) 2>/dev/null || echo refused"
    assert _said(empty, line) == ".mcp.json\nrefused\n"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_git_clone_takes_the_directory_for_empty(ground: Ground, scheme: str) -> None:
    source = ground.outside / "source"
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    author = ["-c", "user.name=n", "-c", "user.email=e"]
    (source / "cloned").touch()
    subprocess.run(["git", "add", "cloned"], cwd=source, check=True)
    subprocess.run(["git", *author, "commit", "-qm", "first"], cwd=source, check=True)
    (ground.project / "full").mkdir()
    (ground.project / "full" / "file").touch()
    assert b"is not an empty directory" in ground.bare(f"git clone {source} full").stderr
    (ground.project / "full" / "file").unlink()
    (ground.project / "full").rmdir()
    sandbox = ground.sandbox()
    assert _said(sandbox, f"git clone -q {scheme}{source} . && git log --format=%s && ls") == "first\ncloned\n"
    sandbox.close()
    assert sorted(os.listdir(ground.project)) == [".git", "cloned"]
    assert ground.bare("git log --format=%s; git status --porcelain").stdout == b"first\n"


def test_what_a_command_makes_is_listed_at_once(ground: Ground) -> None:
    sandbox = ground.sandbox()
    line = "touch a .b; mkdir -p src/refs; ls -A; ls -A src; rm -r a .b src; ls -A"
    assert _said(sandbox, line).split() == [".b", "a", "src", "refs"]


def test_everything_that_is_listed_can_be_removed(ground: Ground) -> None:
    sandbox = ground.sandbox()
    line = "touch a .b; mkdir -p c/.vscode; rm -rf ./* .[!.]*; ls -A; echo rest; find . -mindepth 1 -delete"
    assert _said(sandbox, line) == "rest\n"
    assert os.path.isdir(ground.project)


def test_the_project_itself_cannot_be_removed(ground: Ground) -> None:
    done = ground.sandbox().run('touch a; rm -rf "$PWD"; ls -A; rm -rf ./')
    assert done.stdout == b""
    said = done.stderr.decode().splitlines()
    assert len(said) == 2
    assert "cannot remove" in said[0]
    assert "refusing" in said[1]


def test_a_project_that_has_filled_is_listed_by_the_kernel_from_the_next_command_on(ground: Ground) -> None:
    sandbox = ground.sandbox()
    assert _said(sandbox, "touch file; ls -A") == "file\n"
    assert {".mcp.json", "file"} <= set(_names(sandbox))
    assert _said(sandbox, "rm file") == ""
    assert _names(sandbox) == []


def test_a_project_that_was_not_empty_is_listed_as_it_is(ground: Ground) -> None:
    (ground.project / "file").touch()
    sandbox = ground.sandbox()
    assert {".mcp.json", "file"} <= set(_names(sandbox))


def test_an_empty_repository_is_as_good_as_empty(ground: Ground) -> None:
    subprocess.run(["git", "init", "-q", str(ground.project)], check=True)
    sandbox = ground.sandbox()
    assert _names(sandbox) == [".git"]
    assert "config" in _said(sandbox, "ls -A .git").split()


@pytest.mark.parametrize(
    ("settings", "observe", "hidden"),
    [
        pytest.param({}, "on", True, id="observed fully"),
        pytest.param({}, "off", True, id="not observed, but somebody decides about connections"),
        pytest.param({"network__allowAllUnixSockets": True}, "auto", True, id="all unix sockets"),
        pytest.param({"network__allowAllUnixSockets": True}, "off", False, id="nobody is there to answer"),
    ],
)
def test_names_are_listed_where_nobody_can_leave_them_out(
    ground: Ground, settings: dict[str, bool], observe: str, *, hidden: bool
) -> None:
    sandbox = ground.sandbox(observe=observe, **settings)  # type: ignore[arg-type] # one of its three words
    assert (_names(sandbox) == []) is hidden
    assert (".mcp.json" in _names(sandbox)) is not hidden


def test_hostile_calls_harm_nobody(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with sandbox.spawn(["python3", "-c", HOSTILE]) as one, sandbox.spawn(["python3", "-c", HOSTILE]) as other:
        assert {_said(sandbox, "ls -A; cd $TMPDIR; mkdir x; rmdir x; echo works") for _ in range(5)} == {"works\n"}
        assert [_end(process) for process in (one, other)] == ["[]\n"] * 2
    assert _names(sandbox) == []


def test_a_command_that_makes_the_supervisor_wait_is_listed_for_as_well(ground: Ground) -> None:
    sandbox = ground.sandbox()
    with sandbox.spawn(["python3", "-c", SLOW]) as slow:
        assert _names(sandbox) == []
        assert _end(slow) == "True\n"


def test_a_held_directory_is_listed_once_commands_see_something_in_it(tmp_path: Path) -> None:
    """As the commands see it: here another directory is mounted over the one that is on the disk."""
    root, staging = tmp_path / "root", tmp_path / "staging"
    for path in (root / ".git", root / ".vscode", staging):
        path.mkdir(parents=True)
    (root / ".vscode" / "on-the-host").touch()
    mounts = (
        Mount("writable", str(root)),
        Mount("writable", str(root / ".git"), source=str(staging)),
        Mount("temporary", str(root / ".vscode")),
    )
    unlisted = ((str(root), (".git", ".vscode")),)
    jail = Jail.start()
    try:
        jail.build(JailSpec(mounts, confinement=name(unlisted=True), unlisted=unlisted))
        jail.wait_ready()
        line = "ls -A; echo >.git/HEAD; ls -A; rm .git/HEAD; ls -A; mkdir .vscode/x; ls -A"
        out = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
        jail.run(Request(("sh", "-c", line), {"PATH": os.defpath}, str(root)), (0, out, out))
        os.close(out)
        assert isinstance(jail.receive(), Ended)
    finally:
        jail.close()
    assert (tmp_path / "out").read_text().split() == [".git", ".vscode"]
