"""Many sandboxes at once: in one directory, in a hundred, in several processes. None takes another's walls down."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.policy.compile import compile_policy
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.policy.model import SandboxPolicy

SOURCE = Path(__file__).parents[2] / "src"
#: Descriptors that a sandbox may take of its owner's while a command runs, and what this process has open besides.
EACH = 30
OURS = 200
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "init.defaultBranch",
    "GIT_CONFIG_VALUE_0": "main",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}
#: Tries every kind of protected place: missing files, a missing directory, an existing directory, an existing file.
ATTACK = """
{ echo evil >.mcp.json; mkdir .vscode; echo evil >.git/hooks/post-checkout; echo evil >>.git/config
  rm -f .claude; ln -s x .idea; mv .git moved; } 2>/dev/null
exec 2>&1
git status --porcelain --untracked-files=all
"""


def _policy(directory: Path) -> SandboxPolicy:
    settings = merge([Document(Layer.USER, "settings.json", {})])
    return compile_policy(settings, cwd=str(directory), home="/nonexistent")


def _git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "--no-optional-locks", *words],
        cwd=directory,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def tools_repository(tmp_path: Path) -> Path:
    project = tmp_path.resolve() / "project"
    project.mkdir()
    _git(project, "init", "--quiet")
    (project / ".git/hooks").mkdir(exist_ok=True)
    (project / "file").write_text("x\n")
    _git(project, "add", "-A")
    _git(project, "commit", "--quiet", "-m", "first")
    return project


def _protected(project: Path) -> dict[str, bytes]:
    """Return all that a command must not change, as it is on the host."""
    paths = [project / ".git/config", *sorted((project / ".git/hooks").iterdir())]
    return {str(path): path.read_bytes() for path in paths}


def test_control_without_a_sandbox_the_attack_succeeds(tools_repository: Path) -> None:
    before = _protected(tools_repository)
    subprocess.run(["bash", "-c", ATTACK.replace("mv .git moved", "true")], cwd=tools_repository, check=False)
    assert _protected(tools_repository) != before
    assert set(os.listdir(tools_repository)) > {".git", "file", ".mcp.json", ".vscode"}


def _in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - a thread's failure is this test's
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_ten_sandboxes_in_one_directory_come_and_go_and_every_protection_holds(tools_repository: Path) -> None:
    before = _protected(tools_repository)

    def live(number: int) -> None:
        for _ in range(1 + number % 3):
            with BlockingSandbox(_policy(tools_repository), environment=ENVIRONMENT) as sandbox:
                for _ in range(4):
                    done = sandbox.run(ATTACK, timeout=60)
                    assert (done.exit_code, done.stdout) == (0, b"")

    _in_threads(10, live)
    assert _protected(tools_repository) == before
    assert _git(tools_repository, "status", "--porcelain", "--ignored") == ""
    assert set(os.listdir(tools_repository)) == {".git", "file"}


def test_ten_sandboxes_in_one_directory_all_do_their_work(tools_repository: Path) -> None:
    def live(number: int) -> None:
        with BlockingSandbox(_policy(tools_repository), environment=ENVIRONMENT) as sandbox:
            for step in range(5):
                done = sandbox.run(f"echo {number} >work-{number}-{step}; cat work-{number}-{step}", timeout=60)
                assert (done.exit_code, done.stdout) == (0, b"%d\n" % number)

    _in_threads(10, live)
    made = {f"work-{number}-{step}" for number in range(10) for step in range(5)}
    assert set(os.listdir(tools_repository)) == made | {".git", "file"}


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _children() -> list[str]:
    """Return the processes that threads of this one have started; the threads of a loop's pool come and go."""
    found: list[str] = []
    for thread in os.listdir("/proc/self/task"):
        with suppress(FileNotFoundError):
            found += Path("/proc/self/task", thread, "children").read_text().split()
    return found


def test_a_hundred_sandboxes_in_a_hundred_directories_of_one_process(
    tmp_path: Path, descriptors: Callable[[int], None]
) -> None:
    descriptors(100 * EACH + OURS)
    root = tmp_path.resolve()
    before = _descriptors(), _children()

    async def live(number: int) -> list[bytes]:
        project = root / str(number)
        project.mkdir()
        async with Sandbox(_policy(project), environment=ENVIRONMENT) as sandbox:
            lines = ("pwd", f"echo {number} >made; cat made", "echo evil 2>/dev/null >.mcp.json || echo refused")
            return [(await sandbox.run(line, timeout=100)).stdout for line in lines]

    async def scene() -> list[list[bytes]]:
        return await asyncio.gather(*(live(number) for number in range(100)))

    said = asyncio.run(scene())
    assert said == [[b"%s\n" % os.fsencode(root / str(n)), b"%d\n" % n, b"refused\n"] for n in range(100)]
    assert {name for number in range(100) for name in os.listdir(root / str(number))} == {"made"}
    assert (_descriptors(), _children()) == before


