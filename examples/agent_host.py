"""An agent host around any chat API: the model asks for shell calls, a person is asked where it must be.

    python examples/agent_host.py

``chat`` stands for the API: it takes the system prompt, the tools and the messages, and returns the next message.
Here a script plays the model; put a real client in its place.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from stockade import (
    ApprovalAnswer,
    ApprovalChoice,
    ApprovalRequest,
    LivePolicy,
    Locations,
    ShellCall,
    ShellTool,
    StockadeError,
)

SCRIPT: list[dict[str, Any]] = [
    {"tool": "shell", "input": {"command": "echo 'print(6 * 7)' > answer.py && python3 answer.py"}},
    {"tool": "shell", "input": {"command": "echo spoiled > ../outside.txt"}},
    {"tool": "shell", "input": {"command": "echo x > ../outside.txt", "dangerouslyDisableSandbox": True}},
    {"text": "The answer is 42; I was not let outside."},
]


async def chat(system: str, tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Stand for a model, which would be sent all of this."""
    del system, tools
    return SCRIPT[len([message for message in messages if message["role"] == "model"])]


async def approve(request: ApprovalRequest) -> ApprovalAnswer:
    """Ask the person, who says no here; ``request.suggestions`` are answers to offer."""
    print(request.text())
    return ApprovalAnswer(ApprovalChoice.NO, reason="the person said no")


async def main() -> None:
    """Let the model work until it has only words left."""
    locations = Locations.here(os.environ)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "What is six times seven?"}]
    async with ShellTool(LivePolicy(locations), approve=approve, locations=locations) as tool:
        while True:
            reply = await chat(tool.guidance, [tool.definition], messages)
            messages.append({"role": "model", "content": reply})
            if "text" in reply:
                return print(f"model: {reply['text']}")
            try:
                result = (await tool.run(ShellCall.parse(reply["input"]))).for_model
            except StockadeError as error:  # the model sent what is no call: it is told, and tries again
                result = f"{error.message}\n{error.hint}"
            print(f"$ {reply['input']['command']}\n{result}")
            messages.append({"role": "tool", "content": result})


if __name__ == "__main__":
    asyncio.run(main())
