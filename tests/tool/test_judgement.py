from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from stockade.tool.approval import Approval, ApprovalMode, Terms, Verdict
from stockade.tool.call import ShellCall
from stockade.tool.directory import WorkingDirectory
from stockade.tool.inheritance import Inheritance
from stockade.tool.judgement import Judge, Judgement
from stockade.tool.placement import Place
from stockade.tool.request import ApprovalAnswer, ApprovalChoice, ApprovalRequest
from stockade.tool.session import ToolSession

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.tool.conftest import Yard

    from stockade.policy.model import SandboxPolicy

OUT = ShellCall("ls", dangerously_disable_sandbox=True)
IN = ShellCall("ls")
PROMPT = Inheritance(terms=Terms(ApprovalMode.PROMPT))


def judged(
    policy: SandboxPolicy,
    call: ShellCall,
    answer: Callable[[ApprovalRequest, ToolSession], Awaitable[Any]] | None,
    inheritance: Inheritance = PROMPT,
) -> Judgement:
    async def main() -> Judgement:
        session = ToolSession(policy)

        async def ask(request: ApprovalRequest) -> ApprovalAnswer:
            assert answer is not None
            given: ApprovalAnswer = await answer(request, session)
            return given

        try:
            directory = WorkingDirectory(policy.cwd)
            return await Judge(session, directory, ask if answer else None, None).judge(call, inheritance)
        finally:
            await session.close()

    return asyncio.run(main())


async def yes(_request: ApprovalRequest, _session: ToolSession) -> ApprovalAnswer:
    return ApprovalAnswer(ApprovalChoice.ONCE)


async def no(_request: ApprovalRequest, _session: ToolSession) -> ApprovalAnswer:
    return ApprovalAnswer(ApprovalChoice.NO, reason="not today")


async def nonsense(_request: ApprovalRequest, _session: ToolSession) -> bool:
    return True


async def failure(_request: ApprovalRequest, _session: ToolSession) -> ApprovalAnswer:
    message = "lost <the> user"
    raise ConnectionError(message)


ANSWERS = {
    "yes": (yes, Approval(Verdict.ALLOW, "answer", "somebody was asked and said yes")),
    "no": (no, Approval(Verdict.REFUSE, "answer", "not today")),
    "no answer": (nonsense, Approval(Verdict.REFUSE, "answer", "asking gave no answer")),
    "failure": (failure, Approval(Verdict.REFUSE, "answer", "asking failed: ConnectionError: lost \\x3cthe\\x3e user")),
    "nobody": (
        None,
        Approval(
            Verdict.REFUSE,
            "answer",
            "it needs approval, and nobody can be asked: it would run outside: "
            "this call asked to run outside the sandbox",
        ),
    ),
}


@pytest.mark.parametrize(("answer", "approval"), ANSWERS.values(), ids=ANSWERS)
def test_answers(yard: Yard, answer: Any, approval: Approval) -> None:
    assert judged(yard.policy(), OUT, answer).approval == approval


def test_the_question_says_what_where_and_why(yard: Yard) -> None:
    seen: list[ApprovalRequest] = []

    async def look(request: ApprovalRequest, _session: ToolSession) -> ApprovalAnswer:
        seen.append(request)
        return ApprovalAnswer(ApprovalChoice.ONCE)

    judged(yard.policy(), ShellCall("ls", "look", dangerously_disable_sandbox=True), look)
    judged(yard.policy(), IN, look, PROMPT.child("helper"))
    assert [(one.outside, one.description, one.directory, one.agent) for one in seen] == [
        (True, "look", str(yard.project), ""),
        (False, "", str(yard.project), "helper"),
    ]


def changing(policy: SandboxPolicy) -> Callable[[ApprovalRequest, ToolSession], Awaitable[ApprovalAnswer]]:
    async def answer(_request: ApprovalRequest, session: ToolSession) -> ApprovalAnswer:
        await session.update(policy)
        return ApprovalAnswer(ApprovalChoice.ONCE)

    return answer


def test_what_is_shown_is_where_it_runs_whatever_the_directory_becomes(yard: Yard) -> None:
    async def swap(request: ApprovalRequest, _session: ToolSession) -> ApprovalAnswer:
        assert request.directory == str(yard.project)
        yard.project.rename(yard.project.with_name("moved"))
        yard.project.symlink_to(yard.outside)
        return ApprovalAnswer(ApprovalChoice.ONCE)

    answer = judged(yard.policy(enabled=False), ShellCall("ls"), swap)
    assert answer.place_on_disk == str(yard.project)


def test_a_yes_to_outside_is_worth_nothing_once_the_policy_forbids_it(yard: Yard) -> None:
    strict = yard.policy(allowUnsandboxedCommands=False)
    found = judged(yard.policy(), OUT, changing(strict))
    assert (found.placement.place, found.approval.verdict) == (Place.INSIDE, Verdict.ALLOW)


def test_a_yes_to_inside_is_none_to_outside(yard: Yard) -> None:
    found = judged(yard.policy(), IN, changing(yard.policy(enabled=False)))
    assert found.approval.verdict is Verdict.REFUSE
    assert "the settings changed while it was asked for" in found.approval.reason


def test_a_rule_that_denies_meanwhile_holds(yard: Yard) -> None:
    found = judged(yard.policy(), IN, changing(yard.policy({"deny": ("Bash(ls:*)",)})))
    assert (found.approval.verdict, found.approval.by) == (Verdict.REFUSE, "deny rule")


def test_a_sub_agents_bypass_stays_inside(yard: Yard) -> None:
    found = judged(yard.policy(), OUT, None, Inheritance().child("helper"))
    assert (found.placement.place, found.approval.by) == (Place.INSIDE, "walls")


def test_a_program_that_is_planted_while_somebody_is_asked_does_not_run(yard: Yard) -> None:
    planted = yard.project / "bin" / "tool"

    async def plant(_request: ApprovalRequest) -> ApprovalAnswer:
        planted.parent.mkdir()
        planted.touch(mode=0o755)
        return ApprovalAnswer(ApprovalChoice.ONCE)

    async def main() -> Judgement:
        session = ToolSession(yard.policy(), environment={"PATH": f"{planted.parent}:/usr/bin:/bin"})
        try:
            judge = Judge(session, WorkingDirectory(str(yard.project)), plant, None)
            return await judge.judge(ShellCall("(tool)", dangerously_disable_sandbox=True), PROMPT)
        finally:
            await session.close()

    approval = asyncio.run(main()).approval
    assert approval.verdict is Verdict.REFUSE
    assert "changed while it was asked for" in approval.reason
