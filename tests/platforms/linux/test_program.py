from __future__ import annotations

import os

from stockade.platforms.linux.program import program
from stockade.platforms.linux.seccomp import Features
from stockade.platforms.linux.seccomp import program as assemble
from stockade.platforms.linux.syscalls import arch_of


def test_made_once_for_this_machine() -> None:
    assert program() is program()
    assert program() == assemble(arch_of(os.uname().machine), Features())
    assert program("all") != program()
    assert program(tracing=False) != program()
