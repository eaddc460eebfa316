from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stockade.tool.call import ShellCall
from stockade.tool.placement import GATES, Place, Placement, Situation, place

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

WHY: dict[str, tuple[dict[str, Any], ShellCall, str, str, Place]] = {
    "disabled": ({"enabled": False}, ShellCall("ls"), "", "the sandbox is off", Place.OUTSIDE),
    "required": (
        {},
        ShellCall("ls", dangerously_disable_sandbox=True),
        "no user namespaces",
        "the sandbox is on, but cannot be built here: no user namespaces",
        Place.NOWHERE,
    ),
    "unavailable": (
        {"failIfUnavailable": False},
        ShellCall("ls"),
        "no user namespaces",
        "NO SANDBOX: it is on, but cannot be built here: no user namespaces",
        Place.OUTSIDE,
    ),
    "bypass": (
        {},
        ShellCall("ls", dangerously_disable_sandbox=True),
        "",
        "this call asked to run outside the sandbox",
        Place.OUTSIDE,
    ),
    "empty": ({}, ShellCall(" \n"), "", "there is no command", Place.OUTSIDE),
    "excluded": (
        {"excludedCommands": ("docker *",)},
        ShellCall("docker ps"),
        "",
        "excluded by `docker *` of settings.json (user)",
        Place.OUTSIDE,
    ),
    "walls": ({}, ShellCall("ls"), "", "the sandbox is on", Place.INSIDE),
}


@pytest.mark.parametrize("name", WHY)
def test_every_gate_says_its_name_and_why(yard: Yard, name: str) -> None:
    settings, call, unavailable, reason, where = WHY[name]
    assert place(Situation(call, yard.policy(**settings), unavailable)) == Placement(where, name, reason)


def test_the_gates_are_these_in_this_order() -> None:
    assert [gate.name for gate in GATES] == [*WHY]


def test_a_bypass_that_is_not_allowed_stays_inside_and_says_so(yard: Yard) -> None:
    call = ShellCall("ls", dangerously_disable_sandbox=True)
    strict = place(Situation(call, yard.policy(allowUnsandboxedCommands=False)))
    assert (strict.place, strict.reason) == (Place.INSIDE, "the sandbox is on; this policy lets no call run outside it")
    child = place(Situation(call, yard.policy(), may_bypass=False))
    assert (child.place, child.reason) == (
        Place.INSIDE,
        "the sandbox is on; a sub-agent cannot run anything outside it",
    )


@pytest.mark.parametrize("line", ["docker ps && curl x", "docker ps > f", "docker ps $(curl x)", "docker ps `x`"])
def test_an_exclusion_frees_no_more_than_it_names(yard: Yard, line: str) -> None:
    assert place(Situation(ShellCall(line), yard.policy(excludedCommands=("docker *",)))).place is Place.INSIDE
