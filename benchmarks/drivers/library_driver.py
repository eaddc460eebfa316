"""Runs lines with the library of a checkout; the protocol is that of ``driven``.

Arguments: the directory to import from, the tree, the settings file.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time


async def serve(tree: str, settings: str) -> None:
    """Serve until the input ends."""
    from stockade import Sandbox, load_policy

    async with Sandbox(load_policy(tree, settings_file=settings)) as sandbox:
        print(json.dumps({"ready": True}), flush=True)
        while text := await asyncio.to_thread(sys.stdin.readline):
            began = time.perf_counter()
            done = await sandbox.run(json.loads(text))
            took = time.perf_counter() - began
            print(json.dumps({"seconds": took, "status": done.status}), flush=True)


sys.path.insert(0, sys.argv[1])
asyncio.run(serve(*sys.argv[2:]))
