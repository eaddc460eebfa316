from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import covers, kernel
from stockade.platforms.linux.mount import Mount

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stockade.platforms.linux.jail import Jail

    Outcome = Callable[..., tuple[int, str, str]]
    OpenJail = Callable[..., Jail]


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """A writable directory with what stands for two names that must stay absent."""
    project = tmp_path.resolve() / "project"
    (project / "directory").mkdir(parents=True)
    (project / "directory" / "of-the-host").write_text("secret")
    (project / "file").write_text("of the host")
    return project


def _mounts(held: Path, operation: str) -> list[Mount]:
    kept = [Mount(operation, f"{held}/{name}") for name in ("directory", "file")]  # type: ignore[arg-type]
    return [Mount("writable", str(held)), *kept]


def test_what_covers_an_absent_place_is_empty_and_not_the_host_s(
    open_jail: OpenJail, outcome: Outcome, held: Path
) -> None:
    jail = open_jail(*_mounts(held, "absent"))
    line = f"cd {held}; ls -A directory; cat file; stat -c '%a %u' directory file; id -u"
    code, out, err = outcome(jail, "sh", "-c", line)
    *modes, user = out.split("\n")[:-1]
    assert (code, modes, err) == (0, [f"555 {user}", f"444 {user}"], "")


def test_two_covers_are_not_the_same(open_jail: OpenJail, outcome: Outcome, held: Path) -> None:
    (held / "other").mkdir()
    jail = open_jail(*_mounts(held, "absent"), Mount("absent", f"{held}/other"))
    code, out, _ = outcome(jail, "sh", "-c", f"cd {held}; stat -c %i directory file other")
    assert (code, len(set(out.split()))) == (0, 3)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("echo x > directory/x", "ermission denied"),
        ("mkdir directory/x", "ermission denied"),
        ("echo x > file", "ermission denied"),
        ("chmod 777 directory; echo x > directory/x", "No space left"),
        ("chmod 777 directory; mkdir directory/x", "No space left"),
        ("chmod 777 file; cat /etc/passwd > file", "No space left"),
        ("rmdir directory", "busy"),
        ("rm -f file", "busy"),
        ("mv file other", "busy"),
    ],
)
def test_nothing_is_made_or_written_there(
    open_jail: OpenJail, outcome: Outcome, held: Path, line: str, words: str
) -> None:
    jail = open_jail(*_mounts(held, "absent"))
    code, out, err = outcome(jail, "sh", "-c", f"cd {held}; {line}")
    assert (code != 0, out, words in err) == (True, "", True), err
    assert (held / "file").read_text() == "of the host"
    assert [path.name for path in (held / "directory").iterdir()] == ["of-the-host"]


@pytest.mark.parametrize("line", ["ls directory", "cat file", "echo x > file", "mkdir directory/x"])
def test_what_is_withheld_cannot_be_read_either(open_jail: OpenJail, outcome: Outcome, held: Path, line: str) -> None:
    jail = open_jail(*_mounts(held, "withheld"))
    code, out, err = outcome(jail, "sh", "-c", f"cd {held}; {line}")
    assert (code != 0, out, "ermission denied" in err) == (True, "", True), err


def test_nobody_reaches_the_directory_that_holds_all_covers(open_jail: OpenJail, outcome: Outcome, held: Path) -> None:
    jail = open_jail(*_mounts(held, "absent"))
    code, out, _ = outcome(jail, "sh", "-c", "ls -A /dev/.walls/covers; grep -c walls/covers /proc/self/mountinfo")
    assert (code != 0, out) == (True, "0\n")


@pytest.mark.parametrize("git", ["HEAD of a directory", "file", "nothing", "empty directory"])
def test_git_leaves_a_cover_in_a_repository_alone(open_jail: OpenJail, outcome: Outcome, held: Path, git: str) -> None:
    if git == "file":
        (held / ".git").write_text("gitdir: elsewhere")
    elif git != "nothing":
        (held / ".git").mkdir()
        if git.startswith("HEAD"):
            (held / ".git" / "HEAD").touch()
    jail = open_jail(*_mounts(held, "absent"))
    code, out, err = outcome(jail, "sh", "-c", f"cd {held}; ls -A directory; cat directory/.gitignore")
    expected = (0, ".gitignore\n*\n") if git.startswith(("HEAD", "file")) else (1, "")
    assert (code, out) == expected, err
    code, out, err = outcome(jail, "sh", "-c", f"cd {held}; chmod 700 directory; touch directory/x")
    assert "No space left" in err


@pytest.mark.parametrize(("observed", "mode"), [(True, 0o755), (False, 0o555)])
def test_a_mode_refuses_only_where_nobody_else_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, observed: bool, mode: int
) -> None:
    for name in ("move_mount", "open_tree"):
        monkeypatch.setattr(kernel, name, lambda *_: -1)
    made = covers.Covers(os.open(tmp_path, os.O_RDONLY), b"", observed=observed)
    made.make(directory=True)
    made.make(directory=True, closed=True)
    made.make(directory=False)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "012"] == [mode, 0, 0o444]
