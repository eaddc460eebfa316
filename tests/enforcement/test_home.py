"""A home directory is not writable by default; opened, it keeps what programs of the host obey in it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.conftest import policy_for

from stockade.policy.home_names import OBEYED_AT_HOME
from stockade.sandbox.blocking import BlockingSandbox

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy

SAID = "cannot write in the working directory"
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "home" / "user"
    made.mkdir(parents=True)
    return made


def _run(policy: SandboxPolicy, line: str) -> tuple[int | None, str, tuple[str, ...]]:
    with BlockingSandbox(policy, environment=ENVIRONMENT) as sandbox:
        done = sandbox.run(line)
        return done.exit_code, done.stdout.decode() + done.stderr.decode(), done.notes


@pytest.mark.parametrize("above", [0, 1, 2], ids=["home", "parent", "grandparent"])
def test_a_working_directory_that_holds_the_home_is_not_writable(home: Path, above: int) -> None:
    cwd = (home, *home.parents)[above]
    assert os.access(cwd, os.W_OK)
    code, said, notes = _run(policy_for(cwd, home), "echo x > made")
    assert (code != 0, "Read-only" in said, (cwd / "made").exists()) == (True, True, False)
    assert [note for note in notes if SAID in note and "--allow-write ." in note] == list(notes)


@pytest.mark.parametrize(
    "name", [".ssh", ".config/systemd/user", ".aws", ".gnupg", ".config/nvim/lua", ".emacs.d", ".dotfiles", "bin"]
)
def test_a_working_directory_that_programs_obey_in_the_home_is_not_writable(home: Path, name: str) -> None:
    cwd = home / name
    cwd.mkdir(parents=True)
    code, said, notes = _run(policy_for(cwd, home), "echo x > made")
    assert (code != 0, "Read-only" in said, os.listdir(cwd)) == (True, True, [])
    assert [note for note in notes if SAID in note and "--allow-write ." in note] == list(notes)
    code, _, notes = _run(policy_for(cwd, home, filesystem__allowWrite=("~",)), "echo x > made")
    assert (code != 0, os.listdir(cwd)) == (True, [])
    assert [note for note in notes if SAID in note and "--allow-protected " in note] == list(notes)
    code, _, notes = _run(policy_for(cwd, home, filesystem__allowWrite=(".",)), "echo x > made")
    assert (code, os.listdir(cwd), notes) == (0, ["made"], ())


@pytest.mark.parametrize("place", ["home/user/project", "home/user/.config/app", "beside", "home/other"])
def test_any_other_working_directory_is_writable(home: Path, place: str) -> None:
    cwd = home.parent.parent / place
    cwd.mkdir(parents=True)
    assert _run(policy_for(cwd, home), "echo x > made")[0] == 0
    assert (cwd / "made").read_text() == "x\n"


def test_the_home_of_the_user_database_counts_whatever_the_variable_says(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stockade.policy.compile.database_home", lambda: str(home))
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir()
    assert _run(policy_for(home, elsewhere), "echo x > made")[0] != 0
    opened = policy_for(home, elsewhere, filesystem__allowWrite=(str(home),))
    assert _run(opened, "echo x > made && ! echo x > .bashrc")[0] == 0
    assert os.listdir(home) == ["made"]


def test_a_home_by_another_name_is_the_home(home: Path) -> None:
    (home.parent / "link").symlink_to(home)
    policy = policy_for(home, home.parent / "link")
    assert _run(policy, "echo x > made")[0] != 0


@pytest.mark.parametrize("root", [".", "..", "../.."], ids=["home", "parent", "grandparent"])
def test_what_programs_obey_in_a_home_cannot_be_made(home: Path, root: str) -> None:
    """Each name is tried from an empty home, and from one that has the directories on the way."""
    for furnished in (False, True):
        if furnished:
            for name in OBEYED_AT_HOME:
                (home / name).parent.mkdir(parents=True, exist_ok=True)
        policy = policy_for(home, home, filesystem__allowWrite=(f"{home}/{root}",))
        lines = "\n".join(
            f"mkdir -p {home}/{os.path.dirname(name) or '.'}; echo bad >{home}/{name} && echo MADE {name}"
            for name in OBEYED_AT_HOME
        )
        code, said, _ = _run(policy, f"exec 2>/dev/null\necho ok > {home}/plain\n{lines}\ntrue")
        assert (code, said) == (0, "")
        assert (home / "plain").read_text() == "ok\n"
        assert [name for name in OBEYED_AT_HOME if (home / name).exists()] == []
        (home / "plain").unlink()
        assert furnished or os.listdir(home) == []


def test_what_is_there_in_a_home_cannot_be_changed(home: Path) -> None:
    for name in (".ssh/authorized_keys", ".nvm/nvm.sh", ".local/bin/tool", ".config/systemd/user/a.service"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("unchanged")
    policy = policy_for(home, home, filesystem__allowWrite=("~",))
    for line in (
        "echo bad > .ssh/authorized_keys",
        "echo bad > .nvm/nvm.sh",
        "echo bad > .local/bin/new",
        "mv .ssh aside",
        "rm .local/bin/tool",
        "mv .config aside",
        "ln -s /tmp .config/autostart",
    ):
        assert _run(policy, line)[0] != 0, line
    assert _run(policy, "mkdir .config/app && echo x > .config/app/settings && echo x > .local/other")[0] == 0
    assert (home / ".ssh/authorized_keys").read_text() == "unchanged"


def test_an_allow_of_its_own_opens_a_name_of_a_home(home: Path) -> None:
    project = home / "project"
    project.mkdir()
    (home / ".local/bin").mkdir(parents=True)
    policy = policy_for(project, home, filesystem__allowWrite=("~/.local/bin",))
    assert _run(policy, f"echo x > {home}/.local/bin/tool")[0] == 0
    wider = policy_for(project, home, filesystem__allowWrite=("~/.local",))
    assert _run(wider, f"echo x > {home}/.local/bin/tool")[0] != 0
    lifted = policy_for(project, home, filesystem__allowWrite=("~/.local",), filesystem__allowProtected=(".local/bin",))
    assert _run(lifted, f"echo x > {home}/.local/bin/tool && echo x > {home}/.local/lib")[0] != 0
    assert (home / ".local/bin/tool").read_text() == "x\n"


def _stockade(home: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    return [sys.executable, "-m", "stockade", *words], environment


def test_the_command_line_says_so_once_and_names_the_flag(home: Path) -> None:
    (home / ".ssh").mkdir()
    for cwd in (home, home / ".ssh"):
        argv, environment = _stockade(home, "run", "-c", "echo x > made")
        done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode != 0, done.stderr.count(SAID)) == (True, 1)
        assert "--allow-write ." in next(line for line in done.stderr.splitlines() if SAID in line)
        argv, environment = _stockade(home, "run", "--allow-write", ".", "-c", "echo x > made")
        done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert (cwd / "made").read_text() == "x\n"


def test_a_shell_says_so_before_it_starts(home: Path) -> None:
    argv, environment = _stockade(home, "shell")
    ours, theirs = pty.openpty()
    try:
        shell = subprocess.Popen(argv, cwd=home, env=environment | {"SHELL": "/bin/sh"}, stdin=theirs, stderr=theirs)
        os.close(theirs)
        said = b""
        while SAID.encode() not in said:
            said += os.read(ours, 4096)
        os.write(ours, b"exit\n")
        assert shell.wait(60) == 0
    finally:
        os.close(ours)


def test_no_compiled_start_up_file_is_put_beside_the_real_one(home: Path) -> None:
    """What zsh has compiled it runs in the place of the file, whether that is there or not."""
    said = "echo obeyed\n"
    line = """
    for name in .zshenv .zshrc .zlogin; do
        printf 'echo obeyed' > "$TMPDIR/$name"
        zsh -fc "zcompile $0/$name.zwc $TMPDIR/$name"
    done
    """.replace("$0", str(home))
    outside = home.parent / "outside"
    outside.mkdir()
    (outside / ".zshenv").write_text(said)
    zsh = {**ENVIRONMENT, "HOME": str(home), "ZDOTDIR": str(home)}
    subprocess.run(["zsh", "-fc", f"zcompile {home}/.zshenv.zwc {outside}/.zshenv"], env=zsh, check=True)
    assert subprocess.run(["zsh", "-lic", ":"], env=zsh, capture_output=True, check=False).stdout == b"obeyed\n"
    (home / ".zshenv.zwc").unlink()
    _run(policy_for(home, home, filesystem__allowWrite=(str(home),)), line)
    assert subprocess.run(["zsh", "-lic", ":"], env=zsh, capture_output=True, check=False).stdout == b""


@pytest.mark.parametrize("pattern", ["*", ".*", "*/*", "**/*", ".[a-z]*"])
def test_a_wildcard_opens_no_name_that_programs_obey(home: Path, pattern: str) -> None:
    for name in (".ssh/config", ".vimrc", ".npmrc", ".local/bin/tool", "bin/tool", "plain/file", ".plain/file"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("host\n")
    opened = (f"{home}/{pattern}",)
    line = f"cd {home}; for f in .ssh/config .vimrc .npmrc .local/bin/tool bin/tool .plain/file; do echo x > $f; done"
    _run(policy_for(home / "plain", home, filesystem__allowWrite=opened), line)
    changed = {
        str(found.relative_to(home)) for found in home.rglob("*") if found.is_file() if found.read_text() == "x\n"
    }
    assert changed == {".plain/file"}
    both = (*opened, f"{home}/.ssh")
    _run(policy_for(home / "plain", home, filesystem__allowWrite=both), f"echo x > {home}/.ssh/config")
    assert (home / ".ssh/config").read_text() == "x\n"
