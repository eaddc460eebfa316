from __future__ import annotations

import ast

import pytest

from stockade.platforms.linux.attack import ATTACKS, PRELUDE, Attack


@pytest.mark.parametrize("attack", [pytest.param(attack, id=attack.name) for attack in ATTACKS])
def test_every_script_is_a_program(attack: Attack) -> None:
    ast.parse(PRELUDE + attack.script)


def test_names_are_unique() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert len(ATTACKS) >= 12
