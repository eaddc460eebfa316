from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import SettingsError
from stockade.settings.catalog import CATALOG
from stockade.settings.decode import decode
from stockade.settings.layer import Layer
from stockade.settings.schema import DIALECT, schema

TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "integer": (int,),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}
KEYWORDS = {"$schema", "title", "description", "default", "type", "properties", "additionalProperties"} | {
    "items",
    "propertyNames",
    "minLength",
    "pattern",
    "minimum",
    "maximum",
}


def valid(node: dict[str, Any], value: object) -> bool:
    """Judge a value by the few keywords that our schema uses, and fail on one that is not known here."""
    assert set(node) <= KEYWORDS
    if not isinstance(value, TYPES[node["type"]]) or (node["type"] == "integer" and isinstance(value, bool)):
        return False
    if isinstance(value, dict):
        properties, rest = node.get("properties", {}), node["additionalProperties"]
        names = {"type": "string"} | node.get("propertyNames", {})
        return all(valid(names, name) for name in value) and all(
            valid(properties[name], item) if name in properties else (rest is not False and valid(rest, item))
            for name, item in value.items()
        )
    if isinstance(value, list):
        return all(valid(node["items"], item) for item in value)
    if isinstance(value, str):
        return len(value) >= node.get("minLength", 0) and bool(re.search(node.get("pattern", ""), value))
    return not isinstance(value, int) or node.get("minimum", value) <= value <= node.get("maximum", value)


def nested(name: str, value: object) -> object:
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


def at(name: str) -> dict[str, Any]:
    node = schema()
    for part in name.split("."):
        node = node["properties"][part]
    return node


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({}, id="nothing set"),
        pytest.param({"$schema": "./settings.schema.json"}, id="the schema named"),
        pytest.param({"sandbox": {"enabled": True, "mandatoryDenySearchDepth": 10}}, id="scalars"),
        pytest.param({"sandbox": {"network": {"allowedDomains": ["*.example.com:443", "[::1]:80"]}}}, id="hosts"),
        pytest.param({"sandbox": {"network": {"deniedDomains": ["*"]}}}, id="deny everything"),
        pytest.param({"sandbox": {"ignoreViolations": {"*": ["/proc"], "npm *": []}}}, id="a table"),
        pytest.param({"sandbox": {"ripgrep": {"command": "rg", "args": ["", "-j1"]}}}, id="arguments may be empty"),
        pytest.param({"permissions": {"allow": ["Edit(./out)", "Edit(./out)"], "ask": []}}, id="a repeated rule"),
    ],
)
def test_accepts_what_the_reader_accepts(document: object) -> None:
    assert valid(schema(), document)
    decode(json.dumps(document).encode(), Layer.USER, "f.json")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param([], id="not an object"),
        pytest.param({"sandbx": {}}, id="unknown at the top"),
        pytest.param({"sandbox": {"enable": True}}, id="misspelt"),
        pytest.param({"sandbox": {"enabled": "yes"}}, id="text for a flag"),
        pytest.param({"sandbox": {"enabled": 1}}, id="number for a flag"),
        pytest.param({"sandbox": {"mandatoryDenySearchDepth": 0}}, id="too little"),
        pytest.param({"sandbox": {"mandatoryDenySearchDepth": 11}}, id="too much"),
        pytest.param({"sandbox": {"mandatoryDenySearchDepth": True}}, id="flag for a number"),
        pytest.param({"sandbox": {"network": {"httpProxyPort": 65536}}}, id="no such port"),
        pytest.param({"sandbox": {"network": {"allowedDomains": ["https://example.com"]}}}, id="URL for a host"),
        pytest.param({"sandbox": {"network": {"allowedDomains": ["a b"]}}}, id="space in a host"),
        pytest.param({"sandbox": {"excludedCommands": [""]}}, id="empty item"),
        pytest.param({"sandbox": {"excludedCommands": "npm"}}, id="text for a list"),
        pytest.param({"sandbox": {"ignoreViolations": {"*": "/proc"}}}, id="text in a table"),
        pytest.param({"sandbox": {"ignoreViolations": {"*": [""]}}}, id="empty text in a table"),
        pytest.param({"sandbox": {"ignoreViolations": {"": ["a"]}}}, id="empty name in a table"),
        pytest.param({"sandbox": {"ripgrep": {"command": ""}}}, id="empty command"),
        pytest.param({"permissions": {"alow": []}}, id="misspelt list of rules"),
    ],
)
def test_refuses(document: object) -> None:
    assert not valid(schema(), document)


sections = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 70_000) | st.sampled_from(["", "a", "a b", "*"]) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(sorted({part for name in CATALOG for part in name.split(".")})) | st.text(max_size=2), inner
        )
    ),
    max_leaves=6,
)
settings = st.sampled_from(sorted(CATALOG)).flatmap(lambda name: sections.map(lambda value: nested(name, value)))


@given(document=settings | sections)
def test_is_never_stricter_than_the_reader_but_for_the_grammar_of_hosts(document: object) -> None:
    loose = json.loads(json.dumps(schema()), object_hook=lambda node: {k: v for k, v in node.items() if k != "pattern"})
    try:
        decode(json.dumps(document).encode(), Layer.USER, "f.json")
    except SettingsError:
        return
    assert valid(loose, document)


def test_every_setting_is_described() -> None:
    assert {name: at(name)["description"] for name in CATALOG} == {k.name: k.meaning for k in CATALOG.values()}


def test_every_default_is_named_and_fits() -> None:
    defaults = {name: at(name)["default"] for name in CATALOG if "default" in at(name)}
    expected = {name: json.loads(json.dumps(key.default)) for name, key in CATALOG.items() if key.default is not None}
    assert defaults == expected
    assert all(valid(schema(), nested(name, default)) for name, default in defaults.items())


def test_it_names_its_dialect_and_is_plain_json() -> None:
    assert schema()["$schema"] == DIALECT
    assert json.loads(json.dumps(schema())) == schema()


def test_each_call_gives_a_tree_of_its_own() -> None:
    at("sandbox.ignoreViolations")["default"]["*"] = ["changed"]
    assert at("sandbox.ignoreViolations")["default"] == {}
