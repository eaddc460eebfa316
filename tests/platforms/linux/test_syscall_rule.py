from __future__ import annotations

from errno import ENOSYS, EPERM

import pytest

from stockade.platforms.linux.syscall_rule import (
    Condition,
    SyscallRule,
    Verdict,
    has_any_bit,
    is_none_of,
    is_one_of,
)


@pytest.mark.parametrize(
    ("verdict", "word", "text"),
    [
        # <linux/seccomp.h>: SECCOMP_RET_ALLOW, _USER_NOTIF, _ERRNO, _KILL_PROCESS; the low 16 bits are data.
        pytest.param(Verdict("allow"), 0x7FFF_0000, "allow", id="allow"),
        pytest.param(Verdict("notify"), 0x7FC0_0000, "notify", id="notify"),
        pytest.param(Verdict("errno", EPERM), 0x0005_0001, "EPERM", id="refuse"),
        pytest.param(Verdict("errno", ENOSYS), 0x0005_0026, "ENOSYS", id="pretend it is not there"),
        pytest.param(Verdict("kill"), 0x8000_0000, "kill", id="kill"),
    ],
)
def test_a_verdict_is_the_kernels_word(verdict: Verdict, word: int, text: str) -> None:
    assert (verdict.word, str(verdict)) == (word, text)


@pytest.mark.parametrize(
    ("condition", "same", "text"),
    [
        pytest.param(is_one_of(1, 2, 16), Condition(1, (2, 16)), "arg1 in {0x2, 0x10}", id="one of"),
        pytest.param(is_one_of(0, 1, mask=0xF), Condition(0, (1,), 0xF), "(arg0 & 0xf) in {0x1}", id="one of, masked"),
        pytest.param(is_none_of(2, 0), Condition(2, (0,), negated=True), "arg2 not in {0x0}", id="none of"),
        pytest.param(
            has_any_bit(0, 0x30), Condition(0, (0,), 0x30, negated=True), "(arg0 & 0x30) not in {0x0}", id="any bit"
        ),
    ],
)
def test_conditions_read_as_c_would(condition: Condition, same: Condition, text: str) -> None:
    assert condition == same
    assert str(condition) == text


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        pytest.param(SyscallRule("mount", Verdict("errno", EPERM), "walls"), "mount: EPERM (walls)", id="always"),
        pytest.param(
            SyscallRule("socket", Verdict("notify"), "asked", (is_one_of(0, 1), is_none_of(1, 2, mask=0xF))),
            "socket if arg0 in {0x1} and (arg1 & 0xf) not in {0x2}: notify (asked)",
            id="under conditions",
        ),
    ],
)
def test_a_rule_is_one_line(rule: SyscallRule, text: str) -> None:
    assert str(rule) == text
