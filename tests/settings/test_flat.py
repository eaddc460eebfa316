from __future__ import annotations

import pytest

from stockade.settings.catalog import CATALOG
from stockade.settings.flat import FLAT, flat_path, is_flat, is_mixed, unflatten
from stockade.settings.json_text import JsonObject


@pytest.mark.parametrize(
    ("names", "flat", "mixed"),
    [
        pytest.param([], False, False, id="empty"),
        pytest.param(["sandbox", "permissions"], False, False, id="nested"),
        pytest.param(["network", "filesystem"], True, False, id="flat"),
        pytest.param(["network", "sandbox"], True, True, id="both"),
        pytest.param(["ripgrep", "permissions"], True, True, id="both, by permissions"),
        pytest.param(["allowPty"], False, False, id="nothing that both tools know"),
    ],
)
def test_the_shape_is_told_by_top_level_names(names: list[str], flat: bool, mixed: bool) -> None:  # noqa: FBT001
    assert (is_flat(names), is_mixed(names)) == (flat, mixed)


def test_every_flat_name_is_a_member_of_our_sandbox_object() -> None:
    assert {name.split(".")[1] for name in CATALOG if name.startswith("sandbox.")} >= FLAT


def test_a_flat_file_becomes_a_nested_one_with_repetitions_kept() -> None:
    raw = JsonObject([("$schema", "s"), ("network", 1), ("network", 2)])
    assert unflatten(raw) == [("$schema", "s"), ("sandbox", [("network", 1), ("network", 2)])]


@pytest.mark.parametrize(
    ("path", "flat"),
    [("$.sandbox.network", "$.network"), ("$.sandbox", "$"), ("$", "$"), ("$.x.sandbox", "$.x.sandbox")],
)
def test_paths_as_they_are_in_a_flat_file(path: str, flat: str) -> None:
    assert flat_path(path) == flat
