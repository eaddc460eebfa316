"""What a filter says about one system call: values that can be printed before they become bytes.

A call goes through the rules of its name in order; the first whose conditions all hold gives the
verdict, and a call that no rule holds for is allowed. Conditions look at the low 32 bits of an
argument alone, so they may be used only where the kernel itself drops the high half: for ``int``,
``unsigned int`` and ``umode_t`` parameters, and for the flags of ``clone`` and ``unshare``
(whose high half is dropped, or refused when set). Otherwise rubbish in the high half would slip through.
"""

from __future__ import annotations

from errno import errorcode

from stockade.value import Value

FULL_WORD = 0xFFFF_FFFF


class Verdict(Value):
    """What the kernel does with a call: ``action`` is ``allow``, ``errno``, ``notify`` or ``kill``."""

    action: str
    errno: int = 0

    def __str__(self) -> str:
        """Return one word, such as ``EPERM`` or ``notify``."""
        return errorcode[self.errno] if self.action == "errno" else self.action

    @property
    def word(self) -> int:
        """The word that the program returns (``SECCOMP_RET_*``)."""
        return _WORDS[self.action] | self.errno


_WORDS = {"allow": 0x7FFF_0000, "notify": 0x7FC0_0000, "errno": 0x0005_0000, "kill": 0x8000_0000}


class Condition(Value):
    """Argument number ``argument``, masked, is one of ``values`` (or, with ``negated``, is none of them)."""

    argument: int
    values: tuple[int, ...]
    mask: int = FULL_WORD
    negated: bool = False

    def __str__(self) -> str:
        """Return the condition as a C programmer would write it."""
        masked = f"arg{self.argument}" if self.mask == FULL_WORD else f"(arg{self.argument} & {self.mask:#x})"
        return f"{masked} {'not in' if self.negated else 'in'} {{{', '.join(f'{value:#x}' for value in self.values)}}}"


class SyscallRule(Value):
    """One rule: the call, the conditions that must all hold, the verdict, and why."""

    name: str
    verdict: Verdict
    reason: str
    when: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        """Return one line for people."""
        condition = f" if {' and '.join(map(str, self.when))}" if self.when else ""
        return f"{self.name}{condition}: {self.verdict} ({self.reason})"


def is_one_of(argument: int, *values: int, mask: int = FULL_WORD) -> Condition:
    """Hold if the masked argument is one of the values."""
    return Condition(argument, values, mask)


def is_none_of(argument: int, *values: int, mask: int = FULL_WORD) -> Condition:
    """Hold if the masked argument is none of the values."""
    return Condition(argument, values, mask, negated=True)


def has_any_bit(argument: int, bits: int) -> Condition:
    """Hold if at least one of the bits is set."""
    return Condition(argument, (0,), bits, negated=True)
