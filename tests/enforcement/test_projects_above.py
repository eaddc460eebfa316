"""What a project denies holds everywhere below it, whatever a command leaves there for the next run to find.

Each run is the command line as its users start it, from a directory below the project; each attack is made by a command
behind the walls where it can be, and by the host where a command could not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from stockade.settings.trust import trust

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60.0
#: The command line with managed settings of the test's own.
START = """
import os, sys
from stockade.cli.main import main
from stockade.settings.sources import Locations
raise SystemExit(main(sys.argv[2:], Locations.here(os.environ).but(managed=sys.argv[1])))
"""
#: The same, for a user whose home in the user database is another one.
START_WITH_ENTRY = (
    """
import os, pwd, sys
entry = list(pwd.getpwuid(os.getuid()))
entry[5] = os.environ["ENTRY"]
pwd.getpwuid = lambda _: pwd.struct_passwd(entry)
"""
    + START
)
LOOSE = {"sandbox": {"filesystem": {"allowRead": ["../secret"]}, "excludedCommands": ["*"]}}


class Tree:
    """A project with a deny of its own, and a directory below."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project, self.home, self.managed = root / "project", root / "home", root / "managed.json"
        self.sub = self.project / "sub"
        for folder in (self.sub, self.home):
            folder.mkdir(parents=True)
        for place in (self.project, self.sub):
            (place / "secret").write_text(f"of {place.name}\n")

    def write(self, file: Path, settings: object) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
        return file

    def deny(self, *paths: str) -> Path:
        rules = {"sandbox": {"filesystem": {"denyRead": paths}}}
        return self.write(self.project / ".stockade" / "settings.json", rules)

    def run(self, line: str, *, cwd: Path | None = None, options: tuple[str, ...] = (), **variables: str) -> Any:
        place = cwd or self.sub
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PWD": str(place), **variables}
        return subprocess.run(
            [
                sys.executable,
                "-c",
                START_WITH_ENTRY if "ENTRY" in variables else START,
                str(self.managed),
                "run",
                *options,
                "-c",
                line,
            ],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path.resolve())


def is_closed(tree: Tree, cwd: Path | None = None) -> bool:
    """Tell whether the project's secret is closed to a run from below, and what was not denied is open."""
    done = tree.run(f"cat {tree.sub}/secret; cat {tree.project}/secret", cwd=cwd)
    assert done.stdout.startswith("of sub\n"), (done.stdout, done.stderr)
    return "of project" not in done.stdout and "Permission denied" in done.stderr


def test_a_relative_deny_is_about_the_project_wherever_the_session_works(tree: Tree) -> None:
    assert not is_closed(tree)
    tree.deny("secret")
    assert is_closed(tree)
    assert is_closed(tree, tree.project)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param("mkdir .git", id="a directory .git"),
        pytest.param("git init -q . || mkdir -p .git", id="a repository"),
        pytest.param("echo gitdir: /nowhere > .git", id="a file .git"),
        pytest.param("mkdir -p .stockade && echo '{}' > .stockade/settings.json", id="settings"),
        pytest.param("mkdir -p .stockade && echo '{}' > .stockade/settings.local.json", id="local settings"),
        pytest.param("mkdir -p .claude && echo '{}' > .claude/settings.json", id="settings of an agent"),
        pytest.param(
            f"mkdir -p .stockade && echo '{json.dumps(LOOSE)}' > .stockade/settings.json", id="loose settings"
        ),
        pytest.param("chmod 777 . ..", id="open directories"),
        pytest.param("chmod 777 . .. && mkdir .git .stockade && echo '{}' > .stockade/settings.json", id="all of it"),
    ],
)
@pytest.mark.parametrize("who", ["a command", "the host"])
def test_nothing_planted_below_takes_it_away(tree: Tree, attack: str, who: str) -> None:
    tree.deny("secret")
    if who == "a command":
        # From the project, where all of its directories are writable. What the inspection sets aside is gone then.
        tree.run(f"cd sub && {attack}", cwd=tree.project)
    else:
        subprocess.run(["sh", "-c", attack], cwd=tree.sub, check=True, capture_output=True)
    assert is_closed(tree)


def test_a_directory_that_became_a_link_to_elsewhere_stays_in_the_project(tree: Tree) -> None:
    tree.deny("secret")
    elsewhere = tree.root / "elsewhere"
    elsewhere.mkdir()
    line = f"mv sub/secret {elsewhere}/ && rmdir sub && ln -s {elsewhere} sub"
    assert tree.run(line, cwd=tree.project, options=("--allow-write", str(elsewhere))).returncode == 0
    assert tree.sub.is_symlink()
    assert is_closed(tree)


