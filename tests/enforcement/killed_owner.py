"""A program that owns sandboxes and is told what to do, word by word, so that a test can kill it, or its helpers.

``python killed_owner.py FACE PROJECT LINE``. Each word on standard input is answered by one line of JSON, a list of
what became of it: of a command its exit code, ``signal N``, or the error in words; of all else nothing, or the error.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Protocol

from stockade.errors import StockadeError
from stockade.policy.compile import compile_policy
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from stockade.policy.model import SandboxPolicy
    from stockade.sandbox.blocking_process import BlockingProcess
    from stockade.sandbox.result import Result

TRUE = "echo works"


class Face(Protocol):
    """One way to use a sandbox."""

    def open(self) -> list[str]: ...
    def run(self, count: int, line: str) -> list[str]: ...
    def close(self) -> list[str]: ...


def _policy(project: str) -> SandboxPolicy:
    settings = merge([Document(Layer.USER, "settings.json", {})])
    return compile_policy(settings, cwd=project, home=os.environ["HOME"])


def _ending(result: Result) -> str:
    return f"signal {result.signal}" if result.signal else str(result.exit_code)


def _words(error: StockadeError) -> str:
    return f"{type(error).__name__}: {error.message}"


class Blocking:
    def __init__(self, project: str) -> None:
        self._sandbox = BlockingSandbox(_policy(project))

    def open(self) -> list[str]:
        try:
            self._sandbox.open()
        except StockadeError as error:
            return [_words(error)]
        return []

    def run(self, count: int, line: str) -> list[str]:
        if count == 1:
            try:
                return [_ending(self._sandbox.run(line))]
            except StockadeError as error:
                return [_words(error)]
        started = [self._spawn(line) for _ in range(count)]
        return [each if isinstance(each, str) else self._wait(each) for each in started]

    def _spawn(self, line: str) -> BlockingProcess | str:
        try:
            return self._sandbox.spawn(line, stdout=None, stderr=None)
        except StockadeError as error:
            return _words(error)

    @staticmethod
    def _wait(process: BlockingProcess) -> str:
        try:
            return _ending(process.wait())
        except StockadeError as error:
            return _words(error)

    def close(self) -> list[str]:
        self._sandbox.close()
        return []


class Asynchronous:
    def __init__(self, project: str) -> None:
        self._sandbox = Sandbox(_policy(project))
        self._runner = asyncio.Runner()

    def open(self) -> list[str]:
        try:
            self._runner.run(self._sandbox.open())
        except StockadeError as error:
            return [_words(error)]
        return []

    def run(self, count: int, line: str) -> list[str]:
        async def crowd() -> list[str]:
            return list(await asyncio.gather(*(self._one(line) for _ in range(count))))

        return self._runner.run(crowd())

    async def _one(self, line: str) -> str:
        try:
            return _ending(await self._sandbox.run(line))
        except StockadeError as error:
            return _words(error)

    def close(self) -> list[str]:
        self._runner.run(self._sandbox.close())
        return []


def _held() -> list[str]:
    """Return what this process holds: open files by their kinds, and children."""
    files = []
    for name in os.listdir("/proc/self/fd"):
        try:
            files.append(os.readlink(f"/proc/self/fd/{name}").partition(":[")[0])
        except FileNotFoundError:
            continue  # the listing itself
    children = []
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
            children += [f"child {pid}" for pid in file.read().split()]
    return sorted(files) + children


def obey(face: Face, word: str, line: str) -> list[str]:
    if word == "open":
        return face.open()
    if word == "close":
        return face.close()
    if word == "hold":
        return _held()
    if word == "try":
        return face.run(1, TRUE)
    return face.run(int(word), line)


def main() -> None:
    kind, project, line = sys.argv[1:]
    face: Face = Blocking(project) if kind == "blocking" else Asynchronous(project)
    print(json.dumps([]), flush=True)  # noqa: T201 - an answer
    for word in sys.stdin:
        print(json.dumps(obey(face, word.strip(), line)), flush=True)  # noqa: T201 - an answer


if __name__ == "__main__":
    main()
