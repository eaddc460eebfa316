from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import SettingsError
from stockade.settings.layer import Layer, Origin
from stockade.settings.sources import (
    MANAGED,
    Locations,
    Source,
    left_out,
    project_around_home,
    project_directory,
    project_of,
    settings_files,
    sources,
)

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [
    ".stockade/settings.local.json",
    ".claude/settings.local.json",
    ".stockade/settings.json",
    ".claude/settings.json",
]


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    """Return a directory without links in its name, so that names compare."""
    return tmp_path.resolve()


def _write(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")


def _locations(root: Path, cwd: str = "home/work/repo/sub") -> Locations:
    (root / cwd).mkdir(parents=True, exist_ok=True)
    return Locations(str(root / cwd), str(root / "home"), str(root / "etc/managed-settings.json"))


def test_every_layer_highest_first(root: Path) -> None:
    for name in ("10.json", "9.json", "b.json", "a.txt", ".hidden.json", "B.json"):
        _write(root / "etc/managed-settings.d" / name)
    _write(root / "home/work/repo/.claude/settings.json")
    locations = _locations(root).but(flag_file="/flag.json", settings_file="/given.json")
    home, project, etc = root / "home", root / "home/work/repo", root / "etc"
    assert sources(locations) == (
        Source(Layer.COMMAND_LINE, "/given.json"),
        Source(Layer.POLICY, f"{etc}/managed-settings.d/b.json"),
        Source(Layer.POLICY, f"{etc}/managed-settings.d/B.json"),
        Source(Layer.POLICY, f"{etc}/managed-settings.d/9.json"),
        Source(Layer.POLICY, f"{etc}/managed-settings.d/10.json"),
        Source(Layer.POLICY, f"{etc}/managed-settings.json"),
        Source(Layer.FLAG, "/flag.json"),
        Source(Layer.LOCAL, f"{project}/.stockade/settings.local.json", project=True),
        Source(Layer.LOCAL, f"{project}/.claude/settings.local.json", foreign=True, project=True),
        Source(Layer.LOCAL, f"{home}/.stockade/settings.local.json"),
        Source(Layer.LOCAL, f"{home}/.claude/settings.local.json", foreign=True),
        Source(Layer.USER, f"{home}/.stockade/settings.json"),
        Source(Layer.USER, f"{home}/.claude/settings.json", foreign=True),
        Source(Layer.PROJECT, f"{project}/.stockade/settings.json", project=True),
        Source(Layer.PROJECT, f"{project}/.claude/settings.json", foreign=True, project=True),
    )


def test_layers_never_rise(root: Path) -> None:
    layers = [source.layer for source in sources(_locations(root))]
    assert layers == sorted(layers, reverse=True)


def test_only_files_that_somebody_named_are_required(root: Path) -> None:
    locations = _locations(root).but(flag_file="/flag.json", settings_file="/given.json")
    assert [source.file for source in sources(locations) if source.required] == ["/given.json", "/flag.json"]


def test_in_home_its_files_are_the_users_alone(root: Path) -> None:
    locations = _locations(root, "home")
    assert not any(source.project for source in sources(locations))
    assert project_directory(locations) == str(root / "home")


@pytest.mark.parametrize(
    ("made", "cwd", "project"),
    [
        pytest.param([], "home/work/repo/sub", "home/work/repo/sub", id="nothing there: the working directory"),
        pytest.param(["home/work/repo/.git/HEAD"], "home/work/repo/sub", "home/work/repo", id="the repository's root"),
        pytest.param(["home/work/repo/.git"], "home/work/repo/sub", "home/work/repo", id="a worktree's .git file"),
        pytest.param(
            ["home/work/repo/.git/HEAD", "home/work/.stockade/settings.json"],
            "home/work/repo/sub",
            "home/work/repo",
            id="nothing above the repository counts",
        ),
        pytest.param(
            ["home/work/repo/.git/HEAD", "home/work/repo/.stockade/settings.json"],
            "home/work/repo/sub",
            "home/work/repo",
            id="the root itself counts",
        ),
        *(
            pytest.param([f"home/work/{name}"], "home/work/repo/sub", "home/work", id=f"found by {name}")
            for name in NAMES
        ),
        pytest.param(
            ["home/work/repo/sub/.claude/settings.json", "home/work/repo/.stockade/settings.json"],
            "home/work/repo/sub",
            "home/work/repo/sub",
            id="the nearest wins",
        ),
        pytest.param(["home/.stockade/settings.json"], "home/work/repo", "home/work/repo", id="home is no project"),
        pytest.param(["home/.git/HEAD"], "home/work/repo", "home/work/repo", id="home is no repository"),
        pytest.param([".stockade/settings.json"], "home/work/repo", "home/work/repo", id="nothing above home counts"),
        pytest.param(["opt/.stockade/settings.json"], "opt/x/y", "opt", id="outside home"),
        pytest.param(["opt/.stockade/other.json"], "opt/x/y", "opt/x/y", id="the directory alone is nothing"),
    ],
)
def test_the_project_directory(root: Path, made: list[str], cwd: str, project: str) -> None:
    for name in made:
        _write(root / name)
    assert project_directory(_locations(root, cwd)) == str(root / project)


def test_a_broken_link_counts_as_a_settings_file(root: Path) -> None:
    locations = _locations(root)
    (root / "home/work/.stockade").mkdir()
    (root / "home/work/.stockade/settings.json").symlink_to("gone")
    assert project_directory(locations) == str(root / "home/work")


def test_what_everybody_may_write_is_nobodys_project(root: Path) -> None:
    _write(root / "tmp/.claude/settings.json")
    locations = _locations(root, "tmp/mine/sub")
    (root / "tmp").chmod(0o1777)
    assert project_directory(locations) == str(root / "tmp/mine/sub")
    assert project_directory(_locations(root, "tmp")) == str(root / "tmp")


def test_links_do_not_hide_home(root: Path) -> None:
    _write(root / "home/.stockade/settings.json")
    (root / "link").symlink_to("home")
    locations = Locations(str(root / "link"), str(root / "home"), "/none")
    assert not any(source.project for source in sources(locations))


def test_all_settings_files_there_or_not(root: Path) -> None:
    _write(root / "home/work/repo/.git/HEAD")
    _write(root / "home/work/repo/sub/.stockade/settings.json")
    locations = _locations(root).but(flag_file="/flag.json", settings_file="/given.json")
    below = [root / "home/work/repo/sub", root / "home/work/repo", root / "home/work"]
    places = [str(root / "home"), *map(str, below), *map(str, (root / "home").parents)]
    assert settings_files(locations) == (
        "/given.json",
        "/flag.json",
        f"{root}/etc/managed-settings.json",
        f"{root}/etc/managed-settings.d",
        *(os.path.join(place, name) for place in places for name in NAMES),
        f"{root}/home/.stockade/trusted.json",
    )


def test_every_source_is_among_the_settings_files(root: Path) -> None:
    locations = _locations(root).but(flag_file="/flag.json", settings_file="/given.json")
    assert {source.file for source in sources(locations)} <= set(settings_files(locations))


def test_drop_ins_that_cannot_be_listed_stop(root: Path) -> None:
    locations = _locations(root)
    (root / "etc").mkdir()
    (root / "etc/managed-settings.d").touch()
    with pytest.raises(SettingsError, match=r"managed-settings.d: cannot be listed: Not a directory"):
        sources(locations)


def test_locations_from_the_environment(root: Path) -> None:
    environ = {"HOME": "/home/ann", "STOCKADE_FLAG_SETTINGS": "flag.json"}
    assert Locations.here(environ, str(root), "given.json") == Locations(
        str(root), "/home/ann", MANAGED, f"{root}/flag.json", f"{root}/given.json"
    )
    absolute = Locations.here(environ | {"STOCKADE_FLAG_SETTINGS": "/f"}, str(root), "/s")
    assert (absolute.flag_file, absolute.settings_file) == ("/f", "/s")


@pytest.mark.parametrize("environ", [pytest.param({}, id="unset"), pytest.param({"HOME": ""}, id="empty")])
def test_without_home_the_user_database_decides(root: Path, environ: dict[str, str]) -> None:
    assert Locations.here(environ, str(root)) == Locations(str(root), pwd.getpwuid(os.getuid()).pw_dir)


def test_an_empty_flag_variable_is_unset(root: Path) -> None:
    assert Locations.here({"HOME": "/h", "STOCKADE_FLAG_SETTINGS": ""}, str(root)).flag_file is None


@pytest.mark.parametrize("spelling", ["{}", "{}/", "/{}", "{}/.", "{}//", "{}/../home"])
def test_home_is_one_place_however_it_is_spelled(root: Path, spelling: str) -> None:
    locations = _locations(root)
    found = Locations.here({"HOME": spelling.format(locations.home)}, locations.cwd)
    assert found.home == locations.home
    local = Origin(Layer.LOCAL, f"{root}/home/.stockade/settings.local.json")
    assert project_of(local, spelling.format(locations.home)) is None
    assert sources(found.but(managed=locations.managed)) == sources(locations)


def test_a_home_that_is_the_root_of_the_disk_has_its_files_read_once(root: Path) -> None:
    found = [source.file for source in sources(_locations(root).but(home="/"))]
    assert len(found) == len(set(found))
    assert found.count("/.stockade/settings.json") == 1


def test_a_home_by_a_link_is_no_project(root: Path) -> None:
    locations = _locations(root)
    _write(root / "home/.stockade/settings.json")
    (root / "link").symlink_to("home")
    found = [source for source in sources(locations.but(home=str(root / "link"))) if source.project]
    assert all(not source.file.startswith((f"{root}/home/.", f"{root}/link")) for source in found)


def test_what_stands_above_home_counts_to_tighten(root: Path) -> None:
    locations = _locations(root)
    assert not _above(locations)
    _write(root / ".stockade/settings.json")
    assert f"{root}/.stockade/settings.json" in _above(locations)
    assert project_directory(locations) == locations.cwd
    inside = _locations(root, "home")
    assert f"{root}/.stockade/settings.json" in _above(inside)
    files = [source.file for source in sources(inside)]
    assert len(files) == len(set(files))


def test_a_project_around_home_is_found(root: Path) -> None:
    locations = _locations(root)
    _write(root / "home/.stockade/settings.json")
    assert project_around_home(locations) is None
    for repository in ("home/.git", ".git"):
        _write(root / repository)
        assert project_around_home(locations) == f"{root}/home/.stockade/settings.json"
        (root / repository).unlink()
    _write(root / ".git")
    (root / "home/.stockade/settings.json").unlink()
    assert project_around_home(locations) is None
    _write(root / ".claude/settings.json")
    assert project_around_home(locations) == f"{root}/.claude/settings.json"
    assert project_around_home(locations.but(home="/")) is None


def test_a_stranger_in_a_directory_of_ones_own_still_tightens_when_it_is_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locations = _locations(root)
    file = root / "home/work/.stockade/settings.json"
    _write(file)
    give_away(file.parent, monkeypatch)
    give_away(file, monkeypatch)
    for mode in (0o755, 0o757, 0o1777):
        (root / "home/work").chmod(mode)
        assert str(file) in [source.file for source in sources(locations)], oct(mode)
        assert left_out(locations) == ()


def test_a_relative_home_is_refused(root: Path) -> None:
    with pytest.raises(SettingsError, match="HOME: is not an absolute path"):
        Locations.here({"HOME": "ann"}, str(root))


def test_a_user_without_any_home_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with pytest.raises(SettingsError, match="HOME: is not set, and this user is not in the user database"):
        Locations.here({}, str(root))


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch, owner: int = 4242) -> None:
    """Make a path another user's, or (who is not root cannot) have it look so."""
    if os.geteuid() == 0:
        os.chown(path, owner, owner)
        return
    for function in ("lstat", "stat"):
        look = getattr(os, function)

        def looked(name: str, *, look: Any = look, **words: Any) -> os.stat_result:
            found: os.stat_result = look(name, **words)
            return os.stat_result((*found[:4], owner, *found[5:])) if str(name) == str(path) else found

        monkeypatch.setattr(os, function, looked)


