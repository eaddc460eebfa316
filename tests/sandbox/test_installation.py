from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import stockade
from stockade.sandbox.installation import own_places, writable_places

if TYPE_CHECKING:
    from tests.sandbox.conftest import Ground


def test_package_and_interpreter_are_our_places() -> None:
    assert {os.path.dirname(os.path.abspath(stockade.__file__)), sys.executable, sys.prefix} <= set(own_places())


def test_what_lies_in_a_writable_place_is_told(ground: Ground) -> None:
    inside, outside = str(ground.project / "venv"), str(ground.home / "venv")
    assert writable_places(ground.policy(), (inside, outside)) == (inside,)
    assert writable_places(ground.policy(filesystem__denyWrite=(inside,)), (inside, outside)) == ()
    assert writable_places(ground.policy(filesystem__allowWrite=(outside,)), (inside, outside)) == (inside, outside)


def test_what_leads_into_a_writable_place_is_told(ground: Ground) -> None:
    link = ground.home / "venv"
    link.symlink_to(ground.project / "venv")
    assert writable_places(ground.policy(), (str(link),)) == (str(link),)
