"""An assembler for classic BPF, the language of seccomp filters.

A program is a list of values: instructions and labels. ``assemble`` lays them out and gives the bytes of
``struct sock_filter[]`` (little-endian: ``u16 code, u8 jt, u8 jf, u32 k``).

Rules: jumps go forward only; a conditional jump reaches 255 instructions, and where its target lies
further a ``ja`` (32-bit reach) is put behind it; a program ends in a return and has at most 4096
instructions. Source of truth: ``linux/filter.h`` and ``kernel/seccomp.c`` (``seccomp_check_filter``).
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, NoReturn, TypeAlias
from stockade.errors import StockadeError
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_INSTRUCTIONS = 4096
INSTRUCTION_BYTES = 8

_LOAD_ABSOLUTE = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND_CONSTANT = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN_CONSTANT = 0x06  # BPF_RET | BPF_K
_JUMP_ALWAYS = 0x05  # BPF_JMP | BPF_JA
_JUMP_IF = {"eq": 0x15, "gt": 0x25, "ge": 0x35, "set": 0x45}
_SHORT_REACH = 255


class Load(Value):
    """Load the 32-bit word at ``offset`` of ``struct seccomp_data``."""

    offset: int


class And(Value):
    """Keep only the bits of ``mask``."""

    mask: int


class Return(Value):
    """End the program with this word."""

    word: int


class Goto(Value):
    """Jump to a label."""

    target: str


class Branch(Value):
    """Compare the loaded word with ``operand`` (unsigned) and jump; an empty label means the next instruction.

    ``test`` is ``eq``, ``gt``, ``ge``, or ``set`` (any bit of the operand is set).
    """

    test: str
    operand: int
    then: str = ""
    otherwise: str = ""


class Label(Value):
    """A place to jump to: the next instruction."""

    name: str


Item: TypeAlias = Load | And | Return | Goto | Branch | Label


def assemble(items: Sequence[Item]) -> bytes:
    """Return the program as the kernel takes it."""
    if not items or not isinstance(items[-1], Return):
        _fail("the program does not end in a return")
    far = _far_targets(items)
    places, size = _layout(items, far)
    if size > MAX_INSTRUCTIONS:
        _fail(f"the program has {size} instructions, the kernel takes {MAX_INSTRUCTIONS}")
    code = bytearray()
    for index, item in enumerate(items):
        code += _encode(item, len(code) // INSTRUCTION_BYTES, places, far.get(index, (False, False)))
    return bytes(code)


_Far: TypeAlias = dict[int, tuple[bool, bool]]


def _far_targets(items: Sequence[Item]) -> _Far:
    """Find the branches whose targets need a ``ja``; each one added moves others apart, so repeat until it settles."""
    far: _Far = {}
    while True:
        places, size = _layout(items, far)
        if size <= _SHORT_REACH:
            return far
        found: _Far = {}
        place = 0
        for index, item in enumerate(items):
            if isinstance(item, Branch):
                ends = tuple(
                    bool(t) and _distance(place, t, places) > _SHORT_REACH for t in (item.then, item.otherwise)
                )
                before = far.get(index, (False, False))
                found[index] = (ends[0] or before[0], ends[1] or before[1])
            place += _size(item, far.get(index, (False, False)))
        if found == far:
            return far
        far = found


def _layout(items: Sequence[Item], far: _Far) -> tuple[dict[str, int], int]:
    """Return the place of each label, and the length of the program."""
    places: dict[str, int] = {}
    place = 0
    for index, item in enumerate(items):
        if isinstance(item, Label):
            if item.name in places:
                _fail(f"label {item.name!r} is set twice")
            places[item.name] = place
        place += _size(item, far.get(index, (False, False)))
    return places, place


def _size(item: Item, far: tuple[bool, bool]) -> int:
    return 0 if isinstance(item, Label) else 1 + sum(far)


def _distance(place: int, target: str, places: dict[str, int]) -> int:
    """Return how many instructions a jump at ``place`` has to skip."""
    if target not in places:
        _fail(f"label {target!r} is not set")
    distance = places[target] - place - 1
    if distance < 0:
        _fail(f"label {target!r} lies behind a jump to it")
    return distance


def _encode(item: Item, place: int, places: dict[str, int], far: tuple[bool, bool]) -> bytes:
    if isinstance(item, Load):
        return _instruction(_LOAD_ABSOLUTE, item.offset)
    if isinstance(item, And):
        return _instruction(_AND_CONSTANT, item.mask)
    if isinstance(item, Return):
        return _instruction(_RETURN_CONSTANT, item.word)
    if isinstance(item, Goto):
        return _instruction(_JUMP_ALWAYS, _distance(place, item.target, places))
    if isinstance(item, Branch):
        return _encode_branch(item, place, places, far)
    return b""


def _encode_branch(item: Branch, place: int, places: dict[str, int], far: tuple[bool, bool]) -> bytes:
    """Encode a branch and the ``ja`` of each far target; a side that falls through skips them."""
    tail = b""
    reach: list[int] = []
    for target, is_far in zip((item.then, item.otherwise), far, strict=True):
        if is_far:
            hop = len(tail) // INSTRUCTION_BYTES
            reach.append(hop)
            tail += _instruction(_JUMP_ALWAYS, _distance(place + 1 + hop, target, places))
        else:
            reach.append(_distance(place, target, places) if target else sum(far))
    return _instruction(_JUMP_IF[item.test], item.operand, reach[0], reach[1]) + tail


def _instruction(code: int, operand: int, then: int = 0, otherwise: int = 0) -> bytes:
    return (code | then << 16 | otherwise << 24 | operand << 32).to_bytes(INSTRUCTION_BYTES, "little")


def _fail(message: str) -> NoReturn:
    line = f"system call filter: {message}"
    raise StockadeError(line, "this is a fault in stockade itself: please report it")