def _above(locations: Locations) -> list[str]:
    return [source.file for source in sources(locations) if source.above]


def test_every_file_farther_up_counts_nearest_first_and_only_to_tighten(root: Path) -> None:
    for name in NAMES:
        _write(root / "home/work/repo/sub" / name)
    _write(root / "home/work/repo/.stockade/settings.json")
    _write(root / "home/work/.claude/settings.local.json")
    repo, work = root / "home/work/repo", root / "home/work"
    shared = [
        *(f"{place}/{folder}/settings.json" for place in (repo, work) for folder in (".stockade", ".claude")),
    ]
    local = [name.replace("settings.json", "settings.local.json") for name in shared]
    assert _above(_locations(root)) == [*local, *shared]
    assert [source.file for source in sources(_locations(root)) if source.project and not source.above] == [
        f"{repo}/sub/{name}" for name in NAMES
    ]


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(".git/HEAD", id="a repository"),
        pytest.param(".git", id="a file of git"),
        *(pytest.param(name, id=name) for name in NAMES),
    ],
)
def test_nothing_that_a_command_plants_on_the_way_hides_a_project(root: Path, planted: str) -> None:
    mine = root / "home/work/repo/.stockade/settings.json"
    _write(mine)
    locations = _locations(root, "home/work/repo/sub/deep")
    assert not _above(locations)
    _write(root / "home/work/repo/sub" / planted)
    assert str(mine) in _above(locations)


