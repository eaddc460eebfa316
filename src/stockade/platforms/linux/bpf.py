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
    """Return the program as the kernel takes it.

    It is written from its end: every jump goes forward, so that what it skips is known when its turn comes.
    """
    if not items or not isinstance(items[-1], Return):
        _fail("the program does not end in a return")
    code: list[int] = []
    places: dict[str, int] = {}
    for item in reversed(items):
        if isinstance(item, Label):
            if item.name in places:
                _fail(f"label {item.name!r} is set twice")
            places[item.name] = len(code)
        else:
            _write(item, code, places, items)
    if len(code) > MAX_INSTRUCTIONS:
        _fail(f"the program has {len(code)} instructions, the kernel takes {MAX_INSTRUCTIONS}")
    return b"".join(word.to_bytes(INSTRUCTION_BYTES, "little") for word in reversed(code))


def _write(item: Item, code: list[int], places: dict[str, int], items: Sequence[Item]) -> None:
    """Put an instruction before those that are there."""
    if isinstance(item, Branch):
        _write_branch(item, code, [_distance(t, code, places, items) for t in (item.then, item.otherwise)])
    elif isinstance(item, Load):
        code.append(_instruction(_LOAD_ABSOLUTE, item.offset))
    elif isinstance(item, And):
        code.append(_instruction(_AND_CONSTANT, item.mask))
    elif isinstance(item, Return):
        code.append(_instruction(_RETURN_CONSTANT, item.word))
    elif isinstance(item, Goto):
        code.append(_instruction(_JUMP_ALWAYS, _distance(item.target, code, places, items)))


def _distance(target: str, code: list[int], places: dict[str, int], items: Sequence[Item]) -> int:
    """Return how many of the instructions that are there a jump skips; an empty label skips none."""
    if not target:
        return 0
    if target not in places:
        _fail(f"label {target!r} {'lies behind a jump to it' if Label(target) in items else 'is not set'}")
    return len(code) - places[target]


def _write_branch(item: Branch, code: list[int], skips: list[int]) -> None:
    """Put a branch there, and behind it a ``ja`` for each target that it cannot reach; the other side skips that."""
    far = [skip > _SHORT_REACH for skip in skips]
    hops = sum(far)
    if not all(far):
        far = [skip + hops > _SHORT_REACH for skip in skips]
        hops = sum(far)
    reach: list[int] = []
    jumps: list[int] = []
    for skip, is_far in zip(skips, far, strict=True):
        reach.append(len(jumps) if is_far else skip + hops)
        if is_far:
            jumps.append(_instruction(_JUMP_ALWAYS, skip + hops - len(jumps) - 1))
    code += reversed(jumps)
    code.append(_instruction(_JUMP_IF[item.test], item.operand, reach[0], reach[1]))


def _instruction(code: int, operand: int, then: int = 0, otherwise: int = 0) -> int:
    return code | then << 16 | otherwise << 24 | operand << 32


def _fail(message: str) -> NoReturn:
    line = f"system call filter: {message}"
    raise StockadeError(line, "this is a fault in stockade itself: please report it")
