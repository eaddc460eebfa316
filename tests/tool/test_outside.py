from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError
from stockade.tool.ending import Ending
from stockade.tool.outside import start_outside

if TYPE_CHECKING:
    from pathlib import Path


def wait_for(path: Path) -> None:
    for _ in range(3000):
        if path.exists():
            return
        time.sleep(0.01)
    pytest.fail(f"{path} did not appear")


async def run(folder: Path, *words: str, kill_after: str = "") -> tuple[Ending, str]:
    reader, writer = os.pipe()
    running = start_outside(words, writer, cwd=str(folder), environment={"PATH": os.environ["PATH"]})
    os.close(writer)
    if kill_after:
        await asyncio.to_thread(wait_for, folder / kill_after)
        running.kill()
    ending = await running.wait()
    running.kill()
    with os.fdopen(reader) as file:
        return ending, await asyncio.to_thread(file.read)


def test_both_streams_in_their_order_and_nothing_to_read(tmp_path: Path) -> None:
    ending, text = asyncio.run(run(tmp_path, "sh", "-c", "echo a; echo b >&2; cat; echo c; pwd; exit 3"))
    assert ending == Ending(3)
    assert text == f"a\nb\nc\n{tmp_path.resolve()}\n"


def test_a_directory_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "judged").symlink_to("other")
    with pytest.raises(StockadeError, match="was replaced"):
        asyncio.run(run(tmp_path / "judged", "sh", "-c", "echo x > x"))
    assert [*(tmp_path / "other").iterdir()] == []


def test_what_it_left_behind_goes_with_it(tmp_path: Path) -> None:
    line = "sleep 300 & echo $! > child; exit 0"
    began = time.monotonic()
    ending, _ = asyncio.run(run(tmp_path, "sh", "-c", line))
    assert ending == Ending(0)
    assert time.monotonic() - began < 200
    assert gone(int((tmp_path / "child").read_text()))


def test_ending_it_ends_its_children(tmp_path: Path) -> None:
    line = "sleep 300 & echo $! > child; wait"
    ending, _ = asyncio.run(run(tmp_path, "sh", "-c", line, kill_after="child"))
    assert ending == Ending(signal=9)
    assert gone(int((tmp_path / "child").read_text() or "0"))


def gone(pid: int) -> bool:
    """Say whether a process is no more, or is only waited for by somebody else."""
    for _ in range(500):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    with pytest.raises(StockadeError, match="could not be started: No such file"):
        asyncio.run(run(tmp_path, "/nonexistent-program"))
    with pytest.raises(StockadeError, match="could not be started: No such file"):
        asyncio.run(run(tmp_path / "gone", "true"))


def test_without_descriptors_of_processes_a_thread_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert asyncio.run(run(tmp_path, "sh", "-c", "echo x; exit 3")) == (Ending(3), "x\n")
