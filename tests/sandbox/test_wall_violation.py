"""What the walls refused, in the words of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.backend import Report
from stockade.policy.compile import compile_policy
from stockade.policy.files import survey
from stockade.policy.places import Disk
from stockade.sandbox.record import Record
from stockade.sandbox.wall_violation import wall_violation
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.violations.violation import Occasion

if TYPE_CHECKING:
    from pathlib import Path

OUTSIDE = "outside every writable place"
PROTECTED = "always protected from writing"


@pytest.mark.parametrize(
    ("operation", "path", "rule", "why", "remedy"),
    [
        pytest.param(
            "write", "/out/file", "", OUTSIDE, 'add "{}/out/file" to sandbox.filesystem.allowWrite', id="write"
        ),
        pytest.param("metadata", "/out", "", OUTSIDE, 'add "{}/out" to sandbox.filesystem.allowWrite', id="metadata"),
        pytest.param("create", "/out/new", "", OUTSIDE, 'add "{}/out" to sandbox.filesystem.allowWrite', id="create"),
        pytest.param("delete", "/out/link", "", OUTSIDE, 'add "{}/out" to sandbox.filesystem.allowWrite', id="link"),
        pytest.param("rename", "/project", "", OUTSIDE, 'add "{}" to sandbox.filesystem.allowWrite', id="the root"),
        pytest.param("create", "/project/.idea", ".idea", PROTECTED, 'add ".idea" to', id="protected"),
        pytest.param("create", "/home/.bashrc", "", OUTSIDE, "cannot be allowed by allowWrite", id="protected outside"),
        pytest.param(
            "rename", "/project/kept", "", "it must stay where it is", "do it outside the sandbox", id="pinned"
        ),
        pytest.param(
            "unix-connect",
            "/out/s",
            "",
            "no rule allows",
            'add "{}/out/s" to sandbox.network.allowUnixSockets',
            id="socket",
        ),
    ],
)
def test_a_report_gets_its_reason_and_what_would_help(
    tmp_path: Path, operation: str, path: str, rule: str, why: str, remedy: str
) -> None:
    root = tmp_path.resolve()
    for name in ("project/kept", "out", "home"):
        (root / name).mkdir(parents=True)
    (root / "out" / "file").touch()
    (root / "out" / "link").symlink_to(root / "project")
    policy = compile_policy(
        merge([Document(Layer.USER, "settings.json", {})]), cwd=str(root / "project"), home=str(root / "home")
    )
    report = Report(1, operation, f"{root}{path}", 3)
    told = wall_violation(report, Occasion(0.0, "c", "", 3), survey(policy.files, Disk()), policy.sockets, Disk())
    assert (told.operation.value, told.target, told.rule, told.times) == (operation, f"{root}{path}", rule, 3)
    assert told.why.startswith(why)
    assert told.remedy.startswith(remedy.replace("{}", str(root)))


REMOVALS = {
    "/sub/.git/config": "rm -rf -- {}/sub;",
    "/sub/.git/hooks/pre-push": "rm -rf -- {}/sub;",
    "/tree/.git": "rm -rf -- {}/tree && git -C {} worktree prune;",
    "/.git/worktrees/tree/commondir": "git -C {} worktree prune;",
    "/foreign/.git": "rm -rf -- {}/foreign;",
    "/.git/config": "",
    "/.git/hooks/pre-push": "",
    "/.mcp.json": "",
}


@pytest.mark.parametrize("path", REMOVALS)
def test_what_mounts_keep_from_being_removed_is_told_with_what_removes_it(tmp_path: Path, path: str) -> None:
    root = tmp_path.resolve() / "project"
    for store in (root / ".git", root / "sub/.git"):
        for name in ("hooks", "objects", "refs"):
            (store / name).mkdir(parents=True)
        for file in ("HEAD", "config", "hooks/pre-push"):
            (store / file).touch()
    (root / ".git/worktrees/tree").mkdir(parents=True)
    (root / ".git/worktrees/tree/commondir").write_text("../..\n")
    (root / ".git/worktrees/tree/gitdir").write_text("/elsewhere/somebody/.git\n")  # a command has written that
    for name, text in (("tree", f"{root}/.git/worktrees/tree"), ("foreign", "/elsewhere/somebody/.git/worktrees/x")):
        (root / name).mkdir()
        (root / name / ".git").write_text(f"gitdir: {text}\n")
    policy = compile_policy(merge([]), cwd=str(root), home=str(tmp_path / "home"))
    report = Report(1, "delete", f"{root}{path}", 1)
    told = wall_violation(report, Occasion(0.0), survey(policy.files, Disk()), policy.sockets, Disk())
    expected = REMOVALS[path].replace("{}", str(root))
    assert told.remedy.startswith(
        f"to remove all of it, run outside the sandbox: {expected} or add " if expected else "add "
    )
    assert "somebody" not in told.remedy


def test_of_many_hooks_the_directory_is_told(tmp_path: Path) -> None:
    hooks = tmp_path.resolve() / ".git/hooks"
    hooks.mkdir(parents=True)
    policy = compile_policy(merge([]), cwd=str(tmp_path.resolve()), home="/nonexistent")
    ground = survey(policy.files, Disk())
    told = [
        wall_violation(Report(1, operation, f"{hooks}/one", 1), Occasion(0.0), ground, policy.sockets, Disk()).target
        for operation in ("delete", "create")
    ]
    assert told == [str(hooks), f"{hooks}/one"]


@pytest.mark.parametrize(
    ("report", "target"),
    [
        pytest.param(Report(1, "create", "", 900), "other places", id="many"),
        pytest.param(Report(1, "write", "/proc/sys/x"), "/proc/sys/x", id="of its own"),
        pytest.param(Report(1, "unix-connect", "datagram"), "(datagram)", id="datagram"),
    ],
)
def test_what_is_no_matter_of_files(tmp_path: Path, report: Report, target: str) -> None:
    policy = compile_policy(merge([]), cwd=str(tmp_path), home=str(tmp_path))
    told = wall_violation(
        report, Occasion(0.0, times=report.times), survey(policy.files, Disk()), policy.sockets, Disk()
    )
    assert (told.target, told.times) == (target, report.times)


HIDING = {"sandbox.filesystem.denyRead": ("/secret",)}
HIDDEN = compile_policy(merge([Document(Layer.USER, "settings.json", HIDING)]), cwd="/p", home="/h")


@pytest.mark.parametrize(
    ("report", "words"),
    [
        pytest.param(
            Report(4, "read", "/secret/key", 3),
            (
                "one",
                "make one",
                (
                    'read "/secret/key" (3 times): reading is denied by "/secret" of settings.json (user)'
                    ' at $.sandbox.filesystem.denyRead[0]; add "/secret/key" to sandbox.filesystem.allowRead'
                ),
            ),
            id="by a rule",
        ),
        pytest.param(
            Report(0, "read", "/secret/<key>"),
            (
                "",
                "",
                (
                    'read "/secret/\\x3ckey\\x3e": reading is denied by "/secret" of settings.json (user)'
                    ' at $.sandbox.filesystem.denyRead[0]; add "/secret/\\u003ckey\\u003e" to '
                    "sandbox.filesystem.allowRead"
                ),
            ),
            id="nobody's",
        ),
        pytest.param(
            Report(4, "read", "/open"),
            ("one", "make one", 'read "/open": reading was denied when the command started; run it again'),
            id="allowed meanwhile",
        ),
        pytest.param(
            Report(4, "read", "", 9),
            (
                "one",
                "make one",
                (
                    'read "other places" (9 times): more places were refused to this command than are told apart;'
                    " see those that are named"
                ),
            ),
            id="too many",
        ),
    ],
)
def test_words_of_the_walls_become_a_violation(report: Report, words: tuple[str, str, str]) -> None:
    record = Record()
    record.know("one", "make one")
    record.note(report, "one" if report.ticket else "", HIDDEN)
    ((entry,),) = [tuple(record.violations)]
    assert (entry.command, entry.line, entry.text()) == words
