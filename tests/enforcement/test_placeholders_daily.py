"""Names that are held while commands run get in nobody's way: neither inside nor on the host.

Inside, tools that walk a whole tree succeed, and nothing can be put under a held name. On the host, programs write
under the very names that commands must not make, and what they wrote is all that is left.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stockade
from stockade.placeholder import MARK, is_kept

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.conftest import Ground

    from stockade.sandbox.blocking import BlockingSandbox

PATIENCE = 60.0
#: Every one of these works on an ordinary directory. What this machine does not have is not tried.
WALKS = {
    "chmod": "chmod -R u+rwX .",
    "chown": 'chown -R "$(id -u):$(id -g)" .',
    "cp": 'cp -r . "$TMPDIR/copy"',
    "tar": 'mkdir "$TMPDIR/copy" && tar c . | tar x -C "$TMPDIR/copy"',
    "zip": 'zip -qr "$TMPDIR/copy.zip" .',
    "find": "find . -type f -exec cat {} + >/dev/null",
    "touch": "touch .idea .vscode",
    "du": "du -a . >/dev/null",
    "python3": "python3 -c \"import os, shutil; shutil.copytree('.', os.environ['TMPDIR'] + '/copy')\"",
    "node": "node -e \"fs.cpSync('.', process.env.TMPDIR + '/copy', {recursive: true})\"",
    "rm": "touch more && rm -rf more* && ls -A >/dev/null",
    "cat": "cat refs file",
}
FOUND = {name: line for name, line in WALKS.items() if shutil.which(name)}


def _held(project: Path) -> list[str]:
    return sorted(path.name for path in project.iterdir() if is_kept(str(path)))


@contextmanager
def _running(sandbox: BlockingSandbox) -> Iterator[None]:
    """A command that runs for as long as this is open."""
    with sandbox.spawn("echo ready; read -r _", stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        yield
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.wait(timeout=PATIENCE).exit_code == 0


@pytest.fixture
def project(ground: Ground) -> Path:
    (ground.project / "file").write_text("x")
    (ground.project / "folder").mkdir()
    (ground.project / "folder" / "other").write_text("y")
    return ground.project


@pytest.mark.parametrize("tool", FOUND)
def test_tools_that_walk_a_tree_succeed(ground: Ground, project: Path, tool: str) -> None:
    before = sorted(os.listdir(project))
    sandbox = ground.sandbox()
    assert sandbox.run("test -d .vscode && test -d .git && test -f refs").ok, "the test needs something to walk over"
    done = sandbox.run(FOUND[tool])
    assert (done.exit_code, done.stderr) == (0, b"")
    sandbox.close()
    assert sorted(os.listdir(project)) == before


WRITES = {
    "a file in a directory whose mode allows it": ("chmod 777 .vscode && echo x > .vscode/x", "Permission denied"),
    "a file in a directory": ("echo x > .vscode/settings.json", "Permission denied"),
    "a directory in a directory": ("mkdir .claude/commands", "Permission denied"),
    "a link in a directory": ("ln -s /etc/passwd .idea/x", "Permission denied"),
    "a node": ("echo x > refs", "Permission denied"),
    "removing": ("rm -rf .vscode", "Device or resource busy"),
    "moving away": ("mv .vscode other", "Device or resource busy"),
    "moving onto": ("mkdir mine && mv -T mine .vscode", "Device or resource busy"),
    "a file for a directory": ("echo x > .mcp.json", "Permission denied"),
    "more of a file for a directory": ("echo x >> .vscode", "Permission denied"),
    "a file for a directory, by dash": ("dash -c 'echo x > .mcp.json'", "Permission denied"),
    "by python": ('python3 -c \'open(".mcp.json", "w")\'', "Permission denied"),
    "as if it were there, by python": ('python3 -c \'open(".mcp.json", "r+")\'', "Permission denied"),
    "by node": ('node -e \'require("fs").writeFileSync(".mcp.json", "{}")\'', "EACCES: permission denied"),
    "at once": (
        'echo x > new; python3 -c \'import os; os.replace("new", ".mcp.json")\'; rm new; false',
        "Permission den",
    ),
    "by truncate": ("python3 -c 'import os; os.truncate(\".mcp.json\", 0)'", "Permission denied"),
    "by mv": ("echo x > new; mv new .mcp.json; rm new; false", "Permission denied"),
    "by tee": ("echo x | tee .mcp.json", "Permission denied"),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_under_a_held_name_is_refused_in_plain_words(ground: Ground, project: Path, name: str) -> None:
    line, words = WRITES[name]
    sandbox = ground.sandbox()
    done = sandbox.run(line)
    assert done.exit_code != 0
    assert words in done.stderr.decode()
    sandbox.close()
    assert {"file", "folder"} <= set(os.listdir(project)) <= {"file", "folder", "mine"}


def test_a_branch_with_a_held_name_is_refused_in_plain_words(ground: Ground, project: Path) -> None:
    prepare = (
        "git init -q && git config user.name me && git config user.email a@b && git add file && git commit -qm a && "
        "git switch -qc with && echo {} > .mcp.json && git add .mcp.json && git commit -qm b && git switch -q -"
    )
    subprocess.run(["bash", "-c", prepare], cwd=project, check=True)
    sandbox = ground.sandbox()
    done = sandbox.run("git checkout with")
    assert done.exit_code
    assert "Permission denied" in done.stderr.decode()
    assert [one.target for one in done.violations if one.target.startswith(f"{project}/.mcp.json")]
    sandbox.close()
    assert not (project / ".mcp.json").exists()


@pytest.mark.parametrize(
    "opened", ["chmod -R 777 .", 'chmod -R 777 . && chown -R "$(id -u):$(id -g)" .'], ids=["chmod", "chown"]
)
def test_nothing_can_be_stored_in_a_cover_whatever_its_mode(ground: Ground, project: Path, opened: str) -> None:
    sandbox = ground.sandbox()
    script = """
