from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError, SettingsError
from stockade.settings.catalog import (
    ALLOWED_DOMAINS,
    DENY,
    ENABLED,
    EXCLUDED_COMMANDS,
    IGNORE_VIOLATIONS,
    RIPGREP_ARGS,
    RIPGREP_COMMAND,
    SEARCH_DEPTH,
)
from stockade.settings.edit import AddItems, Edit, RemoveItems, SetValue, plan_edit

ON = SetValue(ENABLED, True)
ODD = """{
\t"$schema" : "./s.json",

\t"later": [1.0, 1e3, 123456789012345678901234567890, -0, "\\u00e9"],
\t"sandbox": { "enabled":false , "x": {"y": [ ]}},
\t"permissions": {"deny": ["Edit(a)",
\t\t"Edit(b)"  ,  "Edit(\\u00e9)"]}
}"""


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        pytest.param(None, [ON], '{\n  "sandbox": {\n    "enabled": true\n  }\n}\n', id="no file yet"),
        pytest.param(
            None,
            [AddItems(ALLOWED_DOMAINS, ("a", "b", "a"))],
            '{\n  "sandbox": {\n    "network": {\n      "allowedDomains": [\n'
            '        "a",\n        "b"\n      ]\n    }\n  }\n}\n',
            id="no file yet, a list",
        ),
        pytest.param(None, [RemoveItems(DENY, ("a",))], "{}\n", id="nothing to remove"),
        pytest.param("{}", [ON], '{\n  "sandbox": {\n    "enabled": true\n  }\n}', id="empty object, no last newline"),
        pytest.param('{"sandbox":{}}', [ON], '{"sandbox":{"enabled":true}}', id="one line, compact"),
        pytest.param('{"sandbox": {}}\n', [ON], '{"sandbox": {"enabled": true}}\n', id="one line"),
        pytest.param('{"a": 1}', [ON], '{"a": 1, "sandbox": {"enabled": true}}', id="one line, one member more"),
        pytest.param('{"a":1}', [ON], '{"a":1,"sandbox":{"enabled":true}}', id="compact, one member more"),
        pytest.param(
            '{\n    "a": 1\n}\n',
            [ON],
            '{\n    "a": 1,\n    "sandbox": {\n        "enabled": true\n    }\n}\n',
            id="four spaces",
        ),
        pytest.param(
            '{\r\n\t"a": 1\r\n}\r\n',
            [ON],
            '{\r\n\t"a": 1,\r\n\t"sandbox": {\r\n\t\t"enabled": true\r\n\t}\r\n}\r\n',
            id="tabs and CRLF",
        ),
        pytest.param(
            "\ufeff{}\n", [ON], '\ufeff{\n  "sandbox": {\n    "enabled": true\n  }\n}\n', id="byte order mark"
        ),
        pytest.param(ODD, [ON], ODD.replace("false", "true"), id="one word of an odd file"),
        pytest.param(ODD, [SetValue(ENABLED, False)], ODD, id="set already"),
        pytest.param(
            ODD,
            [SetValue(SEARCH_DEPTH, 5)],
            ODD.replace("[ ]}}", '[ ]}, "mandatoryDenySearchDepth": 5}'),
            id="a member more in an odd file",
        ),
        pytest.param(ODD, [AddItems(DENY, ("Edit(é)", "Edit(a)"))], ODD, id="no duplicates, whatever the spelling"),
        pytest.param(
            ODD,
            [AddItems(DENY, ("Edit(ü)", 'Edit("\\)'))],
            ODD.replace('\\u00e9)"', '\\u00e9)",  "Edit(ü)",  "Edit(\\"\\\\)"'),
            id="items added as the last one stands",
        ),
        pytest.param(
            ODD,
            [RemoveItems(DENY, ("Edit(a)",))],
            ODD.replace('"Edit(a)",\n\t\t', ""),
            id="first removed",
        ),
        pytest.param(ODD, [RemoveItems(DENY, ("Edit(b)",))], ODD.replace(',\n\t\t"Edit(b)"', ""), id="middle removed"),
        pytest.param(
            ODD, [RemoveItems(DENY, ("Edit(é)",))], ODD.replace('  ,  "Edit(\\u00e9)"', ""), id="last removed"
        ),
        pytest.param(
            ODD,
            [RemoveItems(DENY, ("Edit(a)", "Edit(b)", "Edit(é)"))],
            ODD.replace('"Edit(a)",\n\t\t"Edit(b)"  ,  "Edit(\\u00e9)"', ""),
            id="all removed",
        ),
        pytest.param(ODD, [RemoveItems(DENY, ("Edit(c)",)), AddItems(DENY, ())], ODD, id="nothing to do"),
        pytest.param(
            '{\n  "permissions": {\n    "deny": []\n  }\n}\n',
            [AddItems(DENY, ("Edit(a)",))],
            '{\n  "permissions": {\n    "deny": [\n      "Edit(a)"\n    ]\n  }\n}\n',
            id="empty list",
        ),
        pytest.param(
            '{"permissions": {"deny": []}}',
            [AddItems(DENY, ("a", "b"))],
            '{"permissions": {"deny": ["a", "b"]}}',
            id="empty list on one line",
        ),
        pytest.param(
            '{"sandbox": {"enabled": 1, "enabled": 2}}',
            [ON],
            '{"sandbox": {"enabled": 1, "enabled": true}}',
            id="given twice: the one that counts",
        ),
        pytest.param(
            "{}",
            [SetValue(RIPGREP_ARGS, ("-j", "1")), SetValue(RIPGREP_COMMAND, "rg"), SetValue(RIPGREP_ARGS, ())],
            '{\n  "sandbox": {\n    "ripgrep": {\n      "args": [],\n      "command": "rg"\n    }\n  }\n}',
            id="edits in turn",
        ),
        pytest.param('{"a": ' + "9" * 5000 + "}", [], '{"a": ' + "9" * 5000 + "}", id="more digits than Python reads"),
    ],
)
def test_only_what_is_edited_changes(before: str | None, edits: list[Edit], after: str) -> None:
    assert plan_edit(None if before is None else before.encode(), edits) == after.encode()


