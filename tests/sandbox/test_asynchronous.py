from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError, UnavailableError
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.limits import Limit, Limits

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import Ground

    from stockade.platforms.backend import Walls


def wait_for(path: Path) -> None:
    for _ in range(1000):
        if path.exists():
            return
        time.sleep(0.01)
    pytest.fail(f"{path} did not appear")


def test_many_commands_at_once(ground: Ground) -> None:
    async def main() -> None:
        async with Sandbox(ground.policy()) as sandbox:
            done = await asyncio.gather(
                *(sandbox.run(f"sleep 0.1; echo {number}; exit {number}") for number in range(40))
            )
            assert [one.output for one in done] == [f"{number}\n" for number in range(40)]
            assert [one.exit_code for one in done] == list(range(40))

    asyncio.run(main())


def test_timeout_output_limit_and_input(ground: Ground) -> None:
    async def main() -> None:
        async with Sandbox(ground.policy(), limits=Limits(output_bytes=1 << 20)) as sandbox:
            assert (await sandbox.run("sleep 60", timeout=0.1)).limit is Limit.TIME
            assert (await sandbox.run("yes")).limit is Limit.OUTPUT
            assert (await sandbox.run("cat", stdin=b"given")).stdout == b"given"
            heard: list[bytes] = []
            await sandbox.run("echo a; echo b >&2", on_output=heard.append)
            assert sorted(heard) == [b"a\n", b"b\n"]

    asyncio.run(main())


def test_cancelling_the_task_ends_the_command(ground: Ground) -> None:
    async def main() -> None:
        async with Sandbox(ground.policy()) as sandbox:
            task = asyncio.create_task(sandbox.run("touch started; sleep 60; touch finished"))
            await asyncio.to_thread(wait_for, ground.project / "started")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await sandbox.run("ps ax -o args | grep -c '[s]leep 60'")).output == "0\n"
            assert not (ground.project / "finished").exists()

    asyncio.run(main())


def test_concurrent_openings_share_one(ground: Ground) -> None:
    made: list[str] = []

    def walls(temporary: str) -> Walls:
        from stockade.platforms.walls import make_walls

        made.append(temporary)
        return make_walls(temporary)

    async def main() -> None:
        sandbox = Sandbox(ground.policy(), walls=walls)
        await asyncio.gather(*(sandbox.open() for _ in range(5)))
        assert len(made) == 1
        assert (await sandbox.run("echo x")).output == "x\n"
        await sandbox.close()
        await sandbox.close()

    asyncio.run(main())


def test_a_failed_opening_leaves_nothing_and_may_be_repeated(ground: Ground) -> None:
    failures = ["first"]

    def walls(temporary: str) -> Walls:
        from stockade.platforms.walls import make_walls

        if failures:
            message = failures.pop()
            raise UnavailableError(message)
        return make_walls(temporary)

    async def main() -> None:
        sandbox = Sandbox(ground.policy(), walls=walls, environment={**os.environ, "TMPDIR": str(ground.home)})
        with pytest.raises(UnavailableError, match="first"):
            await sandbox.open()
        assert [*ground.home.glob("stockade-*/*")] == []
        await sandbox.open()
        assert (await sandbox.run("echo x")).output == "x\n"
        await sandbox.close()
        assert [*ground.home.glob("stockade-*/*")] == []

    asyncio.run(main())


def test_closing_while_a_command_runs(ground: Ground) -> None:
    async def main() -> None:
        sandbox = Sandbox(ground.policy())
        await sandbox.open()
        task = asyncio.create_task(sandbox.run("sleep 60"))
        await asyncio.sleep(0.1)
        await sandbox.close()
        with pytest.raises(StockadeError, match="closed while the command ran"):
            await task

    asyncio.run(main())


def test_not_open(ground: Ground) -> None:
    async def main() -> None:
        with pytest.raises(StockadeError, match="not open"):
            await Sandbox(ground.policy()).run("true")

    asyncio.run(main())


def test_a_command_may_be_called_by_another_line(ground: Ground) -> None:
    async def main() -> None:
        async with Sandbox(ground.policy()) as sandbox:
            process = await sandbox.spawn(["sh", "-c", "exit 3"], stdout=None, stderr=None, line="make all")
            done = await process.wait()
            assert (done.command, done.exit_code) == ("make all", 3)

    asyncio.run(main())
