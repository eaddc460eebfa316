from __future__ import annotations

import pytest

from stockade.settings.catalog import (
    ALL_UNIX_SOCKETS,
    CATALOG,
    DENY_READ,
    ENABLED,
    EXCLUDED_COMMANDS,
    HTTP_PROXY_PORT,
    IGNORE_VIOLATIONS,
    RIPGREP_ARGS,
    SEARCH_DEPTH,
)
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.looseness import is_loose, loosens
from stockade.settings.merge import EMPTY, merge, settings_of

SOME = settings_of(
    Document(
        Layer.USER,
        "f",
        {
            ENABLED.name: True,
            ALL_UNIX_SOCKETS.name: True,
            EXCLUDED_COMMANDS.name: ("a", "b"),
            HTTP_PROXY_PORT.name: 80,
            IGNORE_VIOLATIONS.name: {"*": ("x",)},
            RIPGREP_ARGS.name: ("-x",),
            SEARCH_DEPTH.name: 5,
        },
    )
)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        # (is loose, loosens the defaults, loosens SOME)
        pytest.param(ENABLED.name, False, (True, False, True), id="off"),
        pytest.param(ENABLED.name, True, (False, False, False), id="on"),
        pytest.param(ALL_UNIX_SOCKETS.name, True, (True, True, False), id="sockets"),
        pytest.param(ALL_UNIX_SOCKETS.name, False, (False, False, False), id="no sockets"),
        pytest.param(DENY_READ.name, ("x",), (False, False, False), id="a deny"),
        pytest.param(EXCLUDED_COMMANDS.name, ("b",), (True, True, False), id="an item that is there"),
        pytest.param(EXCLUDED_COMMANDS.name, ("b", "c"), (True, True, True), id="a new item"),
        pytest.param(EXCLUDED_COMMANDS.name, (), (False, False, False), id="no item"),
        pytest.param(IGNORE_VIOLATIONS.name, {"*": ("x",)}, (True, True, False), id="a pair that is there"),
        pytest.param(IGNORE_VIOLATIONS.name, {"a": ("x",)}, (True, True, True), id="a new pair"),
        pytest.param(IGNORE_VIOLATIONS.name, {"a": ()}, (False, False, False), id="no pair"),
        pytest.param(HTTP_PROXY_PORT.name, 80, (True, True, False), id="the same port"),
        pytest.param(HTTP_PROXY_PORT.name, 81, (True, True, True), id="another port"),
        pytest.param(RIPGREP_ARGS.name, (), (True, False, True), id="no arguments"),
        pytest.param(SEARCH_DEPTH.name, 2, (True, True, True), id="less than all"),
        pytest.param(SEARCH_DEPTH.name, 3, (False, False, True), id="as much as the default"),
        pytest.param(SEARCH_DEPTH.name, 4, (False, False, True), id="less than some"),
        pytest.param(SEARCH_DEPTH.name, 5, (False, False, False), id="not less"),
    ],
)
def test_looseness(name: str, value: object, expected: tuple[bool, bool, bool]) -> None:
    key = CATALOG[name]
    assert (is_loose(key, value, EMPTY), loosens(key, value, EMPTY), loosens(key, value, SOME)) == expected


def test_a_path_repeats_another_only_where_it_means_the_same() -> None:
    key = CATALOG["sandbox.filesystem.allowWrite"]
    than = merge([Document(Layer.PROJECT, "/p/.stockade/settings.json", {key.name: ("out",)})])
    assert not loosens(key, ("out",), than, scope="/p/.stockade")
    assert loosens(key, ("out",), than, scope="/p/sub/.stockade")
    assert loosens(key, ("out",), than)
