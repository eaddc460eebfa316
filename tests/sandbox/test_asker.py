from __future__ import annotations

import os
import select
import threading

import pytest

from stockade.network.gate import Answer, Choice
from stockade.network.proxy_process import Question
from stockade.sandbox.asker import ThreadedAsker, settled

QUESTION = Question(7, "example.com", 443, "build")


def wait(asker: ThreadedAsker) -> list[tuple[int, str, str]]:
    assert select.select([asker.fileno()], [], [], 10)[0]
    return asker.take()


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        pytest.param(Answer(Choice.ONCE), (7, "ONCE", ""), id="once"),
        pytest.param(Answer(Choice.DENY, "not today"), (7, "DENY", "not today"), id="no, with a reason"),
        pytest.param(ValueError("secret"), (7, "", "the question failed (ValueError)"), id="an error is not told"),
        pytest.param("yes", (7, "", "the answer was none of the possible ones"), id="no answer"),
        pytest.param(True, (7, "", "the answer was none of the possible ones"), id="true is no answer"),
    ],
)
def test_what_is_given_on(answer: object, given: tuple[int, str, str]) -> None:
    assert settled(7, answer) == given


def test_a_question_is_put_in_a_thread_and_its_answer_taken_in_another() -> None:
    asked: list[tuple[str, int, str, str]] = []

    def ask(host: str, port: int, command: str) -> Answer:
        asked.append((host, port, command, threading.current_thread().name))
        return Answer(Choice.SESSION)

    asker = ThreadedAsker(ask)
    try:
        asker.fileno()
        asker.put(QUESTION)
        assert wait(asker) == [(7, "SESSION", "")]
        assert asked == [("example.com", 443, "build", "stockade-ask")]
        assert asker.take() == []
    finally:
        asker.close()


def test_an_answer_that_comes_after_the_end_is_nobodys() -> None:
    go, gone = threading.Event(), threading.Event()

    def ask(_host: str, _port: int, _command: str) -> Answer:
        go.wait(10)
        gone.set()
        return Answer(Choice.ONCE)

    asker = ThreadedAsker(ask)
    before = asker.fileno()
    asker.put(QUESTION)
    asker.close()
    asker.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(before)
    go.set()
    assert gone.wait(10)
    again = asker.fileno()
    asker.close()
    assert again >= 0
