from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import calls
from stockade.platforms.linux.program import UNLISTED, name, notifies, observes, program, unsupervised
from stockade.platforms.linux.seccomp import Features, notified_first
from stockade.platforms.linux.seccomp import program as assemble
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from stockade.platforms.backend import Observe


@pytest.mark.parametrize(
    ("named", "features"),
    [
        pytest.param(
            name(),
            Features(unix_sockets="stream", notify=calls.NAMED | calls.DECIDED, descriptors=False),
            id="the usual one",
        ),
        pytest.param(
            name(observe="on"),
            Features(unix_sockets="stream", notify=calls.OBSERVED | calls.DECIDED),
            id="observed fully",
        ),
        pytest.param(
            name("all"), Features(unix_sockets="all", notify=calls.NAMED, descriptors=False), id="unix sockets"
        ),
        pytest.param(name("all", observe="off"), Features(unix_sockets="all"), id="nobody is asked"),
        pytest.param(name(observe="off"), Features(unix_sockets="stream", notify=calls.DECIDED), id="not observed"),
        pytest.param(name("none", tracing=False, supervised=False, observe="off"), Features(tracing=False), id="none"),
    ],
)
def test_a_name_means_a_program_for_this_machine(named: bytes, features: Features) -> None:
    assert program(named) == assemble(arch_of(os.uname().machine), features)
    assert program(named) is program(named)


def test_listings_are_asked_about_before_the_same_program() -> None:
    named = name(unlisted=True)
    first = notified_first(arch_of(os.uname().machine), calls.LISTS)
    assert named == name() + b" unlisted"
    assert program(named) == first + program(name())
    assert program(named) is program(named)


@pytest.mark.parametrize(
    ("named", "asks"),
    [
        pytest.param(name(unlisted=True), True, id="the usual one"),
        pytest.param(name(observe="off", unlisted=True), True, id="who decides about connections can list, too"),
        pytest.param(name("all", unlisted=True), True, id="who is told of changes, too"),
        pytest.param(name("all", observe="off", unlisted=True), False, id="nobody is there for it alone"),
    ],
)
def test_listings_are_asked_about_where_somebody_answers_anyway(named: bytes, *, asks: bool) -> None:
    assert (UNLISTED in named.split()) is asks
    assert notifies(named) is asks
    assert UNLISTED not in unsupervised(named).split()


@pytest.mark.parametrize(("observe", "expected"), [("auto", True), ("on", True), ("off", False)])
def test_whether_changes_are_observed(observe: Observe, *, expected: bool) -> None:
    assert observes(name(observe=observe)) is expected
    assert not observes(unsupervised(name(observe=observe)))


def test_the_usual_one_needs_no_name() -> None:
    assert program() is program(name())


@pytest.mark.parametrize(
    ("named", "instead"),
    [
        pytest.param(name(), b"none", id="the usual one"),
        pytest.param(name(tracing=False, observe="off"), b"none untraced", id="not observed"),
        pytest.param(name("all"), b"all", id="all sockets"),
        pytest.param(name("all", observe="on"), b"all", id="all sockets, observed fully"),
    ],
)
def test_where_nobody_can_answer_sockets_by_path_stay_closed(named: bytes, instead: bytes) -> None:
    assert notifies(named)
    assert unsupervised(named) == instead
    assert not notifies(instead)