def test_two_projects_that_say_the_same_word_mean_two_places(tree: Tree) -> None:
    tree.deny("secret")
    tree.write(tree.sub / ".stockade" / "settings.json", {"sandbox": {"filesystem": {"denyRead": ["secret"]}}})
    done = tree.run(f"cat {tree.project}/secret; cat {tree.sub}/secret")
    assert done.stdout == ""
    assert done.stderr.count("Permission denied") == 2


def test_no_settings_file_above_can_be_written_from_below(tree: Tree) -> None:
    options = ("--allow-write", str(tree.root))
    for place in (tree.project, tree.root):
        for folder in (".stockade", ".claude"):
            line = f"mkdir -p {place}/{folder} && echo '{{' > {place}/{folder}/settings.json"
            assert tree.run(line, options=options).returncode != 0, line
            assert not (place / folder).exists()
    assert tree.run(f"touch {tree.root}/plain", options=options).returncode == 0


def test_a_run_leaves_nothing_in_the_directories_above(tree: Tree) -> None:
    before = {place: sorted(os.listdir(place)) for place in (tree.sub, tree.project, tree.root)}
    assert tree.run(f"ls -A {tree.project} {tree.root}").returncode == 0
    assert {place: sorted(os.listdir(place)) for place in before} == before


def test_a_lock_holds_against_every_file_that_a_user_can_name(tree: Tree) -> None:
    target = tree.home / "socket-free"
    tree.write(tree.managed, {"sandbox": {"enabled": True, "network": {"deniedDomains": ["a.example"]}}})
    loose = {"sandbox": {"excludedCommands": ["*"], "network": {"httpProxyPort": 9, "allowAllUnixSockets": True}}}
    flag = tree.write(tree.root / "flag.json", loose)
    tree.write(tree.home / ".stockade" / "settings.json", loose)
    done = tree.run(f"touch {target}", STOCKADE_FLAG_SETTINGS=str(flag))
    assert done.returncode != 0
    names = "sandbox.excludedCommands, sandbox.network.allowAllUnixSockets, sandbox.network.httpProxyPort"
    for file in (flag, tree.home / ".stockade" / "settings.json"):
        assert f"{file}: ignored: {names}; sandbox settings are locked by {tree.managed} (policy)" in done.stderr
    given = tree.run("true", options=("--settings", str(flag)))
    assert given.returncode == 125
    assert "would loosen sandbox.excludedCommands" in given.stderr
    socket = tree.run("true", options=("--allow-unix-socket", "/run/x.sock"))
    assert (socket.returncode, "would loosen sandbox.network.allowUnixSockets" in socket.stderr) == (125, True)


def test_a_variable_that_does_not_count_cannot_stop_a_run(tree: Tree) -> None:
    tree.write(tree.managed, {"sandbox": {"allowFlagSettings": False}})
    done = tree.run("echo ran", STOCKADE_FLAG_SETTINGS="/nowhere/flag.json")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert f"STOCKADE_FLAG_SETTINGS does not count: {tree.managed} (policy) says" in done.stderr


def test_a_deny_of_the_policy_is_not_lost_because_somebody_repeats_it(tree: Tree) -> None:
    vault = tree.project / "vault"
    tree.write(vault / "key", "of the vault")
    tree.write(tree.managed, {"sandbox": {"filesystem": {"denyRead": [str(vault)]}}})
    options = ("--deny-read", str(vault), "--allow-read", str(vault / "key"))
    done = tree.run(f"cat {vault}/key", options=options)
    assert (done.stdout, "Permission denied" in done.stderr) == ("", True)


def test_a_command_of_the_project_above_does_not_change_what_a_project_below_denies(tree: Tree) -> None:
    rules = json.dumps({"sandbox": {"filesystem": {"denyRead": ["secret"]}}})
    file = tree.write(tree.sub / ".stockade" / "settings.json", rules)
    for line in (
        f"echo '{{}}' > {file}",
        f"rm -f {file}; test ! -e {file}",
        f"mv {file.parent} {file.parent}-aside",
        f"mv {tree.sub} {tree.project}/aside",
        "echo '{}' > new && mv -f new sub/.stockade/settings.json",
    ):
        assert tree.run(line, cwd=tree.project).returncode != 0, line
    assert file.read_text() == rules
    assert tree.run("cat secret").stdout == ""


def test_trusted_words_do_not_count_in_another_place(tree: Tree) -> None:
    outside = tree.root / "outside"
    outside.mkdir()
    tree.write(tree.sub / "deep" / "file", "")
    file = tree.write(
        tree.project / ".stockade" / "settings.json", {"sandbox": {"filesystem": {"allowWrite": ["../outside"]}}}
    )
    (tree.project / "outside").mkdir()
    trust(str(tree.home), str(file), file.read_bytes())
    assert tree.run(f"touch {outside}/made").returncode == 0
    (tree.sub / ".stockade").symlink_to(file.parent)
    done = tree.run(f"touch {tree.project}/outside/made")
    assert done.returncode != 0
    assert "is not trusted; ignored: sandbox.filesystem.allowWrite" in done.stderr


