from __future__ import annotations

import pytest

from stockade.network.failure import ConnectError, Failure


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_has_words_and_a_next_step(failure: Failure) -> None:
    error = ConnectError(failure, "example.com:443", "more")
    assert error.message == f"example.com:443: {failure.value}: more"
    assert error.hint
    assert error.failure is failure


def test_without_detail() -> None:
    assert ConnectError(Failure.REFUSED, "a:1").message == "a:1: the connection was refused"
