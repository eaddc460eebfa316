from __future__ import annotations

import pytest

from stockade.network.limits import Admissions, ProxyLimits, Ticket


def admitted(admissions: Admissions, count: int) -> list[Ticket]:
    tickets = [admissions.admit() for _ in range(count)]
    return [ticket for ticket in tickets if ticket is not None]


def test_too_many_are_told_and_far_too_many_are_not_even_heard() -> None:
    admissions = Admissions(ProxyLimits(connections=2))
    tickets = admitted(admissions, 100)
    told = "2 connections are open already"
    assert [ticket.refused for ticket in tickets] == ["", "", *[told] * 64]
    assert tickets[2].bind("c1") == told
    for ticket in tickets:
        ticket.release()
        ticket.release()
    assert len(admissions) == 0
    assert [ticket.refused for ticket in admitted(admissions, 1)] == [""]


def test_a_command_has_its_own_limit_from_when_it_is_known() -> None:
    admissions = Admissions(ProxyLimits(per_command=2))
    first, second, third = admitted(admissions, 3)
    assert [first.bind("a"), first.bind("a"), second.bind("a")] == ["", "", ""]
    assert third.bind("a") == "this command has 2 connections open already"
    assert third.bind("b") == ""
    first.release()
    assert third.bind("a") == ""
    for ticket in (second, third):
        ticket.release()
    assert admissions._commands == {}


def test_what_is_nobodys_has_a_limit_of_its_own() -> None:
    admissions = Admissions(ProxyLimits(per_command=1, of_nobody=3))
    tickets = admitted(admissions, 5)
    full = "3 connections are open already of which nobody knows whose they are"
    assert [ticket.bind("") for ticket in tickets] == ["", "", "", full, full]
    assert tickets[3].bind("a") == ""
    tickets[0].release()
    assert tickets[4].bind("") == ""


def test_who_does_not_say_whose_it_is_makes_room_for_who_does() -> None:
    admissions = Admissions(ProxyLimits(unclaimed=3))
    cut_off: list[int] = []
    tickets = []
    for number in range(6):
        (ticket,) = admitted(admissions, 1)
        ticket.cut_off = lambda number=number: cut_off.append(number)  # type: ignore[misc] # a default is no argument
        tickets.append(ticket)
        if number == 0:
            assert ticket.bind("a") == ""
    assert cut_off == [1, 2]
    for ticket in tickets:
        ticket.release()
    assert (len(admissions), admissions._commands, admissions._unclaimed) == (0, {}, {})


@pytest.mark.parametrize(
    ("descriptors", "fitting"),
    [
        pytest.param(65536, ProxyLimits(), id="many"),
        pytest.param(4096, ProxyLimits(connections=1792, per_command=448, of_nobody=896, unclaimed=448), id="few"),
        pytest.param(256, ProxyLimits(connections=64, per_command=16, of_nobody=32, unclaimed=16), id="hardly any"),
    ],
)
def test_limits_fit_into_the_descriptors_that_there_are(descriptors: int, fitting: ProxyLimits) -> None:
    assert ProxyLimits().within(descriptors) == fitting