def test_nor_does_an_open_directory(root: Path) -> None:
    mine = root / "home/work/repo/.stockade/settings.json"
    _write(mine)
    locations = _locations(root)
    (root / "home/work/repo").chmod(0o777)
    assert str(mine) in _above(locations)
    mine.chmod(0o666)
    mine.parent.chmod(0o777)
    assert str(mine) in _above(locations)


def test_the_name_by_which_somebody_came_counts_too(root: Path) -> None:
    _write(root / "home/work/repo/.stockade/settings.json")
    (root / "elsewhere").mkdir()
    (root / "home/work/repo/sub").symlink_to(root / "elsewhere")
    name = root / "home/work/repo/sub"
    by_argument = Locations.here({"HOME": str(root / "home")}, str(name))
    assert (by_argument.cwd, by_argument.entered) == (str(root / "elsewhere"), str(name))
    assert _above(by_argument)[2:] == [
        f"{root}/home/work/repo/.stockade/settings.json",
        f"{root}/home/work/repo/.claude/settings.json",
    ]
    assert f"{root}/home/work/repo/.stockade/settings.json" in settings_files(by_argument)
    assert project_directory(by_argument) == str(root / "elsewhere")


@pytest.mark.parametrize(
    ("name", "entered"),
    [
        pytest.param("{root}/link", "{root}/link", id="a link to here"),
        pytest.param("{root}/real", "", id="no link"),
        pytest.param("{root}/other", "", id="stale"),
        pytest.param("link", "", id="relative"),
        pytest.param("", "", id="not set"),
    ],
)
def test_the_shell_says_how_somebody_came(root: Path, monkeypatch: pytest.MonkeyPatch, name: str, entered: str) -> None:
    for folder in ("real", "other"):
        (root / folder).mkdir()
    (root / "link").symlink_to("real")
    monkeypatch.chdir(root / "real")
    found = Locations.here({"HOME": "/home/ann", "PWD": name.format(root=root)})
    assert (found.cwd, found.entered) == (str(root / "real"), entered.format(root=root))


