"""What git on the host would run because a config names it, or obey because a known repository has it, stays as it is.

Each attack runs once without the sandbox: then git on the host must run the planted program, or the test shows nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

import pytest

from stockade.filesystem.planning import MOST_KEPT
from stockade.policy.compile import compile_policy
from stockade.policy.files import Access, Reason, judge
from stockade.policy.places import Disk
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.merge import EMPTY

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy

PATH: Final = "/usr/local/bin:/usr/bin:/bin"
WHO: Final = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
# What a planted program does: it leaves a mark beside the project.
EVIL: Final = "#!/bin/sh\\ntouch {mark}\\n"
PLANT: Final = 'plant() {{ mkdir -p "$(dirname "$1")"; printf \'' + EVIL + '\' > "$1"; chmod +x "$1"; }}; '
COMMIT: Final = "git commit -q --allow-empty -m again"

#: By name: what the host sets up, what a command does, what the host does then, and what the command wanted to write.
ATTACKS: Final = {
    "a hook in core.hooksPath": (
        "mkdir .husky; git config core.hooksPath .husky",
        PLANT + "plant .husky/pre-commit",
        COMMIT,
        ".husky/pre-commit",
    ),
    "core.hooksPath that is missing": (
        "git config core.hooksPath .husky/_",
        PLANT + "plant .husky/_/pre-commit",
        COMMIT,
        ".husky/_/pre-commit",
    ),
    "core.hooksPath moved aside": (
        "mkdir -p tools/hooks; git config core.hooksPath tools/hooks",
        PLANT + "mv tools aside; plant tools/hooks/pre-commit",
        COMMIT,
        "tools/hooks",
    ),
    "core.hooksPath by a link": (
        "mkdir real; ln -s real .husky; git config core.hooksPath .husky",
        PLANT + "rm .husky; plant .husky/pre-commit || plant real/pre-commit",
        COMMIT,
        "real/pre-commit",
    ),
    "core.hooksPath of a nested repository": (
        "git init -q one/two; git -C one/two config core.hooksPath .husky",
        PLANT + "plant one/two/.husky/pre-commit",
        "git -C one/two commit -q --allow-empty -m again",
        "one/two/.husky",
    ),
    "core.hooksPath of the user": (
        "git config --global core.hooksPath .githooks",
        PLANT + "plant .githooks/pre-commit",
        COMMIT,
        ".githooks",
    ),
    "a file that the config includes": (
        "touch shared.config; git config include.path ../shared.config",
        PLANT + 'plant evil; printf "[core]\\nfsmonitor=$PWD/evil\\n" >> shared.config',
        "git status",
        "shared.config",
    ),
    "a missing file that the config includes": (
        "git config includeIf.gitdir:/.path ../shared.config; git config include.path ../team/config",
        PLANT + 'plant evil; mkdir team; printf "[core]\\nfsmonitor=$PWD/evil\\n" > team/config',
        "git status",
        "team",
    ),
    "hooks behind an include": (
        "git config -f team.config core.hooksPath .husky; git config include.path ../team.config",
        PLANT + "plant .husky/pre-commit",
        COMMIT,
        ".husky",
    ),
    "a program that the config names": (
        "mkdir tools; : > tools/monitor; chmod +x tools/monitor; git config core.fsmonitor ./tools/monitor",
        PLANT + "plant tools/monitor",
        "git status",
        "tools/monitor",
    ),
    "hooks of a nested repository that has none": (
        "git init -q one; rm -r one/.git/hooks",
        PLANT + "plant one/.git/hooks/pre-commit",
        "git -C one commit -q --allow-empty -m again",
        "one/.git/hooks",
    ),
    "hooks that are moved into a nested repository": (
        "git init -q one; rm -r one/.git/hooks",
        PLANT + "plant one/.git/new/pre-commit; mv -T one/.git/new one/.git/hooks",
        "git -C one commit -q --allow-empty -m again",
        "one/.git/hooks",
    ),
    "the config of a nested repository's worktree": (
        "git init -q one; git -C one config extensions.worktreeConfig true",
        PLANT + 'plant evil; printf "[core]\\nfsmonitor=$PWD/evil\\n" > one/.git/config.worktree',
        "git -C one status",
        "one/.git/config.worktree",
    ),
    "the config of a gitlink deep down": (
        "git init -q a/b/c/d/e/deep; git -C a/b/c/d/e/deep commit -q --allow-empty -m first; git add a",
        PLANT + 'plant evil; printf "[core]\\nfsmonitor=$PWD/evil\\n" >> a/b/c/d/e/deep/.git/config',
        "git status",
        "a/b/c/d/e/deep/.git/config",
    ),
}
#: What must work in the same trees.
WORK: Final = (
    "git -C one add -A . && git -C one commit -q --allow-empty -m inside && git -C one log --oneline",
    "git commit -q --allow-empty --no-verify -m inside",
    "touch tools/other; git status",
)


class Place:
    """A project with its repository, a home, and where the mark of a planted program would be."""

    def __init__(self, root: Path) -> None:
        self.project, self.home, self.mark = root / "project", root / "home", root / "mark"
        self.project.mkdir(parents=True)
        self.home.mkdir()
        self.environment = {"PATH": PATH, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"} | WHO
        self.host("git init -q; git commit -q --allow-empty -m first")

    def host(self, line: str) -> None:
        shell = ["/bin/sh", "-c", line]
        subprocess.run(shell, cwd=self.project, env=self.environment, check=False, capture_output=True, timeout=60)

    def policy(self) -> SandboxPolicy:
        return compile_policy(EMPTY, cwd=str(self.project), home=str(self.home))

    def sandbox(self) -> BlockingSandbox:
        return BlockingSandbox(self.policy(), environment=self.environment)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Place(tmp_path.resolve() / "place")


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_that_git_would_run_can_be_planted(place: Place, tmp_path: Path, name: str) -> None:
    setup, attack, trigger, wanted = ATTACKS[name]
    place.host(setup)
    # The control, in the same place, so that absolute paths lead to the same things.
    kept = tmp_path / "kept"
    shutil.copytree(place.project, kept, symlinks=True)
    place.host(attack.format(mark=place.mark))
    place.host(trigger)
    assert place.mark.exists(), "the attack does not work without walls"
    place.mark.unlink()
    shutil.rmtree(place.project)
    shutil.copytree(kept, place.project, symlinks=True)

    verdict = judge(place.policy().files, Access.WRITE, f"{place.project}/{wanted}", Disk())
    assert (verdict.allowed, verdict.reason) == (False, Reason.PROTECTED)
    with place.sandbox() as sandbox:
        sandbox.run(attack.format(mark=place.mark), timeout=60)
        place.host(trigger)
        sandbox.run(attack.format(mark=place.mark), timeout=60)
    place.host(trigger)
    assert not place.mark.exists()


def test_work_goes_on(place: Place) -> None:
    for name in ("a hook in core.hooksPath", "hooks of a nested repository that has none"):
        place.host(ATTACKS[name][0])
    place.host(ATTACKS["a program that the config names"][0])
    with place.sandbox() as sandbox:
        for line in WORK:
            done = sandbox.run(line, timeout=60)
            assert done.exit_code == 0, done.stderr.decode()
    assert not os.path.lexists(place.project / "one/.git/hooks")


def test_what_the_host_configures_meanwhile_binds_the_next_command(place: Place) -> None:
    (place.project / "tools").mkdir()
    with place.sandbox() as sandbox:
        assert sandbox.run("touch tools/a", timeout=60).exit_code == 0
        place.host("git config core.hooksPath tools")
        assert sandbox.run("touch tools/b", timeout=60).exit_code != 0
        place.host("git config --unset core.hooksPath")
        assert sandbox.run("touch tools/c", timeout=60).exit_code == 0
        with (place.project / ".git/config").open("a") as config:  # in place, as an editor may do it
            config.write("[core]\nhooksPath = tools\n")
        assert sandbox.run("touch tools/d", timeout=60).exit_code != 0
        place.host("git config --unset core.hooksPath")
        place.host("git config --global core.hooksPath tools")
        assert sandbox.run("touch tools/e", timeout=60).exit_code != 0


def test_a_crowd_of_repositories_without_hooks_stops_no_command(place: Place) -> None:
    place.host("git init -q first; rm -r first/.git/hooks; for n in $(seq 300); do cp -r first r$n; done")
    with place.sandbox() as sandbox:
        assert sandbox.run("git -C r7 commit -q --allow-empty -m inside", timeout=60).exit_code == 0
        done = sandbox.run("for one in */; do mkdir $one.git/hooks && echo made; done", timeout=60)
    assert done.stdout.decode().count("made") == 301 - MOST_KEPT
