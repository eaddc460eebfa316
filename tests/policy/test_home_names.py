from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.policy.home_names import (
    AT_HOME,
    OBEYED_AT_HOME,
    ON_A_MAC,
    OUTSIDE,
    SET_UP_AT_HOME,
    find_in_home,
    protected_in_home,
)
from stockade.policy.places import Disk
from stockade.policy.protected import Search
from stockade.policy.protected_names import NAMES, ONLY_THERE

if TYPE_CHECKING:
    from pathlib import Path

DISK = Disk()
SEARCH = Search(3)
#: What the issue of a user's home named first; the list may only grow.
ASKED = (
    *(".ssh", ".gnupg", ".aws", ".kube", ".config/systemd", ".config/autostart", ".config/git", ".config/fish"),
    *(".local/bin", ".local/share/applications", ".bash_aliases", ".bash_login", ".bash_logout", ".zshenv", ".zlogin"),
    *(".inputrc", ".pam_environment", ".xprofile", ".xinitrc", ".npmrc", ".pypirc", ".netrc", ".docker", ".vimrc"),
    *(".cargo/config.toml", ".m2/settings.xml", ".config/nvim", ".emacs", ".emacs.d", ".tmux.conf"),
)


def test_each_name_stands_in_one_table_and_has_a_reason() -> None:
    tables = (OBEYED_AT_HOME, SET_UP_AT_HOME, ON_A_MAC)
    assert sum(map(len, tables)) == len(AT_HOME) == len({name.casefold() for name in AT_HOME})
    assert all(why and not name.startswith("/") and "//" not in name for name, why in AT_HOME.items())


def test_what_was_asked_for_is_kept_from_being_made() -> None:
    assert [name for name in ASKED if name not in OBEYED_AT_HOME] == []
    assert [name for name in ONLY_THERE if name not in OBEYED_AT_HOME] == [".gitmodules"]
    assert set(NAMES) >= ONLY_THERE


def test_no_name_covers_another() -> None:
    """A name inside another would never be told, and lifting it would lift nothing."""
    assert [(one, other) for one in AT_HOME for other in AT_HOME if other.startswith(f"{one}/")] == []


@pytest.mark.parametrize("name", [*OBEYED_AT_HOME])
def test_a_missing_name_is_found_and_judged(tmp_path: Path, name: str) -> None:
    home = str(tmp_path.resolve())
    first = f"{home}/{name.split('/', maxsplit=1)[0]}"
    assert (name, first) in {(each.name, each.place) for each in find_in_home(home, home, DISK)}
    for place in (f"{home}/{name}", f"{home}/{name}/x", f"{home}/{name.upper()}"):
        assert protected_in_home(place, home, home, SEARCH, DISK) is not None


@pytest.mark.parametrize("name", [*SET_UP_AT_HOME])
def test_a_name_that_is_set_up_counts_where_it_exists(tmp_path: Path, name: str) -> None:
    home = tmp_path.resolve()
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    assert name not in {each.name for each in find_in_home(str(home), str(home), DISK)}
    (home / name).mkdir()
    assert name in {each.name for each in find_in_home(str(home), str(home), DISK)}
    found = protected_in_home(f"{home}/{name}/x", str(home), str(home), SEARCH, DISK)
    assert found is not None
    assert found.name == name


def test_the_names_of_a_mac_are_kept_in_the_home_of_one(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    assert not {each.name for each in find_in_home(str(home), str(home), DISK)} & {*ON_A_MAC}
    (home / "Library").mkdir()
    assert {each.name for each in find_in_home(str(home), str(home), DISK)} >= {*ON_A_MAC}


def test_links_on_the_way_are_followed_and_kept(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    (home / "dots/systemd").mkdir(parents=True)
    (home / ".config").symlink_to("dots")
    (home / ".ssh").symlink_to("nowhere")
    found = {each.name: (each.path, each.place) for each in find_in_home(str(home), str(home), DISK)}
    assert found[".config/systemd"] == (f"{home}/.config/systemd", f"{home}/dots/systemd")
    assert found[".config/autostart"] == (f"{home}/.config/autostart", f"{home}/dots/autostart")
    assert found[".ssh"] == (f"{home}/.ssh", f"{home}/nowhere")


def test_a_home_that_is_missing_holds_nothing(tmp_path: Path) -> None:
    home = f"{tmp_path.resolve()}/none"
    assert list(find_in_home(home, "/", DISK)) == []
    assert protected_in_home(f"{home}/.ssh", "/", home, SEARCH, DISK) is None


def test_what_the_host_runs_for_a_user_elsewhere(tmp_path: Path) -> None:
    found = {each.path for each in find_in_home(str(tmp_path.resolve()), "/", DISK)}
    assert {path for path in OUTSIDE if DISK.exists(path)} == {path for path in OUTSIDE if path in found}
