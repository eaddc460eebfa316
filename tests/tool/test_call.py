from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.tool.call import DEFAULT_TIMEOUT, LONGEST_COMMAND, ShellCall, definition, input_schema

READ = {
    "the least": ({"command": "ls"}, ShellCall("ls")),
    "everything": (
        {
            "command": "make",
            "description": "Build it",
            "timeout": 1500,
            "run_in_background": True,
            "dangerouslyDisableSandbox": True,
        },
        ShellCall("make", "Build it", 1.5, run_in_background=True, dangerously_disable_sandbox=True),
    ),
    "JSON": ('{"command": "ls"}', ShellCall("ls")),
    "JSON bytes": (b'{"command": "ls"}', ShellCall("ls")),
    "nothing to run": ({"command": ""}, ShellCall("")),
    "a fraction": ({"command": "ls", "timeout": 0.5}, ShellCall("ls", timeout=0.0005)),
    "the longest timeout": ({"command": "ls", "timeout": 600_000}, ShellCall("ls", timeout=600.0)),
}

REFUSED = {
    "no JSON": ("{", "not JSON"),
    "no object": ("[]", "must be a JSON object"),
    "no command": ({}, "command is missing"),
    "unknown name": ({"command": "ls", "comand": "ls"}, '"comand" is not known'),
    "our own name of it": ({"command": "ls", "dangerously_disable_sandbox": True}, "is not known"),
    "command of another type": ({"command": ["ls"]}, "command must be text"),
    "number in quotes": ({"command": "ls", "timeout": "1000"}, "timeout must be a number"),
    "true as a number": ({"command": "ls", "timeout": True}, "timeout must be a number"),
    "a number as true": ({"command": "ls", "dangerouslyDisableSandbox": 1}, "must be true or false"),
    "text as true": ({"command": "ls", "run_in_background": "yes"}, "must be true or false"),
    "too long a timeout": ({"command": "ls", "timeout": 600_001}, "at most 600000 milliseconds"),
    "no time": ({"command": "ls", "timeout": 0}, "more than 0"),
    "no number": ('{"command": "ls", "timeout": NaN}', "more than 0"),
    "endless": ('{"command": "ls", "timeout": Infinity}', "more than 0"),
    "more digits than a float": ({"command": "ls", "timeout": 10**400}, "at most"),
    "NUL": ({"command": "ls\0"}, "NUL"),
    "half a character": ({"command": "ls \ud800"}, "half of a character"),
    "too long": ({"command": "x" * (LONGEST_COMMAND + 1)}, "longer than"),
    "two mistakes": ({"timeout": "1", "x": 1}, 'command is missing; "x" is not known; timeout must be a number'),
}


@pytest.mark.parametrize(("given_input", "call"), READ.values(), ids=READ)
def test_what_a_model_sends_is_read(given_input: dict[str, object] | str | bytes, call: ShellCall) -> None:
    assert ShellCall.parse(given_input) == call


@pytest.mark.parametrize(("given_input", "why"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_said(given_input: dict[str, object] | str, why: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        ShellCall.parse(given_input)
    assert why in caught.value.message
    assert caught.value.hint


@given(
    st.one_of(st.text(), st.binary(), st.dictionaries(st.text(), st.from_type(type(None)) | st.integers() | st.text()))
)
def test_no_input_breaks_the_reader(anything: dict[str, object] | str | bytes) -> None:
    with suppress(InvalidTextError):
        ShellCall.parse(anything)


def test_time_is_bounded_but_for_jobs() -> None:
    assert ShellCall("x").seconds == DEFAULT_TIMEOUT == 120.0
    assert ShellCall("x", timeout=3).seconds == 3
    assert ShellCall("x", run_in_background=True).seconds is None
    assert ShellCall("x", run_in_background=True, timeout=3).seconds == 3
    with pytest.raises(InvalidTextError, match="at most"):
        ShellCall("x", timeout=601)


def test_the_schema_names_all_that_is_read_and_teaches() -> None:
    schema = definition()["input_schema"]
    assert json.loads(json.dumps(schema)) == schema
    assert [*schema["properties"]] == [*READ["everything"][0]]  # type: ignore[misc]  # a dictionary in this row
    assert schema["required"] == ["command"]
    assert schema["additionalProperties"] is False
    assert all(len(one["description"]) > 40 for one in schema["properties"].values())


def test_a_model_that_may_not_bypass_is_not_told_of_it() -> None:
    text = json.dumps(definition(bypass=False))
    assert "dangerously" not in text
    assert "bypass" not in text.lower()
    assert "dangerouslyDisableSandbox" in input_schema()["properties"]
