from __future__ import annotations

import pytest

from stockade.settings.layer import Layer, Origin, Sourced


def test_layers_from_highest_to_lowest() -> None:
    assert sorted(Layer, reverse=True) == [
        Layer.COMMAND_LINE,
        Layer.POLICY,
        Layer.FLAG,
        Layer.LOCAL,
        Layer.USER,
        Layer.PROJECT,
        Layer.DEFAULTS,
    ]


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        pytest.param(
            Origin(Layer.USER, "/h/.stockade/settings.json", "$.x"), "/h/.stockade/settings.json (user)", id="file"
        ),
        pytest.param(Origin(Layer.COMMAND_LINE, "--allow-write"), "--allow-write (command line)", id="flag"),
        pytest.param(Origin(Layer.USER, "a\n.json"), "a\\x0a.json (user)", id="hostile name"),
        pytest.param(Origin(Layer.DEFAULTS), "defaults", id="no file"),
    ],
)
def test_an_origin_reads_as_file_and_layer(origin: Origin, text: str) -> None:
    assert str(origin) == text


def test_sourced_values_compare_by_value_and_origin() -> None:
    origin = Origin(Layer.USER, "f")
    assert Sourced("a", origin) == Sourced("a", origin)
    assert Sourced("a", origin) != Sourced("a", Origin(Layer.PROJECT, "f"))


@pytest.mark.parametrize(
    ("layer", "scope"),
    [
        (Layer.DEFAULTS, ""),
        (Layer.PROJECT, "/p/.stockade"),
        (Layer.USER, "/p/.stockade"),
        (Layer.LOCAL, "/p/.stockade"),
        (Layer.FLAG, ""),
        (Layer.POLICY, ""),
        (Layer.COMMAND_LINE, ""),
    ],
)
def test_what_a_path_is_relative_to_depends_on_the_folder_of_lower_files_alone(layer: Layer, scope: str) -> None:
    origin = Origin(layer, "/p/.stockade/settings.json")
    assert (origin.scope, origin.is_policy) == (scope, layer is Layer.POLICY)
