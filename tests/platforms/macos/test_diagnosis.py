from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.macos.diagnosis import Finding, diagnose, real_profile
from stockade.platforms.macos.evaluator import Evaluator
from stockade.platforms.macos.sexpr import Form, read
from stockade.policy.model import Sockets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.platforms.macos.conftest import Case

OK_LOG = Finding("ok", "reports", "what is refused is told by the system's log")


@pytest.mark.parametrize(
    ("answers", "level", "why"),
    [
        pytest.param([(0, ""), (0, "")], "ok", "sandbox-exec takes our profile", id="ok"),
        pytest.param(
            [(71, "sandbox-exec: sandbox_apply: Operation not permitted\n")],
            "blocked",
            "no profile can be applied here: sandbox-exec: sandbox_apply: Operation not permitted",
            id="inside-already",
        ),
        pytest.param(
            [(0, ""), (65, "unbound variable: file-map-executable\n")],
            "blocked",
            "this macOS does not take our profile: unbound variable: file-map-executable",
            id="an-unknown-word",
        ),
        pytest.param([(1, "")], "blocked", "no profile can be applied here: it said nothing", id="silent"),
    ],
)
def test_walls_are_tried(answers: list[tuple[int, str]], level: str, why: str, fake_sandbox: str) -> None:
    asked: list[tuple[str, ...]] = []

    def run(words: tuple[str, ...]) -> tuple[int, str]:
        asked.append(words)
        return answers[len(asked) - 1]

    walls, log = diagnose(run, fake_sandbox, "/bin/sh")
    assert (walls.level, walls.what, walls.why) == (level, "walls", why)
    assert bool(walls.remedy) == (level == "blocked")
    assert [words[:2] for words in asked] == [(fake_sandbox, "-p")] * len(answers)
    assert log == OK_LOG


def test_what_is_not_there() -> None:
    walls, log = diagnose(None, "/no/such", "/no/log")
    assert (walls.level, walls.why) == ("blocked", "/no/such is not there")
    assert (log.level, log.why) == ("missing", "/no/log is not there: what is refused is not told")


def test_a_real_program_is_run(fake_sandbox: str) -> None:
    walls, _ = diagnose(None, fake_sandbox, "/bin/sh")
    assert walls.level == "ok"
    Evaluator(real_profile())


def _words(forms: tuple[Form, ...]) -> Iterator[str]:
    for form in forms:
        if isinstance(form, str):
            yield form
        elif isinstance(form, tuple):
            yield from _words(form)


def test_every_word_of_a_profile_is_tried(case: Callable[..., Case]) -> None:
    made = case(
        {"/Users/ann/w/a/.git/hooks/x": None},
        deny=["a/*"],
        hide=["~/s"],
        show=["~/s/p"],
        ports=(1,),
        temporary="/p/t",
        private="/p",
        sockets=Sockets((), True, True, None, None),
    )
    assert set(_words(read(made.profile.text))) - set(_words(read(real_profile()))) == set()
