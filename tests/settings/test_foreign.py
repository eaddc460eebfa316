from __future__ import annotations

import pytest

from stockade.settings.catalog import CATALOG
from stockade.settings.foreign import KNOWN, SILENT, Standing, standing


@pytest.mark.parametrize(
    ("name", "section", "expected"),
    [
        pytest.param("model", "", Standing.HARMLESS, id="their own"),
        pytest.param("permissionMode", "", Standing.HARMLESS, id="their own, a little like ours"),
        pytest.param("enabled", "", Standing.HARMLESS, id="a name of ours that means something else there"),
        pytest.param("sandBox", "", Standing.OURS, id="misspelt section"),
        pytest.param("alow", "permissions", Standing.OURS, id="misspelt"),
        pytest.param("allowWrite", "sandbox", Standing.OURS, id="misplaced"),
        pytest.param("defaultMode", "permissions", Standing.HARMLESS, id="prompts only"),
        pytest.param("additionalDirectories", "permissions", Standing.NOT_ENFORCED, id="widens in their tool"),
        pytest.param("enableWeakerNetworkIsolation", "sandbox", Standing.NOT_ENFORCED, id="known, though like ours"),
        pytest.param("somethingNew", "sandbox.network", Standing.NOT_ENFORCED, id="never heard of"),
    ],
)
def test_standing(name: str, section: str, expected: Standing) -> None:
    assert standing(name, section) is expected


def test_no_key_is_both_ours_and_theirs() -> None:
    assert KNOWN.isdisjoint(CATALOG)
    assert SILENT <= KNOWN