def test_a_hundred_sandboxes_that_are_all_open_at_the_same_time(
    tmp_path: Path, descriptors: Callable[[int], None]
) -> None:
    descriptors(100 * EACH + OURS)
    root = tmp_path.resolve()
    before = _descriptors(), _children()

    async def scene() -> None:
        sandboxes = []
        for number in range(100):
            (root / str(number)).mkdir()
            sandboxes.append(Sandbox(_policy(root / str(number)), environment=ENVIRONMENT))
        try:
            await asyncio.gather(*(sandbox.open() for sandbox in sandboxes))
            done = await asyncio.gather(*(sandbox.run('basename "$PWD"; sleep 0.2') for sandbox in sandboxes))
        finally:
            await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
        assert [each.stdout for each in done] == [b"%d\n" % number for number in range(100)]

    asyncio.run(scene())
    assert (_descriptors(), _children()) == before


#: A process that opens a sandbox with ever more descriptors left; says whether it could, or why not.
SHORT = textwrap.dedent("""
    import os, resource, sys
    from stockade.errors import UnavailableError
    from stockade.policy.compile import compile_policy
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.settings.document import Document
    from stockade.settings.layer import Layer
    from stockade.settings.merge import merge
    policy = compile_policy(merge([Document(Layer.USER, "s", {})]), cwd=sys.argv[1], home=sys.argv[4])
    children = "/proc/self/task/%d/children" % os.getpid()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    def descriptors():
        return sorted(os.listdir("/proc/self/fd"))
    with BlockingSandbox(policy) as sandbox:  # what is imported later would need descriptors, too
        sandbox.run("true")
    for free in range(int(sys.argv[2])):
        before = descriptors()
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) - 1 + free, hard))
        try:
            with BlockingSandbox(policy) as sandbox:
                print(free, "open", flush=True)
                print(sandbox.run("echo ran").output, end="", flush=True)
                print(free, "ran", flush=True)
        except UnavailableError as error:
            print(free, error.message, flush=True)
            assert error.hint
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        assert descriptors() == before, (free, descriptors())
        assert open(children).read() == "", free
        places = [f"{place}/{name}" for place in sys.argv[3:] for name in os.listdir(place)]
        left = [place for place in places for _ in os.listdir(place)]
        assert left == [], (free, left)
""")


def test_a_process_that_is_short_of_descriptors_hears_so_in_words_and_nothing_is_left(tmp_path: Path) -> None:
    project, temporary, home = (tmp_path.resolve() / name for name in ("project", "temporary", "home"))
    for place in (project, temporary, home):
        place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", SHORT, str(project), str(EACH + 3), str(temporary), str(home)],
        env=ENVIRONMENT | {"PYTHONPATH": str(SOURCE), "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert os.listdir(project) == []
    lines = done.stdout.splitlines()
    refused = [line for line in lines if "no file descriptor left" in line or "Too many open files" in line]
    assert refused
    said = {line.partition(" ")[2] for line in lines} - {"", "open", "ran"}
    assert said == {line.partition(" ")[2] for line in refused}
    assert lines[-3:] == [f"{EACH + 2} open", "ran", f"{EACH + 2} ran"]


#: Another process with a sandbox of its own in the same directory: says when it is open, runs a line, ends.
OTHER = textwrap.dedent("""
    import sys
    from pathlib import Path
    from stockade.policy.compile import compile_policy
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.settings.document import Document
    from stockade.settings.layer import Layer
    from stockade.settings.merge import merge
    settings = merge([Document(Layer.USER, "settings.json", {})])
    policy = compile_policy(settings, cwd=sys.argv[1], home="/nonexistent")
    with BlockingSandbox(policy) as sandbox:
        print(sandbox.run(sys.argv[2]).stdout.decode(), flush=True)
        sys.stdin.read()
""")


def _other(directory: Path, line: str = "echo up") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(directory), line],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=ENVIRONMENT | {"PYTHONPATH": str(SOURCE)},
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize("end", ["gently", "by SIGKILL"])
@pytest.mark.parametrize("first", ["the other starts first", "this starts first"])
def test_a_sandbox_of_another_process_ends_and_this_ones_protections_hold(
    tools_repository: Path, end: str, first: str
) -> None:
    """The placeholders of both are the same names: whoever ends first must not remove them."""
    before = _protected(tools_repository)
    early = _other(tools_repository) if first == "the other starts first" else None
    with BlockingSandbox(_policy(tools_repository), environment=ENVIRONMENT) as sandbox:
        started = threading.Event()
        said: list[bytes] = []

        def run() -> None:
            # One command that lives through all of it, and attacks all the time.
            line = f"echo up; for i in $(seq 60); do {ATTACK} sleep 0.05; done"
            said.append(sandbox.run(line, timeout=100, on_output=lambda _: started.set()).stdout)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            assert started.wait(60)
            for other in [early or _other(tools_repository), _other(tools_repository)]:
                _finish(other, end)
                assert _git(tools_repository, "status", "--porcelain", "--ignored") == ""
        finally:
            thread.join()
        assert said == [b"up\n"]
        assert sandbox.run(ATTACK).stdout == b""
    assert _protected(tools_repository) == before
    with BlockingSandbox(_policy(tools_repository), environment=ENVIRONMENT):
        pass  # what a killed one left is cleaned by the next at the latest
    assert set(os.listdir(tools_repository)) == {".git", "file"}


def _finish(process: subprocess.Popen[str], end: str) -> None:
    if end == "by SIGKILL":
        process.kill()
    with process:
        process.communicate()
    assert process.returncode == (-9 if end == "by SIGKILL" else 0)
