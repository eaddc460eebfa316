from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.linux import bubblewrap, passage
from stockade.platforms.linux.jail import Jail
from stockade.platforms.linux.mount import JailSpec

if TYPE_CHECKING:
    from stockade.platforms.linux.passage import Passage


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test change which passage the others take."""
    monkeypatch.setattr(passage, "_usual", "direct")


@pytest.mark.parametrize(
    ("taken", "step", "error", "there", "expected"),
    [
        pytest.param("direct", "namespaces", errno.EPERM, True, "bubblewrap", id="barred"),
        pytest.param("direct", "namespaces", errno.EACCES, True, "bubblewrap", id="barred-by-a-module"),
        pytest.param("direct", "namespaces", errno.EPERM, False, None, id="no-bubblewrap"),
        pytest.param("direct", "namespaces", errno.ENOSPC, True, None, id="used-up"),
        pytest.param("direct", "mount", errno.EPERM, True, None, id="another-step"),
        pytest.param("direct", "fresh /proc", errno.EPERM, True, None, id="masked"),
        pytest.param("bubblewrap", "namespaces", errno.EPERM, True, None, id="barred-there-too"),
    ],
)
def test_what_is_tried_next(
    monkeypatch: pytest.MonkeyPatch,
    taken: Passage,
    step: str,
    error: int,
    there: bool,  # noqa: FBT001
    expected: Passage | None,
) -> None:
    monkeypatch.setattr(bubblewrap, "PLACES", ("/bin/sh",) if there else ("/nowhere/bwrap",))
    assert passage.after(taken, step, error) == expected


def test_the_direct_passage_adds_no_word() -> None:
    assert passage.words_for("direct", ["a", "b"]) == ["a", "b"]


def test_without_bubblewrap_there_is_no_passage_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "PLACES", ("/nowhere/bwrap",))
    with pytest.raises(UnavailableError) as caught:
        passage.words_for("bubblewrap", ["a"])
    assert (caught.value.message, caught.value.hint) == (
        "bubblewrap is not installed",
        "install the package bubblewrap",
    )


def test_a_masked_proc_names_the_setting_and_what_it_costs() -> None:
    found = passage.refusal("fresh /proc", errno.EPERM, "fresh /proc: Operation not permitted")
    assert found.message == (
        "cannot build the walls: fresh /proc: Operation not permitted: parts of /proc are masked here,"
        " as containers do, so the kernel allows no fresh one"
    )
    assert found.hint == (
        'set "sandbox": {"enableWeakerNestedSandbox": true} in the settings to do without: commands see the processes'
        " around them: names, arguments and connections, but no files, memory or variables; or see `stockade doctor`"
        " for a stronger way"
    )


def test_other_refusals_are_told_as_they_are() -> None:
    found = passage.refusal("mount", errno.ENOENT, "mount: /x: No such file or directory")
    assert found.message == "cannot build the walls: mount: /x: No such file or directory"
    assert found.hint.startswith("run `stockade doctor`")


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="the walls of Linux need Linux")
def test_a_bubblewrap_that_cannot_start_is_no_passage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "PLACES", ("/bin/false", "/usr/bin/false"))
    with pytest.raises(UnavailableError, match=r"^(cannot build the walls|the sandbox's helpers are gone)"):
        build_through_bubblewrap()
    assert passage.usual() == "direct"


def build_through_bubblewrap() -> None:
    jail = Jail.start(passage="bubblewrap")
    try:
        jail.build(JailSpec(()))
        jail.wait_ready()
    finally:
        jail.close()
