from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.platforms import temporary
from stockade.platforms.temporary import PREFIX, TemporaryDirectory, sweep

if TYPE_CHECKING:
    from pathlib import Path


def make(base: Path) -> TemporaryDirectory:
    return TemporaryDirectory.make({"TMPDIR": str(base)})


def test_private_and_gone_after_use(tmp_path: Path) -> None:
    made = make(tmp_path)
    assert made.path.startswith(f"{tmp_path}/stockade-{os.geteuid()}/")
    assert os.stat(made.path).st_mode & 0o777 == 0o700
    made.remove()
    made.remove()
    assert os.listdir(os.path.dirname(made.path)) == []


def test_what_a_hostile_command_leaves_is_removed_and_nothing_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    made = make(tmp_path)
    top = os.open(made.path, os.O_RDONLY)
    os.symlink(outside, "link", dir_fd=top)
    os.mkfifo("pipe", dir_fd=top)
    os.mkdir(b"odd \xff\n*", dir_fd=top)
    os.mkdir("closed", 0o700, dir_fd=top)
    os.mkdir("closed/inner", dir_fd=top)
    os.chmod("closed", 0, dir_fd=top)
    for number in range(20):  # names that whoever removes might take for its own use
        os.makedirs(f"{made.path}/.{number}/.{number}/x")
    here = top
    for _ in range(1500):  # deeper than recursion and paths allow
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        if here != top:
            os.close(here)
        here = deeper
    os.close(here)
    os.close(top)
    made.remove()
    assert not os.path.exists(made.path)
    assert (outside / "kept").read_text() == "x"


@pytest.mark.parametrize("more", ["", "a/more", "b/more", "more"])
def test_what_is_expected_goes_first_and_the_rest_after_it(tmp_path: Path, more: str) -> None:
    made = make(tmp_path)
    for folder in ("a/b/c", "b"):
        os.makedirs(f"{made.path}/{folder}")
    for name in filter(None, ("a/b/c/file", more)):
        open(f"{made.path}/{name}", "w").close()
    made.remove(("b/", "a/b/c/file", "a/b/c/", "a/b/", "a/"))
    assert not os.path.exists(made.path)


def test_the_living_are_left_alone_and_the_dead_are_swept(tmp_path: Path) -> None:
    living = make(tmp_path)
    script = (
        "import os, signal; from stockade.platforms.temporary import TemporaryDirectory\n"
        f"made = TemporaryDirectory.make({{'TMPDIR': {str(tmp_path)!r}}})\n"
        "print(made.path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    dead = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False).stdout.strip()
    assert os.path.isdir(dead)
    assert os.path.isdir(living.path)
    sweep(os.path.dirname(living.path))
    assert not os.path.exists(dead)
    assert os.path.isdir(living.path)
    living.remove()


@pytest.mark.parametrize("step", ["chmod", "open"])
def test_one_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    base = os.path.dirname(make(tmp_path).path)
    act = getattr(os, step)
    swept: list[str] = []

    def sweep_first(path: str, *rest: int) -> object:
        if path.startswith(f"{base}/{PREFIX}") and not swept:
            swept.append(path)
            os.rmdir(path)
        return act(path, *rest)

    monkeypatch.setattr(os, step, sweep_first)
    made = make(tmp_path)
    assert len(swept) == 1
    assert made.path not in swept
    assert os.path.isdir(made.path)
    made.remove()


def test_names_that_are_not_ours_are_not_swept(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path)
    (tmp_path / "other").mkdir()
    sweep(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("bad", ["/nonexistent", "relative", ""])
def test_a_bad_tmpdir_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
    monkeypatch.setattr(temporary, "PLACES", (str(tmp_path / "missing"), str(tmp_path)))
    made = TemporaryDirectory.make({"TMPDIR": bad})
    assert made.path.startswith(f"{tmp_path}/stockade-{os.geteuid()}/")
    made.remove()


def test_of_the_usual_places_one_that_is_in_use_already_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which one that is depends on the machine's past: the journal of placeholders lies in /var/tmp, say."""
    first, second = (str(tmp_path / name) for name in ("first", "second"))
    monkeypatch.setattr(temporary, "PLACES", (first, second))
    os.mkdir(first)
    os.makedirs(f"{second}/stockade-{os.geteuid()}", 0o700)
    made = TemporaryDirectory.make({})
    assert made.path.startswith(f"{second}/")
    made.remove()


def test_the_usual_places() -> None:
    made = TemporaryDirectory.make({})
    assert os.path.dirname(os.path.dirname(made.path)) in temporary.PLACES
    made.remove()


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: str, _mode: int) -> None:
        raise OSError(28, "No space left on device")

    make(tmp_path).remove()
    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(UnavailableError, match="No space left"):
        make(tmp_path)
