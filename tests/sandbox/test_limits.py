from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.sandbox.limits import Limit, Limits, parse_size


def test_a_call_speaks_over_its_session() -> None:
    session = Limits(memory=100, processes=5)
    assert Limits(memory=7).over(session) == Limits(memory=7, processes=5)
    assert Limits().over(session) == session


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "5"])
def test_what_is_no_limit_is_refused(value: object) -> None:
    with pytest.raises(InvalidTextError):
        Limits(memory=value)  # type: ignore[arg-type]


def test_rlimits() -> None:
    limits = Limits(memory=1, processes=2, open_files=3, cpu_seconds=4, output_bytes=5)
    ours = {resource.RLIMIT_NOFILE: 3, resource.RLIMIT_CPU: 4}
    assert dict(limits.rlimits(grouped=True)) == ours
    assert dict(limits.rlimits(grouped=False)) == ours | {resource.RLIMIT_AS: 1, resource.RLIMIT_NPROC: 2}
    assert Limits().rlimits(grouped=False) == ()


@pytest.mark.parametrize(
    ("seconds", "signal", "used", "expected"),
    [
        pytest.param(None, 24, 9.0, None, id="no limit"),
        pytest.param(1, 24, 1.0, Limit.CPU, id="the kernel's own signal"),
        pytest.param(1, 9, 1.2, Limit.CPU, id="killed after the time was used up"),
        pytest.param(1, 9, 0.2, None, id="killed before"),
        pytest.param(1, None, 5.0, None, id="ended by itself"),
    ],
)
def test_processor_time(seconds: int | None, signal: int | None, used: float, expected: Limit | None) -> None:
    assert Limits(cpu_seconds=seconds).hit_by(signal, used) is expected


@pytest.mark.parametrize(("text", "size"), [("1", 1), ("2k", 2048), ("512M", 512 << 20), ("1G", 1 << 30), ("0", 0)])
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@given(st.text(alphabet="0123456789kKmMgG.-+ x٣", max_size=6))
def test_no_text_raises_anything_but_our_error(text: str) -> None:
    try:
        assert parse_size(text) >= 0
    except InvalidTextError as error:
        assert error.hint  # noqa: PT017 - any text may be right or wrong
