"""The private cache of a project: there again in the next session, and out of everybody else's reach."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.enforcement.conftest import policy_for

from stockade.platforms.kept_caches import cache_of, caches_of, remove
from stockade.sandbox.blocking import BlockingSandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.enforcement.conftest import Ground

#: Behind the wall around all caches there is only the way to the project's own.
REFUSED = ("Permission denied", "Read-only file system", "Operation not permitted", "No such file")
OWNER = """
import sys
from stockade.policy.compile import compile_policy
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.merge import merge
with BlockingSandbox(compile_policy(merge([]), cwd=sys.argv[1], home=sys.argv[2])) as sandbox:
    sandbox.run(sys.argv[3])
"""


def _run(ground: Ground, line: str, project: Path | None = None, **settings: Any) -> tuple[str, str]:
    """Run a line in a session of its own; return what it said, output and errors."""
    with BlockingSandbox(policy_for(project or ground.project, ground.home, **settings)) as sandbox:
        done = sandbox.run(line, timeout=60)
    return done.stdout.decode(), done.stderr.decode()


def _other(ground: Ground, line: str) -> Path:
    """Have another project keep something; return its cache."""
    project = ground.root / "other"
    project.mkdir(exist_ok=True)
    assert _run(ground, line, project) == ("", "")
    found = cache_of(str(project), str(ground.home), {})
    assert found is not None
    return ground.root / found.path


def test_what_a_session_kept_is_there_in_the_next(ground: Ground) -> None:
    assert _run(ground, 'echo kept > "$XDG_CACHE_HOME/x"') == ("", "")
    assert _run(ground, 'cat "$XDG_CACHE_HOME/x"; touch "$PIP_CACHE_DIR" && stat -c %a "$XDG_CACHE_HOME"') == (
        "kept\n700\n",
        "",
    )
    assert os.stat(ground.home / ".cache/stockade-projects").st_mode & 0o777 == 0o700


def test_a_session_that_keeps_nothing_leaves_nothing(ground: Ground) -> None:
    _run(ground, "true")
    assert caches_of(str(ground.home), {}) == ()
    assert list(ground.home.iterdir()) == []
    (ground.home / ".cache").mkdir()
    _run(ground, "true")
    assert [path.name for path in ground.home.rglob("*")] == [".cache"]


@pytest.mark.parametrize(
    "settings",
    [
        {"filesystem__privateCache": False},
        {"filesystem__denyRead": ("~/.cache/stockade-projects/x",)},
        {"filesystem__denyWrite": ("~/.cache/x",)},
    ],
    ids=["off", "denied", "on"],
)
def test_no_project_reaches_it_from_a_home_that_is_open(ground: Ground, settings: dict[str, Any]) -> None:
    """Nor can it make one beforehand: the name of a cache is known."""
    opened = {"filesystem__allowWrite": (str(ground.home),), **settings}
    base = ground.home / ".cache/stockade-projects"
    base.parent.mkdir(exist_ok=True)
    _run(ground, f"mkdir -m 700 {base} && mkdir {base}/other-0; echo x > {ground.home}/written", **opened)
    assert (ground.home / "written").exists()
    assert not base.exists() or list(base.iterdir()) == []
    victim = _other(ground, 'echo mine > "$XDG_CACHE_HOME/x"')
    for line in (f"echo evil > {victim}/x", f"rm -r {victim}", f"mv {base.parent} {ground.home}/moved"):
        assert _run(ground, line, **opened)[1]
    assert (victim / "x").read_text() == "mine\n"


def test_no_other_project_can_see_or_change_it(ground: Ground) -> None:
    victim = _other(ground, 'echo mine > "$XDG_CACHE_HOME/x"')
    base = ground.home / ".cache/stockade-projects"
    for line in (
        f"ls {base}",
        f"cat {victim}/x",
        f"cat {victim.parent}/project",
        f"echo evil > {victim}/x",
        f"mkdir {base}/new",
        f"chmod 777 {base}",
        f"flock -n {victim.parent} true",
        "ls ${XDG_CACHE_HOME%/*/*} && ls $XDG_CACHE_HOME/../..",
    ):
        out, err = _run(ground, line)
        assert (line, out) == (line, "")
        assert any(word in err for word in REFUSED), (line, err)
    assert (victim / "x").read_text() == "mine\n"
    assert [path.name for path in victim.iterdir()] == ["x"]


def test_nor_can_a_session_in_the_home_directory(ground: Ground) -> None:
    """Opened, the home holds the cache in a place to write in; nothing on the way to it can be moved away."""
    victim = _other(ground, 'echo mine > "$XDG_CACHE_HOME/x"')
    line = (
        f"mv {ground.home}/.cache {ground.home}/moved; mv {ground.home}/.cache/stockade-projects {ground.home}/moved; "
        f"echo evil > {victim}/x; ls {victim}; echo own > $XDG_CACHE_HOME/y && cat $XDG_CACHE_HOME/y; "
        "mkdir ~/.cache/free && echo free"
    )
    opened = policy_for(ground.home, ground.home, filesystem__allowWrite=("~",))
    with BlockingSandbox(opened, environment=_home(ground)) as sandbox:
        done = sandbox.run(line, timeout=60)
    assert done.output == "own\nfree\n", done.stderr
    assert (victim / "x").read_text() == "mine\n"
    # What `mv` could not rename it has copied, as far as it could be read.
    assert [path for path in (ground.home / "moved").rglob("*") if path.is_file()] == []


def _home(ground: Ground) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(ground.home)}


@pytest.mark.parametrize("hidden", ["{home}", "{home}/.cache"])
def test_a_read_deny_around_it_hides_all_but_it(ground: Ground, hidden: str) -> None:
    (ground.home / ".cache").mkdir()
    (ground.home / ".cache/secret").write_text("secret")
    settings: dict[str, Any] = {"filesystem__denyRead": (hidden.format(home=ground.home),)}
    assert _run(ground, 'echo kept > "$XDG_CACHE_HOME/x"', **settings) == ("", "")
    out, err = _run(ground, f'cat "$XDG_CACHE_HOME/x" {ground.home}/.cache/secret', **settings)
    assert out == "kept\n"
    assert any(word in err for word in REFUSED), err


@pytest.mark.parametrize("denied", ["{home}", "{home}/.cache/stockade-projects", "{home}/.c*"])
def test_under_a_write_deny_caches_go_with_the_session(ground: Ground, denied: str) -> None:
    settings: dict[str, Any] = {"filesystem__denyWrite": (denied.format(home=ground.home),)}
    out, err = _run(
        ground, 'echo "${XDG_CACHE_HOME-unset}" && mkdir -p $PIP_CACHE_DIR && echo $PIP_CACHE_DIR', **settings
    )
    assert (out.splitlines()[0], err) == ("unset", "")
    assert out.splitlines()[1].endswith("/cache/pip")
    assert list(ground.home.iterdir()) == []


def test_a_link_of_the_users_leads_to_the_cache_and_no_other_link_does(ground: Ground) -> None:
    (ground.outside / "scratch").mkdir()
    (ground.home / ".cache").symlink_to(ground.outside / "scratch")
    assert _run(ground, 'echo kept > "$XDG_CACHE_HOME/x"') == ("", "")
    folder = ground.root / str(_only(ground))
    assert folder.parent == ground.outside / "scratch/stockade-projects"
    folder.rename(ground.outside / "elsewhere")
    folder.symlink_to(ground.outside / "elsewhere")
    before = ground.snapshot(ground.outside / "elsewhere")
    assert _run(ground, 'cat "$XDG_CACHE_HOME/x"')[0] == ""
    assert ground.snapshot(ground.outside / "elsewhere") == before


def _only(ground: Ground) -> str:
    (found,) = caches_of(str(ground.home), {})
    return found.folder


def test_links_that_commands_put_there_lead_nobody_astray(ground: Ground) -> None:
    """The host shows the user's settings of cargo in the cache; it follows no link of a command's to do so."""
    (ground.home / ".cargo").mkdir()
    (ground.home / ".cargo/config.toml").write_text("")
    before = ground.snapshot()
    _run(ground, f'rm -r "$CARGO_HOME"; ln -s {ground.outside} "$CARGO_HOME"')
    _run(ground, "true")
    assert ground.snapshot() == before
    found = cache_of(str(ground.project), str(ground.home), {})
    assert found is not None
    assert remove(found)
    assert ground.snapshot() == before


@pytest.mark.parametrize("home", ["missing", "not ours"])
def test_without_a_place_caches_go_with_the_session_and_it_is_said_once(ground: Ground, home: str) -> None:
    place = {"missing": "/nonexistent/home", "not ours": "/proc"}[home]
    environment = {"PATH": os.environ["PATH"], "TMPDIR": str(ground.outside)}
    said = []
    for _ in range(2):
        with BlockingSandbox(policy_for(ground.project, place), environment=environment) as sandbox:  # type: ignore[arg-type]
            done = sandbox.run('mkdir -p "$PIP_CACHE_DIR" && echo "${XDG_CACHE_HOME-unset}"', timeout=60)
        assert done.output == "unset\n"
        said.append([note for note in done.notes if "caches go with this session" in note])
    assert [len(notes) for notes in said] == [1, 0]


def test_nothing_is_removed_while_a_sandbox_uses_it(ground: Ground) -> None:
    with BlockingSandbox(ground.policy()) as sandbox:
        assert sandbox.run('echo kept > "$XDG_CACHE_HOME/x"').exit_code == 0
        found = cache_of(str(ground.project), str(ground.home), {})
        assert found is not None
        assert not remove(found)
        assert sandbox.run('cat "$XDG_CACHE_HOME/x"').output == "kept\n"
    assert remove(found)
    assert caches_of(str(ground.home), {}) == ()


def test_a_sandbox_that_was_killed_holds_nothing(ground: Ground, processes_with: Callable[[str], list[int]]) -> None:
    mark = f"sleep-{os.urandom(6).hex()}"
    line = f'mkdir "$XDG_CACHE_HOME/half"; while true; do date > "$XDG_CACHE_HOME/half/x"; touch on; done # {mark}'
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(ground.project), str(ground.home), line])
    _wait((ground.project / "on").exists)
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    _wait(lambda: not processes_with(mark))
    assert _run(ground, 'ls "$XDG_CACHE_HOME"') == ("half\n", "")
    found = cache_of(str(ground.project), str(ground.home), {})
    assert found is not None
    assert remove(found)


def _wait(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it does not happen")


def test_a_runtime_directory_can_be_written_and_goes_with_the_session(ground: Ground) -> None:
    (ground.outside / "run").mkdir(mode=0o700)
    environment = {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(ground.outside / "run")}
    before = ground.snapshot()
    with BlockingSandbox(ground.policy(), environment=environment) as sandbox:
        line = 'stat -c %a "$XDG_RUNTIME_DIR"; tmux -S "$XDG_RUNTIME_DIR/t" -f /dev/null new -d "sleep 9" && echo made'
        assert sandbox.run(line).output == "700\nmade\n"
        place = sandbox.run("echo $XDG_RUNTIME_DIR").output.strip()
    assert ground.snapshot() == before
    assert not os.path.exists(place)
    allowed = ground.policy(network__allowUnixSockets=(f"{ground.outside}/run/bus",))
    with BlockingSandbox(allowed, environment=environment) as sandbox:
        assert sandbox.run("echo $XDG_RUNTIME_DIR").output == f"{ground.outside}/run\n"
    environment.pop("XDG_RUNTIME_DIR")
    with BlockingSandbox(ground.policy(), environment=environment) as sandbox:
        assert sandbox.run("echo ${XDG_RUNTIME_DIR-unset}").output == "unset\n"
