from __future__ import annotations

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


def test_what_nobody_claims_counts_only_in_all() -> None:
    admissions = Admissions(ProxyLimits(per_command=1))
    assert [ticket.bind("") for ticket in admitted(admissions, 5)] == [""] * 5
    assert len(admissions) == 5
