from __future__ import annotations

import os
import signal
import subprocess
import sys
from errno import EBUSY
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import trial

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(trial.__file__).parents[3]
HELPER = "import sys; sys.path.append(sys.argv[1]); from stockade.platforms.linux.trial import main; main()"
STEPS = (
    "user_namespace",
    "id_map",
    "namespaces",
    "loopback",
    "mounts",
    "processes",
    "filter",
    "listener",
    "masks",
    "layers",
)


def refuse() -> None:
    raise OSError(EBUSY, "busy")


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def do_nothing() -> None:
    """Work."""


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        pytest.param((do_nothing, do_nothing), ["0 0", "1 0"], id="all work"),
        pytest.param((do_nothing, refuse, do_nothing), ["0 0", f"1 {EBUSY}"], id="a refusal ends them"),
        pytest.param((do_nothing, be_killed, do_nothing), ["0 0", "1 -9"], id="a signal ends them"),
    ],
)
def test_steps_are_tried_until_one_fails(steps: tuple[Callable[[], None], ...], lines: list[str]) -> None:
    assert trial.attempt([(str(index), step) for index, step in enumerate(steps)]) == lines


def test_the_helper_tells_of_every_step_and_leaves_nothing(tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    words = [sys.executable, "-I", "-S", "-c", HELPER, str(SOURCE)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path, env={})
    names = [line.split()[0] for line in ran.stdout.splitlines()]
    assert "user_namespace" in names
    assert "landlock" in names
    assert set(names) <= {*STEPS, "landlock", "absent"}
    assert Path("/proc/self/mountinfo").read_text() == before


def test_a_call_that_does_not_exist_is_absent() -> None:
    assert trial._absent(100_000)
    assert trial._call(100_000) < 0
    assert trial._call(39 if os.uname().machine == "x86_64" else 172) == os.getpid()
