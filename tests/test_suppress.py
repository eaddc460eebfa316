"""Each rule holds for the real one too."""

from __future__ import annotations

import contextlib

import pytest

from stockade.suppress import suppress

CONTEXTS = [pytest.param(suppress, id="ours"), pytest.param(contextlib.suppress, id="theirs")]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    ("kinds", "raised"),
    [
        pytest.param((OSError,), OSError(), id="what is named"),
        pytest.param((OSError,), FileNotFoundError(), id="one of its kind"),
        pytest.param((ValueError, OSError), OSError(), id="one of several"),
    ],
)
def test_what_is_named_ends_the_block_alone(
    context: type[suppress], kinds: tuple[type[BaseException], ...], raised: BaseException
) -> None:
    reached = ["before"]
    with context(*kinds):
        reached.append("inside")
        _raise(raised)
        reached.append("never")
    assert reached == ["before", "inside"]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    ("kinds", "raised"),
    [
        pytest.param((OSError,), ValueError(), id="another"),
        pytest.param((), OSError(), id="none named"),
        pytest.param((Exception,), KeyboardInterrupt(), id="an interrupt"),
    ],
)
def test_what_is_not_named_goes_on(
    context: type[suppress], kinds: tuple[type[BaseException], ...], raised: BaseException
) -> None:
    with pytest.raises(type(raised)), context(*kinds):
        _raise(raised)


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_block_that_ends_well_ends_well(context: type[suppress]) -> None:
    with context(OSError):
        pass


def _raise(error: BaseException) -> None:
    raise error
