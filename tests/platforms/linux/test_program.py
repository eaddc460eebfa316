from __future__ import annotations

import os

import pytest

from stockade.platforms.linux.program import name, program
from stockade.platforms.linux.seccomp import Features
from stockade.platforms.linux.seccomp import program as assemble
from stockade.platforms.linux.syscalls import arch_of


@pytest.mark.parametrize(
    ("named", "features"),
    [
        pytest.param(name(), Features(), id="the usual one"),
        pytest.param(name("all"), Features(unix_sockets="all"), id="unix sockets"),
        pytest.param(name(tracing=False), Features(tracing=False), id="no tracing"),
        pytest.param(name("stream", tracing=False), Features(unix_sockets="stream", tracing=False), id="both"),
    ],
)
def test_a_name_means_a_program_for_this_machine(named: bytes, features: Features) -> None:
    assert program(named) == assemble(arch_of(os.uname().machine), features)
    assert program(named) is program(named)


def test_the_usual_one_needs_no_name() -> None:
    assert program() is program(name())
