from __future__ import annotations

import pytest

from stockade.tool.approval import Approval, Verdict
from stockade.tool.shell_result import ShellResult

YES = Approval(Verdict.ALLOW, "walls", "it runs inside the sandbox")
ENDS = {
    "status 0": (ShellResult("x", YES, exit_code=0), True),
    "status 1": (ShellResult("x", YES, exit_code=1), False),
    "a signal": (ShellResult("x", YES, signal=9), False),
    "refused": (ShellResult("x", YES, refusal="no"), False),
    "a job": (ShellResult("x", YES, job="job-1"), True),
}


@pytest.mark.parametrize(("result", "ok"), ENDS.values(), ids=ENDS)
def test_what_counts_as_good(result: ShellResult, *, ok: bool) -> None:
    assert result.ok is ok


def test_words_for_both() -> None:
    result = ShellResult("x", YES, exit_code=1, output="a", advice="advice")
    assert result.for_model == "a\n[exit status 1]\n[advice]"
    assert result.for_people == "a\n[exit status 1]"