def test_projects_can_be_left_out(root: Path) -> None:
    file = root / "home/work/repo/.claude/settings.json"
    _write(file)
    locations = _locations(root)
    assert left_out(locations) == ()
    ignoring = locations.but(ignore_project=True)
    assert not any(source.project for source in sources(ignoring))
    assert left_out(ignoring) == (str(file),)
    assert settings_files(ignoring) == settings_files(locations)


@pytest.mark.parametrize("place", ["tmp", "tmp/mine"])
def test_in_an_open_directory_what_a_stranger_put_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    locations = _locations(root, "tmp/mine")
    (root / place).chmod(0o1777)
    file = root / place / ".stockade/settings.json"
    _write(file)
    give_away(file.parent, monkeypatch)
    give_away(root / place, monkeypatch, 4243)
    assert str(file) not in [source.file for source in sources(locations)]
    assert left_out(locations) == (str(file),)
    assert project_directory(locations) == str(root / "tmp/mine")
    (root / place).chmod(0o755)
    assert str(file) in [source.file for source in sources(locations)]


@pytest.mark.parametrize(
    ("layer", "file", "project"),
    [
        pytest.param(Layer.PROJECT, "/p/.stockade/settings.json", "/p", id="shared"),
        pytest.param(Layer.LOCAL, "/p/.claude/settings.local.json", "/p", id="local"),
        pytest.param(Layer.LOCAL, "/home/.stockade/settings.local.json", None, id="local of home"),
        pytest.param(Layer.USER, "/home/.stockade/settings.json", None, id="user"),
        pytest.param(Layer.COMMAND_LINE, "/p/.stockade/settings.json", None, id="given"),
        pytest.param(Layer.POLICY, "/p/.stockade/settings.json", None, id="managed"),
        pytest.param(Layer.PROJECT, "/p/other/settings.json", None, id="no folder of settings"),
        pytest.param(Layer.LOCAL, "", None, id="no file"),
    ],
)
def test_whose_project_said_it(layer: Layer, file: str, project: str | None) -> None:
    assert project_of(Origin(layer, file), "/home") == project


def test_a_link_to_home_hides_no_project_either(root: Path) -> None:
    _write(root / "home/work/repo/.stockade/settings.json")
    (root / "home/work/repo/sub").symlink_to(root / "home")
    locations = Locations.here({"HOME": str(root / "home")}, str(root / "home/work/repo/sub"))
    assert locations.cwd == str(root / "home")
    assert f"{root}/home/work/repo/.stockade/settings.json" in _above(locations)
    assert not any(source.project and not source.above for source in sources(locations))
