"""Numbers as text: medians, percentiles, and tables that are read as they stand and as Markdown."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

_PERCENTILE = 0.95


class Summary(Value):
    """What is kept of many samples, in seconds."""

    median: float
    p95: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Summary:
        """Summarise at least one sample; the percentile is the smallest sample that 95 % do not exceed."""
        ordered = sorted(samples)
        rank = -int(-_PERCENTILE * len(ordered) // 1)
        return cls(statistics.median(ordered), ordered[rank - 1], len(ordered))

    def __str__(self) -> str:
        """Show median and percentile in milliseconds."""
        return f"{milliseconds(self.median)} / {milliseconds(self.p95)}"


def milliseconds(seconds: float) -> str:
    """Show seconds as milliseconds with three digits that matter, or whole ones."""
    value = seconds * 1000
    places = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0  # noqa: PLR2004 - powers of ten
    return f"{value:.{places}f}"


def render(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns line up; all but the first are flush right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    rule = [("-" * (width - 1) + ":") if column else "-" * width for column, width in enumerate(widths)]
    aligned = [
        [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in lines
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (aligned[0], rule, *aligned[1:]))
