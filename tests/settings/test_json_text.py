from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import SettingsError
from stockade.settings.json_text import HugeNumber, JsonObject, member, parse, quoted, shown
from stockade.settings.problem import Problem

# json knows this mistake by name since Python 3.13.
TRAILING_COMMA = (
    "Illegal trailing comma before end of object at line 2, column 9"
    if sys.version_info >= (3, 13)
    else "Expecting property name enclosed in double quotes at line 3, column 1"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param(b"{}", JsonObject(), id="empty object"),
        pytest.param(b"\xef\xbb\xbf{}", JsonObject(), id="byte order mark"),
        pytest.param(b' \n{"a": 1, "b": [true], "a": null}', [("a", 1), ("b", [True]), ("a", None)], id="repeated"),
        pytest.param(b"1.0", 1.0, id="a fraction stays one"),
        pytest.param(b'"\\u00e9"', "é", id="escapes"),
    ],
)
def test_json_is_read(text: bytes, value: object) -> None:
    parsed = parse(text, "f")
    assert (parsed, type(parsed)) == (value, JsonObject if isinstance(value, list) else type(value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b" \n\t", "is empty", id="blank"),
        pytest.param(b"\xef\xbb\xbf", "is empty", id="only a byte order mark"),
        pytest.param(b"{\xff}", "is not UTF-8 (byte 2)", id="latin"),
        pytest.param('{"a": 1}'.encode("utf-16"), "is not UTF-8 (byte 1)", id="utf-16"),
        pytest.param(b"[NaN]", "is not JSON: NaN is not a JSON number", id="nan"),
        pytest.param(b"[-Infinity]", "is not JSON: -Infinity is not a JSON number", id="infinity"),
        pytest.param(b"[" * 100_000, "is nested too deeply", id="deep list"),
        pytest.param(b'{"a":' * 100_000, "is nested too deeply", id="deep object"),
        pytest.param(b'{\n  "a": 1,\n}', f"is not JSON: {TRAILING_COMMA}", id="trailing comma"),
        pytest.param(b"{} x", "is not JSON: Extra data at line 1, column 4", id="text behind"),
    ],
)
def test_what_is_not_json_says_so(text: bytes, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(text, "f")
    (problem,) = caught.value.problems
    assert (problem.file, problem.path) == ("f", "$")
    assert problem.message.startswith(message)
    assert problem.hint


def test_a_syntax_error_names_line_and_column() -> None:
    with pytest.raises(SettingsError) as caught:
        parse(b'{\n  "a": tru\n}', "f")
    hint = "JSON has no comments, no single quotes and no comma after the last item."
    message = "is not JSON: Expecting value at line 2, column 8"
    assert caught.value.problems == (Problem("f", "$", message, hint),)


def test_a_number_of_many_digits_costs_nothing() -> None:
    assert isinstance(parse(b"9" * 1_000_000, "f"), HugeNumber)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(None, "null", id="null"),
        pytest.param(True, "true", id="true"),
        pytest.param(1, "1", id="one is not true"),
        pytest.param(2.5, "2.5", id="fraction"),
        pytest.param(HugeNumber(), "a huge number", id="huge"),
        pytest.param([], "a list", id="list"),
        pytest.param(JsonObject(), "an object", id="object"),
        pytest.param("a\x1b[2J\n", '"a\\x1b[2J\\x0a"', id="control characters"),
    ],
)
def test_values_are_shown_in_few_safe_words(value: object, text: str) -> None:
    assert shown(value) == text


@given(st.text(max_size=300))
def test_quoted_text_is_short_and_printable(text: str) -> None:
    assert quoted(text).isprintable()
    assert len(quoted(text)) < 80


@given(st.binary() | st.text(alphabet='{}[]",:0123456789.eE-tfn\\u\x00 ').map(str.encode))
def test_no_bytes_raise_anything_but_a_settings_error(text: bytes) -> None:
    with contextlib.suppress(SettingsError):
        parse(text, "f")


@pytest.mark.parametrize(
    ("name", "path"),
    [("a", "$.x.a"), ("$schema", "$.x.$schema"), ("a b", '$.x["a b"]'), ("", '$.x[""]'), ("\n", '$.x["\\x0a"]')],
)
def test_the_path_of_a_member_is_safe_to_show(name: str, path: str) -> None:
    assert member("$.x", name) == path


ALONE = """
import sys
from stockade.errors import SettingsError
from stockade.settings.json_text import parse
assert "json" not in sys.modules
try:
    parse(sys.argv[1].encode(), "f")
except SettingsError as error:
    print(error.problems[0].message)
"""


@pytest.mark.parametrize("text", ["{", '{"a"', '"', '{"a": 1,}', '"\\x"', "[1", "nul"])
def test_mistakes_are_told_as_well_where_nobody_has_imported_json(text: str) -> None:
    ran = subprocess.run([sys.executable, "-c", ALONE, text], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("is not JSON: ")
