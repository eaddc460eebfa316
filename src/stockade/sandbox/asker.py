"""Questions about destinations that no rule is about, put to a callback of the program's.

The callback may take its time: a person may be asked. So it is called in a thread of its own, and nobody waits for it;
what it answered is given on by the thread that owns the session. Whatever goes wrong with an answer, it is no.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final, Protocol
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.network.gate import Answer
    from stockade.network.proxy_process import Question

_MANY: Final = 4096
NOTHING: Final = -1


class Asker(Protocol):
    """Takes questions, and has answers later."""

    def put(self, question: Question) -> None:
        """Have a question answered. Never waits."""

    def take(self) -> list[tuple[int, str, str]]:
        """Return the answers that are there: the question's number, the name of the choice, and a reason."""

    def fileno(self) -> int:
        """Return what becomes readable with an answer, or ``NOTHING``."""

    def close(self) -> None:
        """Take no more."""


def settled(number: int, answer: object) -> tuple[int, str, str]:
    """Return an answer as it is given on. A choice without a name denies."""
    from stockade.network.gate import Answer

    if isinstance(answer, Answer):
        return number, answer.choice.name, answer.reason
    if isinstance(answer, Exception):
        return number, "", f"the question failed ({type(answer).__name__})"
    return number, "", "the answer was none of the possible ones"


class ThreadedAsker:
    """Asks in threads."""

    def __init__(self, ask: Callable[[str, int, str], Answer]) -> None:
        """Take a callback that may be called by several threads at once."""
        self._ask = ask
        self._answers: list[tuple[int, str, str]] = []
        self._reader = self._writer = NOTHING

    def put(self, question: Question) -> None:
        """Ask in a thread that does not keep the program alive."""
        from threading import Thread

        Thread(target=self._put, args=(question,), daemon=True, name="stockade-ask").start()

    def _put(self, question: Question) -> None:
        answer: object
        try:
            answer = self._ask(question.host, question.port, question.command)
        except Exception as error:  # noqa: BLE001 - a stranger's callback
            answer = error
        self._answers.append(settled(question.number, answer))
        with suppress(OSError):  # it is full, and so read anyway, or closed
            os.write(self._writer, b".")

    def take(self) -> list[tuple[int, str, str]]:
        """Return the answers that are there."""
        with suppress(BlockingIOError):
            os.read(self._reader, _MANY)
        taken, self._answers = self._answers, []
        return taken

    def fileno(self) -> int:
        """Return what becomes readable with an answer."""
        if self._reader < 0:
            self._reader, self._writer = os.pipe()
            os.set_blocking(self._reader, False)
            os.set_blocking(self._writer, False)
        return self._reader

    def close(self) -> None:
        """Let go; a thread that still asks finds nobody to tell."""
        if self._reader >= 0:
            os.close(self._reader)
            os.close(self._writer)
            self._reader = self._writer = NOTHING
