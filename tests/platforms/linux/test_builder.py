"""What follows from a plan; how it is built, with real walls, in ``tests/enforcement/test_builder.py``."""

from __future__ import annotations

import os

import pytest

from stockade.platforms.linux import builder, message
from stockade.platforms.linux.program import notifies, program, unsupervised
from stockade.platforms.linux.supervision import HostView

CONFINEMENT = b"stream supervised observed"


def _work(confinement: bytes, view: HostView) -> builder._Work:
    return builder._Work(message.Build([], [b"another"], confinement=confinement, sockets=[b"/run/*.sock"]), 0, view)


def test_a_supervised_plan_takes_the_view_of_the_host_and_another_closes_it() -> None:
    view = HostView()
    work = _work(CONFINEMENT, view)
    assert notifies(CONFINEMENT)
    assert work.supervision is not None
    assert work.supervision.is_listed(b"/run/x.sock")
    assert not work.supervision.is_listed(b"/run/x")
    os.fstat(view.root)
    work.supervision.close()
    other = HostView()
    assert _work(b"stream", other).supervision is None
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(other.root)


def test_without_a_supervisor_another_filter_comes_first() -> None:
    work = _work(CONFINEMENT, HostView())
    assert work.filters == [program(CONFINEMENT), b"another"]
    work.give_up_supervision()
    assert work.filters == [program(unsupervised(CONFINEMENT)), b"another"]
    assert work.supervision is None


def test_no_pattern_lists_nothing() -> None:
    assert not builder._matcher([])(b"/run/x.sock")


def test_only_a_supervisor_lists_directories() -> None:
    build = message.Build([], [], confinement=CONFINEMENT + b" unlisted", unlisted=[[b"/r", b".git"]])
    work = builder._Work(build, 0, HostView())
    assert work.supervision is not None
    assert work.supervision.listings is not None
    work.give_up_supervision()
    assert work.filters == [program(unsupervised(CONFINEMENT))]
    plain = _work(CONFINEMENT, HostView())
    assert plain.supervision is not None
    assert plain.supervision.listings is None
    plain.supervision.close()


def test_denied_sockets_are_known_to_the_supervisor_and_without_one() -> None:
    build = message.Build([(b"writable", b"/w", b"")], [], confinement=CONFINEMENT, denied=[b"/w/*.sock"])
    work = builder._Work(build, 0, HostView())
    assert work.denied is not None
    assert (work.denied.cover(b"/w/x.sock"), work.denied.reach_writable) == (True, True)
    assert work.supervision is not None
    assert work.supervision.denied is work.denied
    work.give_up_supervision()
    assert work.denied.cover(b"/w/x.sock")
    other = HostView()
    assert _work(b"stream", other).denied is None