@pytest.mark.parametrize(
    ("text", "edit", "path"),
    [
        pytest.param(b"", ON, "$", id="empty"),
        pytest.param(b"{} x", ON, "$", id="more after it"),
        pytest.param(b"{,}", ON, "$", id="not JSON"),
        pytest.param(b"\xff{}", ON, "$", id="not UTF-8"),
        pytest.param(b"[{}]", ON, "$", id="a list"),
        pytest.param(b"[" * 100_000, ON, "$", id="nested without end"),
        pytest.param(b'{"sandbox": 1}', ON, "$.sandbox", id="no object on the way"),
        pytest.param(b'{"permissions": {"deny": {}}}', AddItems(DENY, ("a",)), "$.permissions.deny", id="no list"),
    ],
)
def test_what_cannot_be_edited_is_refused_by_name(text: bytes, edit: Edit, path: str) -> None:
    with pytest.raises(SettingsError) as caught:
        plan_edit(text, [edit], file="f.json")
    assert [(problem.file, problem.path) for problem in caught.value.problems] == [("f.json", path)]
    assert caught.value.hint


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        pytest.param(SetValue, ENABLED, 1, id="number for a flag"),
        pytest.param(SetValue, SEARCH_DEPTH, True, id="flag for a number"),
        pytest.param(SetValue, DENY, ("a",), id="a list set whole"),
        pytest.param(SetValue, IGNORE_VIOLATIONS, {}, id="a table"),
        pytest.param(AddItems, ENABLED, ("a",), id="items for a flag"),
        pytest.param(AddItems, DENY, ("Edit(\udcff)",), id="a name that is not UTF-8"),
        pytest.param(RemoveItems, RIPGREP_ARGS, ("a",), id="items for arguments, whose order matters"),
    ],
)
def test_an_edit_that_does_not_fit_its_setting_cannot_be_made(kind: Any, key: Any, value: Any) -> None:
    with pytest.raises(InvalidTextError):
        kind(key, value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
texts = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), max_size=4)


@given(
    rest=st.dictionaries(st.text(), json_values, max_size=4),
    had=st.none() | texts,
    items=texts,
    indent=st.none() | st.integers(0, 4) | st.just("\t"),
    ascii_only=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_adding_and_removing_means_what_it_says(
    *, rest: dict[str, Any], had: list[str] | None, items: list[str], indent: Any, ascii_only: bool, newline: str
) -> None:
    document = rest | {"sandbox": {"keep": 1} | ({} if had is None else {"excludedCommands": had})}
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only).replace("\n", newline).encode()
    added = plan_edit(text, [AddItems(EXCLUDED_COMMANDS, tuple(items))])
    fresh = [item for item in dict.fromkeys(items) if item not in (had or [])]
    expected = document | {
        "sandbox": document["sandbox"]
        | ({"excludedCommands": [*(had or []), *fresh]} if items or had is not None else {})
    }
    assert json.loads(added) == expected
    removed = plan_edit(added, [RemoveItems(EXCLUDED_COMMANDS, tuple(fresh))])
    if had:
        assert removed == text


@given(st.binary() | st.text().map(str.encode))
def test_no_bytes_raise_anything_but_our_own_error(text: bytes) -> None:
    with suppress(SettingsError):
        json.loads(plan_edit(text, [ON, AddItems(DENY, ("a",))]))