import os, socket
def refused(what, *arguments, **options):
    try:
        what(*arguments, **options)
    except OSError as error:
        return error.strerror
    return "done"
def write(path):
    with open(path, "w") as file:
        file.write("x")
def bind(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
print({
    refused(write, ".vscode/x"), refused(os.mkdir, ".vscode/x"), refused(os.symlink, "x", ".vscode/x"),
    refused(os.mkfifo, ".vscode/x"), refused(os.link, "file", ".vscode/x"), refused(bind, ".vscode/x"),
    refused(os.open, ".vscode", os.O_TMPFILE | os.O_RDWR), refused(write, "refs"),
    refused(os.setxattr, ".vscode", "user.x", b"x"), refused(os.setxattr, "refs", "user.x", b"x" * 200),
    refused(os.rename, "file", ".vscode/x"), refused(os.rmdir, ".vscode"), refused(os.unlink, "refs"),
} & {"done"} or "nothing", os.listdir(".vscode"))
"""
    (project / "script.py").write_text(script)
    done = sandbox.run(f"{opened}; python3 -I -S script.py")
    assert (done.stdout, done.stderr) == (b"nothing []\n", b"")
    assert stat.S_IMODE((project / ".vscode").stat().st_mode) != 0o777, "what is inside is not the host's"


def test_what_is_refused_below_a_held_name_is_told(ground: Ground, project: Path) -> None:
    assert project.is_dir()
    sandbox = ground.sandbox(observe="on")
    for line in ("echo x > .vscode/tasks.json", "chmod 777 .vscode; mkdir .vscode/tasks.json"):
        done = sandbox.run(line)
        (told,) = done.violations
        assert told.target == f"{project}/.vscode/tasks.json"
        assert "an editor on the host" in told.remedy


def test_programs_of_the_host_write_under_held_names_while_a_command_runs(ground: Ground, project: Path) -> None:
    sandbox = ground.sandbox()
    with _running(sandbox):
        assert {".vscode", ".git", ".idea"} <= set(_held(project))
        assert ground.bare("mkdir -p .vscode && echo {} > .vscode/settings.json").returncode == 0
        assert ground.bare("git init -q . && git status --short").stdout == b"?? .vscode/\n?? file\n?? folder/\n"
        assert ground.bare(f"cp -r . {ground.outside}/copy").returncode == 0
        shutil.copytree(project, ground.outside / "again", ignore=shutil.ignore_patterns(*_nodes(project)))
    # The next command knows what is there now.
    done = sandbox.run("cat .vscode/settings.json; echo x > .vscode/settings.json")
    assert (done.stdout, done.exit_code) == (b"{}\n", 1)
    assert "Read-only file system" in done.stderr.decode()
    sandbox.close()
    assert sorted(os.listdir(project)) == [".git", ".vscode", "file", "folder"]
    assert os.listdir(project / ".vscode") == ["settings.json"]


def _nodes(project: Path) -> list[str]:
    return [path.name for path in project.iterdir() if stat.S_ISSOCK(path.lstat().st_mode)]


def test_settings_can_be_edited_while_a_command_runs(ground: Ground, project: Path) -> None:
    """``stockade allow-domain`` writes ``.stockade``, which some rules keep commands from making."""
    sandbox = ground.sandbox(filesystem__denyWrite=(f"{project}/.stockade/settings.local.json",))
    with _running(sandbox):
        assert ".stockade" in _held(project)
        source = str(Path(stockade.__file__).parents[1])
        environment = {"PATH": os.environ["PATH"], "HOME": str(ground.home), "PYTHONPATH": source}
        command = [sys.executable, "-m", "stockade", "allow-domain", "example.org"]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
    sandbox.close()
    assert sorted(os.listdir(project)) == [".stockade", "file", "folder"]


def test_settings_of_an_agent_can_be_written_while_a_command_runs_where_git_ignores_them(
    ground: Ground, project: Path
) -> None:
    (project / ".claude").mkdir()
    (project / ".gitignore").write_text(".claude/settings.local.json\n")
    local = project / ".claude/settings.local.json"
    sandbox = ground.sandbox()
    with _running(sandbox):
        assert (is_kept(str(local)), local.read_text()) == (True, "")
        assert stat.S_ISSOCK((project / ".claude/settings.json").lstat().st_mode), "git would see a file"
        assert sandbox.run("echo bad > .claude/settings.local.json").exit_code != 0
        local.write_text("{}")
        assert sandbox.run("echo bad > .claude/settings.local.json").exit_code != 0
        aside = project / ".claude/aside"
        aside.write_text("[]")
        aside.rename(local)
        assert sandbox.run("echo bad > .claude/settings.local.json").exit_code != 0
    sandbox.close()
    assert (os.listdir(project / ".claude"), local.read_text()) == (["settings.local.json"], "[]")


def test_git_sees_nothing_on_either_side(ground: Ground, project: Path) -> None:
    assert ground.bare("git init -q && git add -A && git -c user.name=n -c user.email=e commit -qm x").returncode == 0
    sandbox = ground.sandbox()
    assert sandbox.run("git status --porcelain --untracked-files=all").stdout == b""
    with _running(sandbox):
        assert _held(project) != []
        assert ground.bare("git status --porcelain --untracked-files=all").stdout == b""
    assert sandbox.run("echo z > file && git add -A && git diff --cached --name-only").stdout == b"file\n"


@pytest.mark.parametrize("kind", ["empty", "repository", "home"])
def test_what_is_there_before_is_there_after(ground: Ground, kind: str) -> None:
    settings: dict[str, Any] = {}
    place = ground.project
    if kind == "repository":
        assert ground.bare("git init -q").returncode == 0
    elif kind == "home":
        place = ground.home
        settings = {"filesystem__allowWrite": ("~",)}
        (place / ".idea").mkdir()
    before = {path: path.lstat().st_mode for path in place.rglob("*")}
    sandbox = ground.sandbox(**settings)
    with _running(sandbox):
        shapes = {name: stat.S_IFMT((place / name).lstat().st_mode) for name in _held(place)}
        assert shapes[".vscode"] == shapes[".mcp.json"] == stat.S_IFDIR
        assert (".git" in shapes) == (kind != "repository")
        assert ".idea" not in shapes or kind != "home", "an empty directory of the user's own is none"
        if kind == "home":
            assert all(shapes[name] == stat.S_IFREG for name in shapes if name.endswith("rc"))
        listed = set(sandbox.run(["ls", "-A", str(place)]).stdout.decode().split())
        # Where nothing else is, names that are held are there without being listed.
        assert (
            set(shapes) <= listed
            if kind == "home"
            else listed == {path.name for path in before if path.parent == place}
        )
        assert sandbox.run(["ls", "-d", *(f"{place}/{name}" for name in shapes)]).ok
    sandbox.close()
    assert {path: path.lstat().st_mode for path in place.rglob("*")} == before


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("kind", ["an empty project", "a repository with a file in it"])
def test_the_names_that_appear_are_those_of_the_documentation(ground: Ground, kind: str, *, explicit: bool) -> None:
    rows = (Path(__file__).parents[2] / "SECURITY.md").read_text().splitlines()
    cells = next(row for row in rows if row.startswith(f"| {kind} |")).split("|")
    host = {name.strip("`") for name in cells[2].split()} - ({"refs"} if explicit else set())
    if explicit:
        (ground.home / ".gitconfig").write_text("[safe]\n\tbareRepository = explicit\n")
    own: set[str] = set()
    if "repository" in kind:
        assert ground.bare("git init -q && touch file").returncode == 0
        own = {".git", "file"}
    inside: set[str] = set() if cells[3].strip() == "nothing" else host
    policy = stockade.load_policy(ground.project, environ=os.environ | {"HOME": str(ground.home)})
    policy = policy.but(files=policy.files.but(homes=()))  # the user database knows another home, with settings of git
    with stockade.BlockingSandbox(policy) as sandbox, _running(sandbox):
        assert set(os.listdir(ground.project)) == host | own
        assert set(sandbox.run("ls -A").stdout.decode().split()) == inside | own
    assert set(os.listdir(ground.project)) == own


@pytest.mark.parametrize("sessions", [1, 3])
def test_what_a_command_disguises_as_a_placeholder_is_set_aside(ground: Ground, sessions: int) -> None:
    """The time of an empty directory says that nothing is there. A command can set it, too, and fill it afterwards."""
    sandboxes = [ground.sandbox() for _ in range(sessions)]
    disguise = f"import os; os.makedirs('sub/.vscode'); os.utime('sub/.vscode', ns=({MARK}, {MARK}))"
    assert sandboxes[0].run([sys.executable, "-I", "-S", "-c", disguise]).ok
    assert is_kept(f"{ground.project}/sub/.vscode")
    assert sandboxes[sessions // 2].run("true").ok
    done = sandboxes[-1].run("echo {} > sub/.vscode/tasks.json")
    assert done.exit_code == 0
    assert [found.target for found in done.violations] == [f"{ground.project}/sub/.vscode/tasks.json"]
    assert not (ground.project / "sub/.vscode/tasks.json").exists()


@pytest.mark.parametrize(
    "line",
    [
        "git clean -fdq",
        "git stash -qu && git stash pop -q",
        "git add -A && git status -s",
        pytest.param('cp -r . "$TMPDIR/copy" && rm -r "$TMPDIR/copy"', id="removing a copy"),
        pytest.param('cp -r . "$TMPDIR/copy" && mv "$TMPDIR/copy" sub', id="a copy in the project"),
        pytest.param('cp -a . "$TMPDIR/copy" && echo 1 >"$TMPDIR/copy/.vscode/new"', id="writing into a copy"),
    ],
)
def test_git_in_a_repository_walks_past_held_names(ground: Ground, project: Path, line: str) -> None:
    made = "git init -q && git -c user.name=a -c user.email=b@c commit -q --allow-empty -m first"
    subprocess.run(["sh", "-c", made], cwd=project, env=_git_environment(ground), check=True)
    with ground.sandbox() as sandbox:
        done = sandbox.run(f"echo 1 >new; {line}", env={"GIT_AUTHOR_NAME": "a", **_git_environment(ground)})
        assert (done.exit_code, done.stderr) == (0, b""), done.stderr
        assert not [told for told in done.violations if "set aside" in str(told)]
    assert not [name for name in _held(project) if name != ".git"]


def _git_environment(ground: Ground) -> dict[str, str]:
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {"PATH": os.environ["PATH"], "HOME": str(ground.home), "GIT_CONFIG_NOSYSTEM": "1", **names}
