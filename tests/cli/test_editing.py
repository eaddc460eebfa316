from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Here


def test_what_the_file_says_already_is_no_change(here: Here) -> None:
    here("allow-domain", "a.example")
    before = here.local.stat().st_mtime_ns
    result = here("allow-domain", "a.example")
    assert result.out == f"nothing to change: {here.local} says so already\n"
    assert here.local.stat().st_mtime_ns == before


def test_unknown_keys_and_order_are_kept(here: Here) -> None:
    file = here.home / ".stockade" / "settings.local.json"
    here.write(file, '{\n  "$schema": "x",\n  "sandbox": {"enabled": false}\n}\n')
    here("enable", "--home")
    assert file.read_text() == '{\n  "$schema": "x",\n  "sandbox": {"enabled": true}\n}\n'


def test_an_invalid_file_is_not_touched(here: Here) -> None:
    file = here.home / ".stockade" / "settings.local.json"
    here.write(file, "{")
    assert here("enable", "--home").status == 125
    assert file.read_text() == "{"


def test_any_bad_file_stops_an_edit_with_all_that_is_wrong(here: Here) -> None:
    file = here.user({"sandbox": {"enabeld": True, "network": {"allowedDomains": ["*"]}}})
    result = here("enable")
    assert result.status == 125
    assert [line.partition(": ")[2].split(": ")[:2] for line in result.err.splitlines() if "hint" not in line] == [
        [str(file), "$.sandbox.enabeld"],
        [str(file), "$.sandbox.network.allowedDomains[0]"],
    ]
    assert not here.local.exists()
