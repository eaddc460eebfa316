from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.settings.unknown_key import advise, is_misplaced, is_misspelling


@pytest.mark.parametrize(
    ("name", "section", "advice"),
    [
        pytest.param("allowedDomain", "sandbox.network", "Did you mean allowedDomains?", id="misspelt"),
        pytest.param("alowWrite", "sandbox.filesystem", "Did you mean allowWrite?", id="one letter"),
        pytest.param("Enabled", "sandbox", "Did you mean enabled?", id="case"),
        pytest.param("Permissions", "", "Did you mean permissions?", id="case of a section"),
        pytest.param("denyReads", "sandbox.filesystem", "Did you mean denyRead?", id="plural"),
        pytest.param("allowedDomains", "", "It belongs at $.sandbox.network.allowedDomains.", id="wrong level"),
        pytest.param("network", "", "It belongs at $.sandbox.network.", id="section at wrong level"),
        pytest.param("deny", "sandbox", "It belongs at $.permissions.deny.", id="wrong section"),
        pytest.param("alowedDomains", "", "Did you mean $.sandbox.network.allowedDomains?", id="misspelt elsewhere"),
        pytest.param(
            "sandbox.enabled",
            "",
            'Write it as nested objects: {"sandbox": {"enabled": ...}}.',
            id="dotted",
        ),
        pytest.param(
            "network.allowedDomains",
            "sandbox",
            'Write it as nested objects: {"sandbox": {"network": {"allowedDomains": ...}}}.',
            id="dotted inside",
        ),
        pytest.param("rules", "permissions", "Known here: allow, deny, ask.", id="nothing like it"),
        pytest.param("denied", "permissions", "Did you mean deny?", id="similar"),
    ],
)
def test_advice(name: str, section: str, advice: str) -> None:
    assert advise(name, section) == advice


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        pytest.param("permisions", True, id="dropped letter"),
        pytest.param("sandBox", True, id="case"),
        pytest.param("permissionMode", False, id="another word"),
        pytest.param("env", False, id="nothing like it"),
    ],
)
def test_a_misspelling_is_hardly_anything_else(name: str, *, answer: bool) -> None:
    assert is_misspelling(name, "") is answer


@given(st.text(), st.sampled_from(["", "sandbox", "sandbox.network", "permissions"]))
def test_any_name_gets_one_line_of_advice(name: str, section: str) -> None:
    assert advise(name, section).isprintable()


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        pytest.param("allowedDomains", True, id="a setting"),
        pytest.param("filesystem", True, id="a section"),
        pytest.param("sandbox.enabled", True, id="dotted"),
        pytest.param("allowedDomain", False, id="misspelt is something else"),
        pytest.param("credentials", False, id="unknown"),
    ],
)
def test_a_name_from_elsewhere_is_misplaced(name: str, *, answer: bool) -> None:
    assert is_misplaced(name) is answer
