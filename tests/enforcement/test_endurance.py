"""A session that runs thousands of commands holds as much at its end as at its beginning.

A thousand by default; STOCKADE_ENDURANCE sets another number.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.policy.compile import compile_policy
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.policy.model import SandboxPolicy

COMMANDS = int(os.environ.get("STOCKADE_ENDURANCE", "1000"))
#: Enough for caches and the interpreter's arenas to have come to rest.
WARM_UP = 100
#: As much room for descriptors as eight commands at a time may need at some moment; a leak takes several times that.
_USUAL_ROOM = 128
#: A launcher keeps some copies of its mounts for the next commands, more or fewer as they come.
MORE_DESCRIPTORS = 10
#: Less than a process more, and with thousands of commands less than a few hundred bytes for each.
MORE_MEMORY = 3 << 19
PATIENCE = 20.0
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent"}
#: Each leaves something for the session to clean: processes, files, output, a signal, a status.
LINES = (
    "true",
    "exit 3",
    "sleep 1000 &",
    "kill -9 $$",
    'touch "$TMPDIR/file"; rm "$TMPDIR/file"',
    "head -c 100000 /dev/zero",
    "(setsid sleep 1000 >/dev/null 2>&1 &)",
    "echo evil >.mcp.json",
    "cat",
)


class Holding(Value):
    """What the owner and the helpers of its session hold, in the order of their birth."""

    descriptors: tuple[int, ...]
    memory: tuple[int, ...]
    files: tuple[str, ...]

    def is_no_more_than(self, other: Holding) -> bool:
        """Tell whether nothing has grown since ``other``, and no process has been added."""
        return (
            len(self.descriptors) == len(other.descriptors)
            and all(a - b <= MORE_DESCRIPTORS for a, b in zip(self.descriptors, other.descriptors, strict=True))
            and all(a - b <= MORE_MEMORY for a, b in zip(self.memory, other.memory, strict=True))
            and self.files == other.files
        )


def _policy(directory: Path) -> SandboxPolicy:
    settings = merge([Document(Layer.USER, "settings.json", {})])
    return compile_policy(settings, cwd=str(directory), home="/nonexistent")


def _descendants(pid: int) -> list[int]:
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    # A process that is dead but not yet reaped has no such line.
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def _descriptors(pid: int) -> int:
    """Count them; what a user may not look into still shows the size of its table."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        # The room that its table has ever had. On a busy machine many commands are on their way out at the same moment.
        return max(_USUAL_ROOM, _status(pid, "FDSize"))


_others: set[int] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Know the processes that other tests of this run keep: servers, whose memory is their own affair."""
    _others.clear()
    while True:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one ended while it was looked at
            _others.update(_descendants(os.getpid()))
            return


def _holding(directories: tuple[str, ...]) -> Holding:
    processes = (os.getpid(), *(pid for pid in _descendants(os.getpid()) if pid not in _others))
    return Holding(
        descriptors=tuple(_descriptors(pid) for pid in processes),
        # Of the owner, which is the test run itself, memory says nothing.
        memory=tuple(_status(pid, "VmRSS") << 10 for pid in processes[1:]),
        files=tuple(name for directory in directories for name in sorted(os.listdir(directory))),
    )


def _rested(directories: tuple[str, ...]) -> Holding:
    """Return what is held once it stays the same: the next command's first process is made in the background."""
    held, since, deadline = None, 0.0, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            now: Holding | None = _holding(directories)
        except (FileNotFoundError, ProcessLookupError):
            now = None
        if now is None or now != held:
            held, since = now, time.monotonic()
        elif time.monotonic() - since > 0.2:
            return now
        time.sleep(0.02)
    pytest.fail(f"does not come to rest: {held}")


def _commands(count: int, run: Callable[[str], None]) -> None:
    for number in range(count):
        run(LINES[number % len(LINES)])


@pytest.mark.timeout(120 + COMMANDS)
def test_one_command_after_another(tmp_path: Path) -> None:
    project = tmp_path.resolve()
    outside = _rested((str(project),))
    with BlockingSandbox(_policy(project), environment=ENVIRONMENT) as sandbox:
        directories = (sandbox.temporary,)

        def run(line: str) -> None:
            assert sandbox.run(line, timeout=60).limit is None

        _commands(WARM_UP, run)
        early = _rested(directories)
        _commands(COMMANDS, run)
        late = _rested(directories)
        assert late.is_no_more_than(early), f"{early}\n{late}"
        assert late.files == ()
    assert _rested((str(project),)) == outside


@pytest.mark.timeout(120 + COMMANDS)
def test_eight_commands_at_a_time(tmp_path: Path) -> None:
    project = tmp_path.resolve()
    outside = _rested((str(project),))

    async def scene() -> None:
        async with Sandbox(_policy(project), environment=ENVIRONMENT) as sandbox:
            directories = (sandbox.temporary,)

            async def worker(first: int, count: int) -> None:
                for number in range(count):
                    await sandbox.run(LINES[(first + number) % len(LINES)].replace("file", f"file{first}"), timeout=60)

            async def crowd(count: int) -> Holding:
                await asyncio.gather(*(worker(first, count // 8) for first in range(8)))
                return await asyncio.to_thread(_rested, directories)

            early = await crowd(WARM_UP)
            late = await crowd(COMMANDS)
            assert late.is_no_more_than(early), f"{early}\n{late}"

    asyncio.run(scene())
    assert _rested((str(project),)).is_no_more_than(outside)


def test_walls_that_are_built_anew_again_and_again(tmp_path: Path) -> None:
    """A protected file that appears or goes makes another plan, and so another jail."""
    project = tmp_path.resolve()
    (project / "sub").mkdir()
    with BlockingSandbox(_policy(project), environment=ENVIRONMENT) as sandbox:

        def change(times: int) -> Holding:
            for _ in range(times):
                assert sandbox.run("echo x >sub/.bashrc", timeout=60).exit_code == 0
                assert sandbox.run("echo y >sub/.bashrc", timeout=60).exit_code == 1
                (project / "sub/.bashrc").unlink()
            return _rested((sandbox.temporary,))

        early = change(5)
        late = change(40)
        assert late.is_no_more_than(early), f"{early}\n{late}"
    assert os.listdir(project / "sub") == []
