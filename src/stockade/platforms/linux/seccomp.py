"""The seccomp filter of a session, as bytes.

``program`` turns the rules of ``confinement`` into classic BPF for one architecture. Rules of this
compiler: a call through another architecture's table (i386 by ``int 0x80``, x32, 32-bit ARM) ends the
process, because numbers mean something else there; a number that the table does not know is answered
``ENOSYS``, so a kernel younger than this package offers nothing that was not thought about; -1 passes,
since it is no call at all (tracers set it to skip one).

The number is found by binary search. Paths that end in "allow" without looking at an argument use only
instructions that the kernel can evaluate ahead (``seccomp_is_const_allow``): from Linux 5.11 such calls
never run the program at all.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.platforms.linux import bpf
from stockade.platforms.linux.confinement import ABSENT, NOTIFIED, Features, UnixSockets, rules
from stockade.platforms.linux.syscall_rule import FULL_WORD, Condition, SyscallRule, Verdict
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.platforms.linux.syscalls import Arch

__all__ = ["ALLOWED", "KILLED", "Features", "Guard", "UnixSockets", "guards", "notified_first", "program", "rules"]

ALLOWED = Verdict("allow")
KILLED = Verdict("kill")

_NUMBER_OFFSET, _ARCH_OFFSET, _ARGUMENTS_OFFSET, _ARGUMENT_BYTES = 0, 4, 16, 8
_X32_FIRST, _NEGATIVE_FIRST, _SKIPPED = 0x4000_0000, 0x8000_0000, 0xFFFF_FFFF


class Guard(Value):
    """What holds for whole ranges of calls, before any rule about a name."""

    what: str
    verdict: Verdict
    reason: str


def guards(arch: Arch) -> tuple[Guard, ...]:
    """Return what the program does with calls that have no name in the table of the architecture."""
    return (
        Guard(f"calls of another architecture than {arch.name}", KILLED, "their numbers mean other calls"),
        *((Guard("x32 calls", KILLED, "a second table of numbers, around all rules"),) if arch.has_x32 else ()),
        Guard("unknown calls", ABSENT, "a newer kernel may do anything there; programs fall back"),
    )


def program(arch: Arch, features: Features) -> bytes:
    """Return the filter as the kernel takes it (``struct sock_filter[]``)."""
    by_name: dict[str, list[SyscallRule]] = {}
    for rule in rules(features):
        by_name.setdefault(rule.name, []).append(rule)
    names = arch.numbers()
    bodies: dict[object, str] = {}
    for name in names:
        if name in by_name and by_name[name][0].when:
            bodies.setdefault(_sense(by_name[name]), name)
    items: list[bpf.Item] = [
        bpf.Load(_ARCH_OFFSET),
        bpf.Branch("eq", arch.token, otherwise=str(KILLED)),
        bpf.Load(_NUMBER_OFFSET),
        *_search(_ranges(arch, {number: _entry(name, by_name, bodies) for name, number in names.items()})),
        *(item for name in bodies.values() for item in _body(name, by_name[name])),
    ]
    return bpf.assemble([*items, *_returns(by_name)])


def notified_first(arch: Arch, names: Iterable[str]) -> bytes:
    """Return what makes of a program one that asks somebody about these calls; it is put before the program."""
    numbers = arch.numbers()
    asked, rest = "asked", "rest"
    *others, last = [numbers[name] for name in names if name in numbers]
    end = bpf.Return(ALLOWED.word)  # where the program begins
    items: list[bpf.Item] = [
        bpf.Load(_ARCH_OFFSET),
        bpf.Branch("eq", arch.token, otherwise=rest),
        bpf.Load(_NUMBER_OFFSET),
        *(bpf.Branch("eq", number, then=asked) for number in others),
        bpf.Branch("eq", last, otherwise=rest),
        bpf.Label(asked),
        bpf.Return(NOTIFIED.word),
        bpf.Label(rest),
        end,
    ]
    return bpf.assemble(items)[: -bpf.INSTRUCTION_BYTES]


def _sense(tried: list[SyscallRule]) -> object:
    """Return what rules do, whatever they are about: calls whose rules do the same share their code."""
    return tuple((rule.verdict, rule.when) for rule in tried)


def _entry(name: str, by_name: dict[str, list[SyscallRule]], bodies: dict[object, str]) -> str:
    """Return the label where a call goes: straight to its verdict, or to the rules about its arguments."""
    if name not in by_name:
        return str(ALLOWED)
    first = by_name[name][0]
    return _step(bodies[_sense(by_name[name])], 0) if first.when else str(first.verdict)


def _step(name: str, index: int) -> str:
    return f"{name}.{index}"


def _ranges(arch: Arch, entries: dict[int, str]) -> list[tuple[int, str]]:
    """Return where each run of numbers with one entry begins, over all 32-bit numbers."""
    last = max(entries)
    points = [(number, entries.get(number, str(ABSENT))) for number in range(last + 1)]
    points += [
        (last + 1, str(ABSENT)),
        (_X32_FIRST, str(KILLED if arch.has_x32 else ABSENT)),
        (_NEGATIVE_FIRST, str(ABSENT)),
        (_SKIPPED, str(ALLOWED)),
    ]
    return [point for index, point in enumerate(points) if index == 0 or points[index - 1][1] != point[1]]


def _search(ranges: list[tuple[int, str]]) -> list[bpf.Item]:
    """Return a balanced tree of comparisons that ends at the entry of the range."""
    middle = len(ranges) // 2
    left, right = ranges[:middle], ranges[middle:]
    below = left[0][1] if len(left) == 1 else ""
    pivot = right[0][0]
    above = right[0][1] if len(right) == 1 else f"from {pivot}"
    items: list[bpf.Item] = [bpf.Branch("ge", pivot, above, below)]
    if not below:
        items += _search(left)
    if len(right) > 1:
        items += [bpf.Label(above), *_search(right)]
    return items


def _body(name: str, tried: list[SyscallRule]) -> list[bpf.Item]:
    """Return the code that tries the rules of one call in order; its last jumps go straight to where they end."""
    items: list[bpf.Item] = []
    for index, rule in enumerate(tried):
        items.append(bpf.Label(_step(name, index)))
        failed = _step(name, index + 1) if index + 1 < len(tried) else str(ALLOWED)
        if not rule.when:
            items.append(bpf.Goto(str(rule.verdict)))
        for place, condition in enumerate(rule.when):
            is_last = place + 1 == len(rule.when)
            items += _test(condition, str(rule.verdict) if is_last else f"{_step(name, index)}.{place}", failed)
            if not is_last:
                items.append(bpf.Label(f"{_step(name, index)}.{place}"))
    return items


def _test(condition: Condition, held: str, failed: str) -> list[bpf.Item]:
    """Return code that goes to ``held`` if the condition holds, and to ``failed`` if not."""
    items: list[bpf.Item] = [bpf.Load(_ARGUMENTS_OFFSET + _ARGUMENT_BYTES * condition.argument)]
    if condition.mask != FULL_WORD:
        items.append(bpf.And(condition.mask))
    found, missed = (failed, held) if condition.negated else (held, failed)
    *others, last = condition.values
    items += [bpf.Branch("eq", value, then=found) for value in others]
    return [*items, bpf.Branch("eq", last, then=found, otherwise=missed)]


def _returns(by_name: dict[str, list[SyscallRule]]) -> list[bpf.Item]:
    """Return the ends of the program, one for each verdict."""
    verdicts = {rule.verdict for tried in by_name.values() for rule in tried} | {ALLOWED, ABSENT, KILLED}
    ends = sorted(verdicts, key=lambda verdict: verdict.word)
    return [item for verdict in ends for item in (bpf.Label(str(verdict)), bpf.Return(verdict.word))]
