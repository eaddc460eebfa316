"""Contenders that live in another interpreter: a driver process takes lines and tells how long each took.

The protocol: the driver writes ``{"ready": true}``; then for each JSON text on a line of its input it runs that shell
line and writes ``{"seconds": s, "status": n}``; at the end of its input it clears up and ends. Its clock is its own,
so that the way to the driver and back costs nothing.
"""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from typing import Any, cast

from contender import Contender, FailedError, Ground

_PATIENCE = 60


class Driven(Contender):
    """A contender behind a driver."""

    driver: asyncio.subprocess.Process

    @abstractmethod
    def words(self, ground: Ground) -> tuple[str, ...]:
        """Return the words that start the driver."""

    async def start(self, ground: Ground) -> None:
        """Start the driver in the tree and wait until it is ready."""
        pipe = asyncio.subprocess.PIPE
        self.driver = await asyncio.create_subprocess_exec(
            *self.words(ground), cwd=ground.tree, stdin=pipe, stdout=pipe
        )
        try:
            await self._answer()
        except BaseException:
            await self.stop()
            raise

    async def run(self, line: str) -> float:
        """Ask the driver."""
        self._input().write(json.dumps(line).encode() + b"\n")
        answer = await self._answer()
        if answer["status"]:
            message = f"the command ended with status {answer['status']}"
            raise FailedError(message)
        return float(answer["seconds"])

    async def stop(self) -> None:
        """Close the driver's input and wait; a driver that stays is killed."""
        self._input().close()
        try:
            await asyncio.wait_for(self.driver.wait(), _PATIENCE)
        except TimeoutError:
            self.driver.kill()
            await self.driver.wait()

    def _input(self) -> asyncio.StreamWriter:
        return cast("asyncio.StreamWriter", self.driver.stdin)

    async def _answer(self) -> dict[str, Any]:
        output = cast("asyncio.StreamReader", self.driver.stdout)
        line = await asyncio.wait_for(output.readline(), _PATIENCE)
        if not line:
            message = "the driver ended; see above for what it said"
            raise FailedError(message)
        answer: dict[str, Any] = json.loads(line)
        return answer
