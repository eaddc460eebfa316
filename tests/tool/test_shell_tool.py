from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import StockadeError, UnavailableError
from stockade.policy.live import LivePolicy
from stockade.tool.allowance import SKIP_CHECK, SKIPPED
from stockade.tool.approval import ApprovalMode
from stockade.tool.call import ShellCall
from stockade.tool.placement import Place, Placement
from stockade.tool.request import ApprovalAnswer, ApprovalChoice, ApprovalRequest
from stockade.tool.shell_tool import ShellTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.tool.conftest import Yard

    from stockade.platforms.backend import Walls
    from stockade.policy.model import SandboxPolicy


async def yes(_request: ApprovalRequest) -> ApprovalAnswer:
    return ApprovalAnswer(ApprovalChoice.ONCE)


def play(script: Callable[[ShellTool], Awaitable[None]], policy: SandboxPolicy | LivePolicy, **options: Any) -> None:
    async def main() -> None:
        async with ShellTool(policy, **options) as tool:
            await script(tool)

    asyncio.run(main())


@pytest.mark.parametrize("enabled", [True, False], ids=["inside", "outside"])
def test_a_call_runs_with_both_streams_in_order(yard: Yard, *, enabled: bool) -> None:
    async def script(tool: ShellTool) -> None:
        heard: list[bytes] = []
        done = await tool.run(ShellCall("echo a; echo b >&2; echo c; exit 3"), on_output=heard.append)
        assert (done.exit_code, done.output, b"".join(heard)) == (3, "a\nb\nc\n", b"a\nb\nc\n")
        assert done.placement is not None
        assert done.placement.place is (Place.INSIDE if enabled else Place.OUTSIDE)
        assert (await tool.run(ShellCall("kill -TERM $$"))).signal == 15

    play(script, yard.policy(enabled=enabled), approve=yes)


@pytest.mark.parametrize("enabled", [True, False], ids=["inside", "outside"])
def test_the_directory_is_kept_and_leaving_is_noticed(yard: Yard, *, enabled: bool) -> None:
    async def script(tool: ShellTool) -> None:
        assert (await tool.run(ShellCall("mkdir sub && cd sub"))).directory == str(yard.project / "sub")
        assert (await tool.run(ShellCall("pwd"))).output == f"{yard.project}/sub\n"
        left = await tool.run(ShellCall(f"cd {yard.outside}"))
        assert left.notes == (
            f"the working directory is now {yard.outside}, outside the writable places of this session",
        )
        refused = await tool.run(ShellCall("touch x"))
        assert refused.ok is not enabled
        await tool.run(ShellCall(f"cd {yard.project}; rmdir sub"))
        assert tool.directory == str(yard.project)

    play(script, yard.policy(enabled=enabled), approve=yes)


def test_time_runs_out_for_the_whole_tree(yard: Yard) -> None:
    async def script(tool: ShellTool) -> None:
        for bypass in (False, True):
            call = ShellCall("echo x; sleep 300 & sleep 300; echo y", timeout=0.3, dangerously_disable_sandbox=bypass)
            done = await tool.run(call)
            assert (done.timed_out, done.ok, done.output) == (True, False, "x\n")
            assert "the timeout was reached" in done.for_model

    play(script, yard.policy(), approve=yes)


def test_modes_that_run_nothing_look_at_nothing(yard: Yard) -> None:
    def walls(_temporary: str) -> Walls:
        pytest.fail("nobody asked for walls")

    async def script(tool: ShellTool) -> None:
        for mode in (ApprovalMode.PLAN, ApprovalMode.NONE):
            tool.mode = mode
            done = await tool.run(ShellCall("touch x", dangerously_disable_sandbox=True))
            assert (done.placement, done.approval.by, done.ok) == (None, f"mode {mode.value}", False)
            assert done.for_model == tool.mark.line(f"The command did not run: {done.refusal}")
        assert not (yard.project / "x").exists()

    play(script, yard.policy(), approve=yes, walls=walls)


def test_walls_that_cannot_be_built(yard: Yard) -> None:
    def walls(_temporary: str) -> Walls:
        message = "no user namespaces"
        raise UnavailableError(message, "enable them")

    async def refused(tool: ShellTool) -> None:
        for bypass in (True, False):
            done = await tool.run(ShellCall("touch x", dangerously_disable_sandbox=bypass))
            assert done.refusal == "the sandbox is on, but cannot be built here: no user namespaces; enable them"
        assert not (yard.project / "x").exists()

    async def bare(tool: ShellTool) -> None:
        done = await tool.run(ShellCall("touch x"))
        assert done.ok
        words = "NO SANDBOX: it is on, but cannot be built here: no user namespaces; enable them"
        assert done.for_model.endswith(f"\n{tool.mark.line(words)}")

    play(refused, yard.policy(), approve=yes, walls=walls)
    play(bare, yard.policy(failIfUnavailable=False), approve=yes, walls=walls)


def test_nothing_to_run(yard: Yard) -> None:
    async def script(tool: ShellTool) -> None:
        done = await tool.run(ShellCall("  "))
        line = tool.mark.line
        assert (done.ok, done.for_model) == (True, f"{line('no output')}\n{line('there was nothing to run')}")
        assert done.for_people == "[no output]\n[there was nothing to run]"

    play(script, yard.policy())


def test_what_the_sandbox_cannot_run_is_a_result(yard: Yard) -> None:
    async def script(tool: ShellTool) -> None:
        done = await tool.run(ShellCall("ls"))
        assert "there is no shell" in done.refusal

    play(script, yard.policy(), environment={"PATH": "/nonexistent", "SHELL": "/nonexistent"})


