from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from stockade.platforms.macos.inside import is_inside

TOLD = {"SANDBOX_RUNTIME": "1"}


@pytest.mark.parametrize(("environment", "answer", "inside"), [(TOLD, 1, True), (TOLD, 0, False), ({}, 1, False)])
def test_both_the_variable_and_the_kernel_must_say_so(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], answer: int, *, inside: bool
) -> None:
    library = SimpleNamespace(sandbox_check=lambda *_: answer)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    assert is_inside(environment) is inside


def test_a_system_without_the_call_has_no_such_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    assert not is_inside(TOLD)
