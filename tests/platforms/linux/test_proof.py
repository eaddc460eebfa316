"""The proof itself is tested both ways: without walls the attacks succeed, behind walls they do not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.linux.attack import ATTACKS, Attack, Damage
from stockade.platforms.linux.jail import Jail
from stockade.platforms.linux.mount import JailSpec, Mount
from stockade.platforms.linux.proof import Arena, Attempt, Verdict, outside, prove
from stockade.platforms.linux.seccomp import Features, program
from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from collections.abc import Callable

# These depend on the user, on settings of the kernel, or on a network: a machine may refuse them by itself.
OFTEN_REFUSED = {
    "trace a process outside",
    "find a device that leads to the network",
    "make a user namespace",
    "open a setting of the kernel for writing",
    "type into a terminal",
    "make an io_uring",
    "gain rights by a setuid program",
}
HARMLESS = tuple(attack for attack in ATTACKS if attack.harmless)


def test_without_walls_the_attacks_succeed() -> None:
    verdicts = {attempt.name: attempt.verdict for attempt in prove(outside, HARMLESS)}
    assert set(verdicts) == {attack.name for attack in HARMLESS}
    assert {name for name, verdict in verdicts.items() if verdict is not Verdict.HOLE} <= OFTEN_REFUSED


def test_behind_walls_no_attack_succeeds(outcome: Callable[..., tuple[int, str, str]]) -> None:
    filters = (program(arch_of(os.uname().machine), Features()),)

    def inside(arena: Arena, words: list[str]) -> tuple[int, str]:
        mounts = (
            Mount("writable", arena.project),
            Mount("writable", f"{arena.project}/.git"),
            Mount("read-only", f"{arena.project}/.git/hooks"),
            Mount("hidden", f"{arena.project}/denied"),
        )
        jail = Jail.start()
        try:
            jail.build(JailSpec(mounts, filters))
            jail.wait_ready()
            status, out, err = outcome(jail, *words, directory=arena.project)
        finally:
            jail.close()
        return status, out + err

    attempts = list(prove(inside))
    assert [attempt.name for attempt in attempts] == [attack.name for attack in ATTACKS]
    assert [attempt for attempt in attempts if attempt.verdict is Verdict.HOLE] == []
    assert {attempt.name for attempt in attempts if attempt.verdict is Verdict.MOOT} <= OFTEN_REFUSED


def test_where_nothing_runs_nothing_is_proven() -> None:
    with pytest.raises(UnavailableError) as caught:
        list(prove(lambda _arena, _words: (1, "no such\x1b program\n")))
    assert caught.value.message == "honest work fails behind the walls: no such\\x1b program"


def test_what_does_not_work_outside_is_moot_unless_it_works_inside() -> None:
    impossible = Attack("impossible", Damage.SAID, "raise OSError(1, 'never')")

    def inside(arena: Arena, words: list[str]) -> tuple[int, str]:
        return (0, "done") if "never" in words[4] and os.path.isdir(arena.project) else outside(arena, words)

    assert list(prove(outside, (impossible,))) == [Attempt("impossible", Verdict.MOOT, "does not work outside either")]
    assert list(prove(inside, (impossible,))) == [Attempt("impossible", Verdict.HOLE, "done")]


def test_an_arena_leaves_nothing() -> None:
    with Arena() as arena:
        folder, process = arena.folder, arena._process
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)
    assert process.returncode is not None
