"""Rules for every test run.

A wall that was not tested must not pass for one that held: with ``CI`` set, a test under ``tests/enforcement``
that is skipped, or expected to fail, has failed. What belongs to another operating system is not to be collected
there at all (``collect_ignore_glob`` in a conftest of its own), rather than skipped.
"""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

# Whoever started the tests (nohup, say) may have had a signal ignored, which every command would inherit.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# The private caches of sandboxes lie in the home that a test gives them, not in a place of whoever runs the tests.
os.environ.pop("XDG_CACHE_HOME", None)

# No test looks at the clock: a machine may be busy. What CI has set besides stays.
_usual = settings()
settings.register_profile(
    "stockade",
    _usual,
    deadline=None,
    suppress_health_check=(*_usual.suppress_health_check, HealthCheck.too_slow),
)
settings.load_profile("stockade")

# Commands have a private /tmp, in which everything may be written: what the walls refuse is tried elsewhere.
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/var/tmp")

ENFORCEMENT = Path(__file__).parent / "enforcement"


def _must_run(node: pytest.Item | pytest.Collector) -> bool:
    return bool(os.environ.get("CI")) and node.path.is_relative_to(ENFORCEMENT)


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = getattr(report, "wasxfail", None) or (
        report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    )
    # With this attribute left, the report would still count as an expected failure.
    report.__dict__.pop("wasxfail", None)
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid} did not run to its end, which in CI is a failure: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and _must_run(item):
        _fail(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _must_run(collector):
        _fail(report)
    return report


@pytest.fixture
def descriptors() -> Generator[Callable[[int], None]]:
    """Return a function that raises this process's limit of open files by a count, as a program does that needs many.

    Most systems start programs with a soft limit of 1,024, for the sake of those that use select(2).
    """
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def make_room(count: int) -> None:
        soft, hard = before
        count += len(os.listdir("/dev/fd"))
        if hard not in {resource.RLIM_INFINITY, max(hard, count)}:
            pytest.skip(f"this takes {count} descriptors, and the hard limit is {hard} (ulimit -Hn)")
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft if soft == resource.RLIM_INFINITY else max(soft, count), hard))

    yield make_room
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
