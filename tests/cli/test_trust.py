from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here

LOOSE = {"sandbox": {"network": {"allowedDomains": ["evil.example"]}}}


def reachable(here: Here) -> bool:
    return bool(here("explain", "--json", "evil.example").facts["verdict"] == "allow")


def test_a_project_loosens_only_when_trusted_as_it_is(here: Here) -> None:
    file = here.project_file(LOOSE)
    warned = here("status")
    assert warned.err.count("\n") == 1
    assert "stockade trust" in warned.err
    assert not reachable(here)

    result = here("trust")
    assert result.out.startswith(f"trusted, as it is now: {file}\n")
    assert "evil.example" in result.out
    assert reachable(here)

    file.write_text(file.read_text() + "\n")
    assert not reachable(here)


def test_revoke_and_list(here: Here) -> None:
    file = here.project_file(LOOSE)
    here("trust")
    assert list(here("trust", "--list", "--json").facts) == [str(file)]
    assert str(file) in here("trust", "--list").out
    assert here("trust", "--revoke").out == f"no longer trusted: {file}\n"
    assert not reachable(here)


def test_nothing_to_trust(here: Here) -> None:
    result = here("trust")
    assert result.status == 125
    assert "no settings file of a project" in result.err


def test_a_wrong_file_is_not_trusted(here: Here) -> None:
    here.project_file('{"sandbox": {"enabeld": true}}')
    assert here("trust").status == 125
    assert here("trust", "--list").out == ""


def test_escape_sequences_in_a_file_are_shown_not_obeyed(here: Here) -> None:
    here.project_file('{"sandbox": {"filesystem": {"denyRead": ["\\u001b[2J"]}}, "permissions": {}}\n\u202e')
    assert "\x1b" not in here("trust").out
