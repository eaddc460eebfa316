from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.tool.call import ShellCall
from stockade.tool.job_call import JobAction, JobCall, job_definition, run_job_call
from stockade.tool.shell_tool import ShellTool

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

REFUSED: dict[str, tuple[Any, str]] = {
    "no JSON": ("{", "not JSON"),
    "no object": ("3", "must be a JSON object"),
    "no action": ({}, "action must be one of list, read, end"),
    "another action": ({"action": "kill"}, "action must be one of"),
    "an action of another type": ({"action": ["list"]}, "action must be one of"),
    "no job": ({"action": "read"}, "job is missing"),
    "a number": ({"action": "read", "job": 1}, "job the name of one"),
    "another name": ({"action": "list", "id": "x"}, '"id" is not known'),
}


def test_what_a_model_sends_is_read() -> None:
    assert JobCall.parse('{"action": "list"}') == JobCall(JobAction.LIST)
    assert JobCall.parse({"action": "end", "job": "job-1"}) == JobCall(JobAction.END, "job-1")


@pytest.mark.parametrize(("given_input", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said(given_input: Any, why: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        JobCall.parse(given_input)
    assert why in caught.value.message


@given(st.one_of(st.text(), st.binary(), st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text()))))
def test_no_input_breaks_the_reader(anything: Any) -> None:
    with suppress(InvalidTextError):
        JobCall.parse(anything)


def test_the_schema_names_what_is_read() -> None:
    schema = job_definition()["input_schema"]
    assert [*schema["properties"]] == ["action", "job"]
    assert schema["properties"]["action"]["enum"] == ["list", "read", "end"]


def test_answers_for_the_model(yard: Yard) -> None:
    async def main() -> None:
        async with ShellTool(yard.policy()) as tool:
            assert await run_job_call(tool.jobs, JobCall(JobAction.LIST)) == "no job was started"
            await tool.run(ShellCall("echo x; exit 3", run_in_background=True))
            state = await tool.jobs.wait("job-1")
            words = f"x\n{tool.mark.line(str(state))}"
            assert await run_job_call(tool.jobs, JobCall(JobAction.READ, "job-1")) == words
            assert await run_job_call(tool.jobs, JobCall(JobAction.END, "job-1")) == f"[{state}]"
            assert await run_job_call(tool.jobs, JobCall(JobAction.LIST)) == str(state)
            missing = await run_job_call(tool.jobs, JobCall(JobAction.READ, "x"))
            assert missing == "there is no background job x (known: job-1)"
            assert await tool.run_job(JobCall(JobAction.LIST)) == tool.mark.line(str(state))
            assert await tool.run_job(JobCall(JobAction.END, "job-1")) == tool.mark.line(str(state))
            assert await tool.run_job(JobCall(JobAction.READ, "x")) == tool.mark.line(missing)

    asyncio.run(main())
