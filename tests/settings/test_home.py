from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING, Any

import pytest

from stockade.settings.home import borrowed, database_home, is_users_home

if TYPE_CHECKING:
    from pathlib import Path


def _is_in_database(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    me = pwd.getpwuid(os.getuid())
    fields: list[Any] = [*me]
    fields[5] = home
    monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(fields))


def test_the_database_knows_a_home() -> None:
    assert database_home() == pwd.getpwuid(os.getuid()).pw_dir


@pytest.mark.parametrize(("said", "home"), [("/h/u/", "/h/u"), ("//h/u", "/h/u"), ("", ""), ("h", ""), ("/", "/")])
def test_what_it_says_is_made_plain(monkeypatch: pytest.MonkeyPatch, said: str, home: str) -> None:
    _is_in_database(monkeypatch, said)
    assert database_home() == home


def test_a_user_without_an_entry_has_the_home_that_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert database_home() == ""
    assert is_users_home("/anywhere")
    assert borrowed("/anywhere", "/.stockade/settings.json") == ""


def test_a_link_to_home_is_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    _is_in_database(monkeypatch, str(tmp_path / "link"))
    assert is_users_home(str(tmp_path / "home"))
    assert is_users_home(str(tmp_path / "link"))
    assert not is_users_home(str(tmp_path))


def test_a_borrowed_home_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _is_in_database(monkeypatch, "/nowhere/u")
    assert borrowed("/nowhere/u", "/nowhere/.stockade/settings.json") == ""
    assert borrowed("/p/h", "/p/.stockade/settings.json") == (
        "HOME is /p/h, in a project (/p/.stockade/settings.json), and not your home in the user database: "
        "settings in that HOME count as your own, without trust; set HOME to your home directory"
    )
