from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from stockade.sandbox.asynchronous import Sandbox
from stockade.tool.ending import Ending
from stockade.tool.inside import start_inside

if TYPE_CHECKING:
    from tests.tool.conftest import Yard


def test_a_command_of_a_sandbox(yard: Yard) -> None:
    async def main() -> None:
        async with Sandbox(yard.policy()) as sandbox:
            reader, writer = os.pipe()
            words = ["sh", "-c", "echo a; echo b >&2; echo c; exit 3"]
            run = await start_inside(sandbox, words, writer, cwd="/", command_id="x", line="what it stands for")
            os.close(writer)
            assert await run.wait() == Ending(3)
            with os.fdopen(reader) as file:
                assert file.read() == "a\nb\nc\n"
            run.kill()
            null = os.open(os.devnull, os.O_WRONLY)
            run = await start_inside(sandbox, ["sleep", "60"], null, cwd="/", command_id="y", line="sleep")
            os.close(null)
            run.kill()
            assert await run.wait() == Ending(signal=9)

    asyncio.run(main())
