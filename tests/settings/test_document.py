from __future__ import annotations

from stockade.settings.catalog import ALLOW, ENABLED, SEARCH_DEPTH
from stockade.settings.document import Document
from stockade.settings.layer import Layer, Origin

DOCUMENT = Document(Layer.USER, "u.json", {ENABLED.name: False, ALLOW.name: ("Edit(./out)",)})


def test_absent_stays_absent_and_false_is_not_absent() -> None:
    assert (DOCUMENT.get(ENABLED), DOCUMENT.get(ALLOW), DOCUMENT.get(SEARCH_DEPTH)) == (False, ("Edit(./out)",), None)


def test_an_origin_names_layer_file_and_place() -> None:
    assert DOCUMENT.origin(ENABLED) == Origin(Layer.USER, "u.json", "$.sandbox.enabled")


def test_an_origin_in_a_flat_file_is_the_path_that_stands_there() -> None:
    flat = DOCUMENT.but(flat=True)
    assert flat.origin(SEARCH_DEPTH) == Origin(Layer.USER, "u.json", "$.mandatoryDenySearchDepth")
