from __future__ import annotations

import pytest

from table import Summary, milliseconds, render


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        pytest.param([0.002], Summary(0.002, 0.002, 1), id="one sample is everything"),
        pytest.param([3.0, 1.0, 2.0], Summary(2.0, 3.0, 3), id="order does not matter"),
        pytest.param([1.0, 2.0, 3.0, 4.0], Summary(2.5, 4.0, 4), id="even count"),
        pytest.param([float(n) for n in range(1, 101)], Summary(50.5, 95.0, 100), id="the 95th of a hundred"),
        pytest.param([float(n) for n in range(1, 21)], Summary(10.5, 19.0, 20), id="the 19th of twenty"),
    ],
)
def test_summary(samples: list[float], expected: Summary) -> None:
    assert Summary.of(samples) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(0.0014712, "1.47", id="two places below ten"),
        pytest.param(0.0147, "14.7", id="one place below a hundred"),
        pytest.param(2.869, "2869", id="none above"),
        pytest.param(-0.0005, "-0.50", id="a negative difference"),
    ],
)
def test_milliseconds(seconds: float, expected: str) -> None:
    assert milliseconds(seconds) == expected


def test_a_table_lines_up() -> None:
    assert render(["who", "ms"], [["bare", "1"], ["x", "2000"]]) == (
        "| who  |   ms |\n"
        "| ---- | ---: |\n"
        "| bare |    1 |\n"
        "| x    | 2000 |"
    )  # fmt: skip
