"""No swap of names in the middle of an access gets past a wall, however many threads try."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground

#: Half of the threads swap what a name means, the other half use the name; each says how often it got through.
RACE = r"""
import os, sys, threading, time
victim, secret, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
got = {"written": 0, "read": 0, "planted": 0}
busy = True

def swap(index):
    # Two threads change what "door" is, two move the repository away and make another.
    door = (
        lambda: os.symlink(os.path.dirname(victim), f"new{index}"),
        lambda: os.rmdir("door"),
        lambda: os.rename(f"new{index}", "door"),
        lambda: time.sleep(0.0001),
        lambda: os.unlink("door"),
        lambda: os.mkdir("door"),
    )
    repository = (
        lambda: os.rename(".git", f"git{index}"),
        lambda: os.makedirs(".git/hooks"),
        lambda: time.sleep(0.0001),
        lambda: os.rename(f"git{index}", ".git"),
    )
    for _ in range(rounds):
        for act in door if index % 2 else repository:
            try:
                act()
            except OSError:
                pass

def use():
    while busy:
        for kind, path, flags in (
            ("written", "door/" + os.path.basename(victim), os.O_WRONLY),
            ("read", "door/" + os.path.basename(secret), os.O_RDONLY),
            ("planted", ".git/hooks/pre-commit", os.O_WRONLY | os.O_CREAT),
        ):
            try:
                file = os.open(path, flags, 0o755)
            except OSError:
                continue
            try:
                got[kind] += bool(os.read(file, 5)) if kind == "read" else os.write(file, b"x")
            finally:
                os.close(file)

users = [threading.Thread(target=use) for _ in range(4)]
swappers = [threading.Thread(target=swap, args=(index,)) for index in range(4)]
for thread in users + swappers:
    thread.start()
for thread in swappers:
    thread.join()
busy = False
for thread in users:
    thread.join()
print(got["written"] > 0, got["read"] > 0, got["planted"] > 0)
"""


@pytest.mark.parametrize("rounds", [1500])
def test_eight_threads_that_swap_names_get_nowhere(ground: Ground, rounds: int) -> None:
    victim, secret = ground.outside / "victim", ground.outside / "secret"
    victim.write_text("unchanged")
    secret.write_text("secret")
    hooks = ground.project / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "kept").write_text("unchanged")
    words = [sys.executable, "-I", "-S", "-c", RACE, str(victim), str(secret), str(rounds)]
    with_walls = ground.sandbox(filesystem__denyRead=(str(secret),))
    before = ground.snapshot()
    done = with_walls.run(words, timeout=60)
    assert (done.exit_code, done.output) == (0, "False False False\n")
    assert ground.snapshot() == before
    assert os.listdir(hooks) == ["kept"]
    elsewhere = ground.root / "elsewhere"
    (elsewhere / ".git" / "hooks").mkdir(parents=True)
    control = subprocess.run(words, cwd=elsewhere, capture_output=True, check=True, timeout=60)
    assert control.stdout == b"True True True\n"
