from __future__ import annotations

import pytest

from stockade.policy.compile import compile_policy
from stockade.settings.merge import EMPTY


def test_a_policy_is_a_value() -> None:
    policy = compile_policy(EMPTY, cwd="/p", home="/h")
    assert policy.cwd == "/p"
    assert policy.home == "/h"
    assert repr(policy).startswith("SandboxPolicy(mode=Mode(")
    with pytest.raises(AttributeError):
        policy.ripgrep = ()  # type: ignore[misc]
    assert policy.but(ripgrep=("rg",)) != policy