@pytest.mark.parametrize("home", ["sub", "sub/", "sub/deep", "sub/gone", "link"])
def test_a_home_inside_the_project_hides_nothing(tree: Tree, home: str) -> None:
    (tree.sub / "deep").mkdir()
    (tree.project / "link").symlink_to("sub")
    file = tree.deny("secret")
    done = tree.run(f"cat {tree.sub}/secret; cat {tree.project}/secret", HOME=str(tree.project / home))
    assert done.stdout == "of sub\n", done.stderr
    assert "Permission denied" in done.stderr
    assert done.stderr.count(f"in a project ({file}), and not your home in the user database") == 1


def test_nor_does_a_home_that_is_the_project(tree: Tree) -> None:
    tree.deny("secret")
    done = tree.run(f"cat {tree.project}/secret", HOME=str(tree.project))
    assert (done.stdout, "Permission denied" in done.stderr) == ("", True)


def test_a_home_of_the_user_in_a_project_is_nothing_to_warn_of(tree: Tree) -> None:
    tree.deny("secret")
    done = tree.run(f"cat {tree.project}/secret", HOME=str(tree.sub), ENTRY=str(tree.sub))
    assert (done.stdout, "user database" in done.stderr) == ("", False)
    assert "Permission denied" in done.stderr


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}//", "{}/.", "/{}", "{}/../home"])
def test_however_home_is_spelled_its_files_are_the_users(tree: Tree, spelling: str) -> None:
    rules = {"sandbox": {"filesystem": {"allowWrite": ["."], "denyWrite": ["./kept"]}}}
    tree.write(tree.home / ".stockade" / "settings.local.json", rules)
    place = tree.home / "place"
    tree.write(place / "kept" / "file", "")
    line = f"touch {place}/made; touch {tree.home}/opened; touch {place}/kept/made"
    done = tree.run(line, cwd=place, HOME=spelling.format(tree.home))
    assert done.returncode != 0
    assert (place / "made").exists()
    assert not (tree.home / "opened").exists()
    assert not (place / "kept/made").exists()


def test_a_deny_of_the_policy_in_home_does_not_follow_the_variable(tree: Tree) -> None:
    real = tree.project / "real"
    for place in (real, tree.home):
        tree.write(place / "zz", f"of {place.name}")
    line = f"cat {real}/zz {tree.home}/zz"
    assert tree.run(line, ENTRY=str(real)).stdout == "of realof home"
    tree.write(tree.managed, {"sandbox": {"filesystem": {"denyRead": ["~/zz"]}}})
    done = tree.run(line, ENTRY=str(real))
    assert (done.stdout, done.stderr.count("Permission denied")) == ("", 2)


def test_nor_does_an_allow_of_the_policy(tree: Tree) -> None:
    vault = tree.root / "vault"
    tree.write(vault / "open" / "file", "of the vault")
    tree.write(tree.managed, {"sandbox": {"filesystem": {"denyRead": [str(vault)], "allowRead": ["~/open"]}}})
    line = f"cat {vault}/open/file"
    assert tree.run(line, HOME=str(vault), ENTRY=str(vault)).stdout == "of the vault"
    done = tree.run(line, HOME=str(vault), ENTRY=str(tree.home))
    assert done.stdout == ""
    assert f'{tree.managed}: "~/open" allows nothing: HOME is {vault}' in done.stderr


@pytest.mark.parametrize("mode", ["o+w", "1777"])
def test_a_command_that_opens_a_directory_makes_no_stranger_of_who_wrote_its_settings(tree: Tree, mode: str) -> None:
    file = tree.deny("secret")
    # Only root can make them another user's; the settings of an ordinary user stay in force as well.
    for path in (file, file.parent) if os.geteuid() == 0 else ():
        os.chown(path, 4242, 4242)
    assert is_closed(tree)
    assert tree.run(f"chmod {mode} .", cwd=tree.project).returncode == 0
    assert tree.project.stat().st_mode & 0o002
    assert is_closed(tree)


def test_a_link_to_a_directory_that_became_a_link_stays_in_the_project(tree: Tree) -> None:
    tree.deny("secret")
    elsewhere, short = tree.root / "elsewhere", tree.root / "short"
    elsewhere.mkdir()
    short.mkdir()
    (tree.project / "other").symlink_to(elsewhere)
    (short / "s").symlink_to(tree.project / "other")
    assert is_closed(tree, short / "s")