def test_an_answer_that_is_kept_counts_from_the_next_call_on(yard: Yard) -> None:
    yard.user({"sandbox": {"enabled": True}})
    asked: list[ApprovalRequest] = []

    async def always(request: ApprovalRequest) -> ApprovalAnswer:
        asked.append(request)
        return request.suggestions[1].answer

    async def script(tool: ShellTool) -> None:
        call = ShellCall("id -u", dangerously_disable_sandbox=True)
        first = await tool.run(call)
        assert first.notes == (f"kept in {yard.local}: allowed from now on: Bash(id:*)",)
        second = await tool.run(call)
        assert (second.approval.by, len(asked)) == ("allow rule", 1)
        third = await tool.run(ShellCall("id -g"))
        assert third.placement == Placement(Place.INSIDE, "walls", "the sandbox is on")

    play(script, LivePolicy(yard.locations), approve=always, locations=yard.locations)


def test_skipping_permissions_and_root(yard: Yard) -> None:
    policy = yard.policy(enabled=False)
    environment = dict(os.environ)
    environment.pop("IS_SANDBOX", None)
    if os.geteuid() == 0:
        with pytest.raises(StockadeError, match="as root"):
            ShellTool(policy, skip_permissions=True, environment=environment)

    async def script(tool: ShellTool) -> None:
        done = await tool.run(ShellCall("echo x"))
        assert (done.approval.by, done.output) == ("skipped", "x\n")

    play(script, policy, skip_permissions=True, environment=environment | {"IS_SANDBOX": "1"})


def test_without_the_injection_check_everybody_is_told(yard: Yard, capfd: pytest.CaptureFixture[str]) -> None:
    async def script(tool: ShellTool) -> None:
        done = await tool.run(ShellCall("echo $(echo x)"))
        assert (done.approval.by, done.output) == ("allow rule", "x\n")
        assert SKIPPED in done.notes

    policy = yard.policy({"allow": ("Bash(echo:*)",)}, enabled=False)
    play(script, policy, environment=os.environ | {SKIP_CHECK: "1"})
    assert capfd.readouterr().err == f"stockade: {SKIPPED}\n"


def test_a_child_shares_the_session_and_has_no_bypass(yard: Yard) -> None:
    async def script(tool: ShellTool) -> None:
        await tool.run(ShellCall("mkdir sub; cd sub; echo kept > $TMPDIR/note"))
        child = tool.child("helper")
        assert child.directory == str(yard.project / "sub")
        call = ShellCall(f"cat $TMPDIR/note; touch {yard.outside}/x; cd /", dangerously_disable_sandbox=True)
        done = await child.run(call)
        assert done.placement is not None
        assert done.placement.reason == "the sandbox is on; a sub-agent cannot run anything outside it"
        assert done.output.startswith("kept\n")
        assert not (yard.outside / "x").exists()
        assert tool.directory == str(yard.project / "sub")
        assert "dangerously" not in child.guidance + str(child.definition)
        assert "dangerouslyDisableSandbox" in tool.guidance
        assert "dangerouslyDisableSandbox" in str(tool.definition)
        await child.run(ShellCall("sleep 300", run_in_background=True))
        await child.close()
        assert [state.running for state in child.jobs.list()] == [False]
        assert (await tool.run(ShellCall("echo still here"))).ok

    play(script, yard.policy(), approve=yes)


def test_guidance_follows_the_policy(yard: Yard) -> None:
    async def script(tool: ShellTool) -> None:
        assert tool.guidance == ""
        await tool.update(yard.policy())
        assert "$TMPDIR (" not in tool.guidance
        temporary = (await tool.run(ShellCall("echo $TMPDIR"))).output.strip()
        assert f'$TMPDIR ("{temporary}")' in tool.guidance
        await tool.update(yard.policy(filesystem__allowWrite=("/srv/x",)))
        assert "/srv/x" in tool.guidance

    play(script, yard.policy(enabled=False))


def test_a_closed_tool_runs_nothing(yard: Yard) -> None:
    async def main() -> None:
        tool = ShellTool(yard.policy())
        await tool.close()
        assert "is closed" in (await tool.run(ShellCall("ls"))).refusal

    asyncio.run(main())


def test_closing_ends_what_runs(yard: Yard) -> None:
    async def main() -> None:
        tool = ShellTool(yard.policy(), approve=yes)
        heard = asyncio.Event()
        calls = [ShellCall("echo x; sleep 300", dangerously_disable_sandbox=bypass) for bypass in (True, False)]
        outside = asyncio.create_task(tool.run(calls[0], on_output=lambda _: heard.set()))
        await heard.wait()
        heard.clear()
        inside = asyncio.create_task(tool.run(calls[1], on_output=lambda _: heard.set()))
        await heard.wait()
        await tool.close()
        assert (await outside).signal == 9
        assert not (await inside).ok

    asyncio.run(main())


def test_definitions(yard: Yard) -> None:
    tool = ShellTool(yard.policy())
    assert [tool.definition["name"], tool.job_definition["name"]] == ["shell", "shell_jobs"]


def test_in_plan_mode_the_plan_may_be_written(yard: Yard) -> None:
    tool = ShellTool(yard.policy(), mode=ApprovalMode.PLAN, plan_file="/plan.md")
    for agent in (tool, tool.child("helper")):
        assert (agent.may_edit("/plan.md"), agent.may_edit("/x")) == (True, False)
    tool.mode = ApprovalMode.OPEN
    assert tool.may_edit("/x")
