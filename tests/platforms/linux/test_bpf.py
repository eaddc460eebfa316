from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import StockadeError
from stockade.platforms.linux.bpf import And, Branch, Goto, Item, Label, Load, Return, assemble

Emulate: TypeAlias = Callable[[bytes, bytes], tuple[int, int]]


def data(word: int) -> bytes:
    return pack("<I", word) + bytes(60)


def padding(count: int) -> list[Item]:
    return [And(0xFFFF_FFFF) for _ in range(count)]


@pytest.mark.parametrize(
    ("items", "code"),
    [
        pytest.param([Return(7)], pack("<HBBI", 0x06, 0, 0, 7), id="return"),
        pytest.param([Load(16), Return(0)], pack("<HBBIHBBI", 0x20, 0, 0, 16, 0x06, 0, 0, 0), id="load"),
        pytest.param([And(0xF), Return(0)], pack("<HBBIHBBI", 0x54, 0, 0, 15, 0x06, 0, 0, 0), id="and"),
        pytest.param(
            [Goto("end"), Return(1), Label("end"), Return(2)],
            pack("<HBBIHBBIHBBI", 0x05, 0, 0, 1, 0x06, 0, 0, 1, 0x06, 0, 0, 2),
            id="goto",
        ),
        pytest.param(
            [Branch("ge", 5, "yes"), Return(1), Label("yes"), Return(2)],
            pack("<HBBIHBBIHBBI", 0x35, 1, 0, 5, 0x06, 0, 0, 1, 0x06, 0, 0, 2),
            id="branch falls through",
        ),
    ],
)
def test_bytes_are_what_the_kernel_takes(items: list[Item], code: bytes) -> None:
    assert assemble(items) == code


@pytest.mark.parametrize("gap", [0, 1, 253, 254, 255, 256, 257, 600])
@pytest.mark.parametrize("sides", ["then", "otherwise", "both"])
def test_branches_reach_any_distance(emulate: Emulate, gap: int, sides: str) -> None:
    then = "yes" if sides in {"then", "both"} else ""
    otherwise = "no" if sides in {"otherwise", "both"} else ""
    items = [
        Load(0),
        Branch("eq", 5, then, otherwise),
        *padding(gap),
        Return(1),
        Label("yes"),
        Return(2),
        Label("no"),
        Return(3),
    ]
    program = assemble(items)
    assert emulate(program, data(5))[0] == (2 if then else 1)
    assert emulate(program, data(6))[0] == (3 if otherwise else 1)


def test_a_hop_that_is_added_can_make_another_one_necessary(emulate: Emulate) -> None:
    items = [
        Load(0),
        Branch("eq", 1, "first"),
        *padding(100),
        Branch("eq", 2, "second"),
        *padding(153),
        Return(9),
        Label("first"),
        *padding(102),
        Return(1),
        Label("second"),
        Return(2),
    ]
    program = assemble(items)
    assert [emulate(program, data(word))[0] for word in (1, 2, 3)] == [1, 2, 9]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        pytest.param([], "does not end in a return", id="empty"),
        pytest.param([Load(0)], "does not end in a return", id="no return"),
        pytest.param([Goto("x"), Return(0)], "label 'x' is not set", id="missing label"),
        pytest.param([Branch("eq", 0, "x"), Return(0)], "label 'x' is not set", id="missing branch label"),
        pytest.param([Label("x"), Goto("x"), Return(0)], "label 'x' lies behind", id="backward"),
        pytest.param([Label("x"), Label("x"), Return(0)], "label 'x' is set twice", id="twice"),
        pytest.param([*padding(4096), Return(0)], "4097 instructions", id="too long"),
    ],
)
def test_a_faulty_program_is_refused(items: list[Item], words: str) -> None:
    with pytest.raises(StockadeError, match=words) as caught:
        assemble(items)
    assert caught.value.hint


@given(
    branches=st.lists(
        st.tuples(
            st.sampled_from(["eq", "gt", "ge", "set"]),
            st.integers(0, 8),
            st.integers(0, 40),
            st.sampled_from([0, 1, 200, 255, 256]),
        ),
        max_size=6,
    ),
    word=st.integers(0, 9),
)
def test_a_chain_of_branches_means_what_it_says(
    emulate: Emulate, branches: list[tuple[str, int, int, int]], word: int
) -> None:
    """Branch n leads to the n-th return; without a hit the chain ends in 99."""
    items: list[Item] = [Load(0)]
    for index, (test, operand, _, gap) in enumerate(branches):
        items += [Branch(test, operand, f"hit {index}"), *padding(gap)]
    items.append(Return(99))
    for index, (_, _, gap, _) in enumerate(branches):
        items += [Label(f"hit {index}"), *padding(gap), Return(index)]
    meaning: dict[str, Callable[[int], bool]] = {
        "eq": word.__eq__,
        "gt": word.__gt__,
        "ge": word.__ge__,
        "set": lambda operand: bool(word & operand),
    }
    expected = next((i for i, (test, operand, _, _) in enumerate(branches) if meaning[test](operand)), 99)
    assert emulate(assemble(items), data(word))[0] == expected
