from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.filesystem.plan import Mount as Planned
from stockade.filesystem.plan import Operation, Placeholder, Plan
from stockade.platforms.linux import placeholders
from stockade.platforms.linux.mount import Mount
from stockade.platforms.linux.program import SUPERVISED, name
from stockade.platforms.linux.spec import names_file, placed, specify
from stockade.policy.compile import compile_policy
from stockade.policy.path_pattern import PathPattern
from stockade.settings.merge import EMPTY

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.platforms.linux.confinement import UnixSockets

POLICY = compile_policy(EMPTY, cwd="/p", home="/h")


def test_surroundings_come_first_and_the_sessions_own_mounts_win() -> None:
    plan = Plan(
        mounts=(
            Planned(Operation.WRITABLE, "/p", "root"),
            Planned(Operation.PIN, "/p/a", "pin"),
            Planned(Operation.READ_ONLY, "/p/a/hooks", "protected"),
            Planned(Operation.LINK, "/p/l", "link"),
            Planned(Operation.HIDDEN, "/p/s", "secret"),
            Planned(Operation.WRITABLE, "/t/private", "wrong"),
        )
    )
    absent = Mount("absent", "/p/.bashrc", "missing")
    spec = specify(POLICY, plan, temporary="/t/private/tmp-1", private=["/t/private"], placed=[absent])
    assert spec.mounts == (
        Mount("writable", "/p", "root"),
        absent,
        Mount("writable", "/p/a", "pin"),
        Mount("read-only", "/p/a/hooks", "protected"),
        Mount("link", "/p/l", "link"),
        Mount("guarded", "/p/s", "secret"),
        Mount("hidden", "/t/private", "the sandboxes' own"),
        Mount("writable", "/t/private/tmp-1", "the session's temporary directory"),
    )
    assert (spec.confinement, spec.filters) == (name(), ())
    assert spec.fresh_processes


def _laid(plan: Plan, base: str) -> dict[str, str]:
    own = f"{base}/p-1/cache"
    spec = specify(POLICY, plan, temporary="/t", cache=own, private=[base], placed=[])
    return {mount.target: mount.operation for mount in spec.mounts}


def test_a_cache_is_shown_in_what_is_hidden_and_held_where_it_could_be_moved() -> None:
    base = "/home/u/.cache/stockade-projects"
    own = {base: "hidden", f"{base}/p-1/cache": "writable", "/t": "writable"}
    assert _laid(Plan(), base) == own
    opened = Plan(mounts=(Planned(Operation.WRITABLE, "/home/u", "home"),))
    assert _laid(opened, base) == own | {"/home/u": "writable", "/home/u/.cache": "writable"}
    closed = Plan(mounts=(*opened.mounts, Planned(Operation.READ_ONLY, "/home/u/.cache", "denied")))
    assert _laid(closed, base) == own | {"/home/u": "writable", "/home/u/.cache": "read-only"}


def test_a_private_place_gets_the_layers_of_the_session() -> None:
    plan = Plan(mounts=(Planned(Operation.PRIVATE, "/t", "private"), Planned(Operation.ABSENT, "/t/none", "denied")))
    spec = specify(POLICY, plan, temporary="/t/own/tmp-1", private=["/t/own"], placed=[], layers="/t/own/tmp-2")
    assert spec.mounts == (
        Mount("private", "/t", "private", "/t/own/tmp-2"),
        Mount("absent", "/t/none", "denied"),
        Mount("hidden", "/t/own", "the sandboxes' own"),
        Mount("writable", "/t/own/tmp-1", "the session's temporary directory"),
    )


def test_questions_about_names_are_answered_inside_unless_a_rule_is_about_that_file() -> None:
    hidden = Planned(Operation.HIDDEN, "/etc/resolv.conf", "denied")
    plain, denied = (
        specify(POLICY, Plan(mounts=mounts), temporary="/t", private=[], placed=[], names="/etc/resolv.conf").mounts[0]
        for mounts in ((), (hidden,))
    )
    assert (plain.operation, plain.target) == ("read-only", "/etc/resolv.conf")
    with open(plain.source) as file:
        assert "nameserver 127.0.0.1\n" in file.read()
    assert denied == Mount("guarded", "/etc/resolv.conf", "denied")
    assert names_file() == os.path.realpath("/etc/resolv.conf")


def test_weaker_walls_are_asked_for_by_the_policy() -> None:
    weaker = POLICY.but(mode=POLICY.mode.but(weaker_nested=True))
    spec = specify(weaker, Plan(), temporary="/t", private=[], placed=[])
    assert not spec.fresh_processes
    assert (spec.confinement, spec.filters) == (name(tracing=False), ())


def test_placeholders_become_mounts(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    os.mkdir(f"{root}/.git")
    plan = Plan(
        placeholders=(
            Placeholder(f"{root}/.bashrc", "missing", root),
            Placeholder(f"{root}/.git/commondir", "git", root, ".\n"),
        )
    )
    with placeholders.acquire([one.path for one in plan.placeholders], str(tmp_path)) as lease:
        found = placed(plan, lease, {})
        staged = placed(plan, lease, {f"{root}/.bashrc": "/stage"})
    assert Mount("staged", f"{root}/.bashrc", "missing", "/stage") in staged.mounts
    assert len(staged.mounts) == len(found.mounts)
    assert set(found.mounts) == {
        Mount("absent", f"{root}/.bashrc", "missing"),
        Mount("read-only", f"{root}/.git/commondir", "git"),
    }
    assert found.notes == ()


def test_placeholders_of_a_bare_root_are_not_listed(tmp_path: Path) -> None:
    root = str((tmp_path / "root").resolve())
    os.mkdir(root)
    plan = Plan(placeholders=(Placeholder(f"{root}/.bashrc", "missing", root),))
    with placeholders.acquire([f"{root}/.bashrc"], str(tmp_path)) as lease:
        bare = placed(plan, lease, {}).unlisted
        os.mkdir(f"{root}/src")
        assert placed(plan, lease, {}).unlisted == ()
    assert bare == ((root, (".bashrc",)),)
    spec = specify(POLICY, plan, temporary="/t", private=[], placed=[], unlisted=bare)
    assert (spec.unlisted, spec.confinement) == (bare, name(unlisted=True))


def test_where_no_placeholder_can_be_made_the_directory_is_read_only(tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    os.mkdir(f"{root}/sub")
    os.mkdir(f"{root}/planned")
    os.symlink("sub", f"{root}/link")

    class Lease:
        targets = ()
        impossible = (placeholders.Placeholder(f"{root}/.bashrc", "impossible", "no room"),)

    plan = Plan(
        mounts=(Planned(Operation.READ_ONLY, f"{root}/planned", "x"),),
        placeholders=(Placeholder(f"{root}/.bashrc", "missing", root),),
    )
    found = placed(plan, Lease(), {})  # type: ignore[arg-type]
    assert [(mount.operation, mount.target) for mount in found.mounts] == [
        ("read-only", root),
        ("writable", f"{root}/sub"),
    ]
    assert "no room" in found.notes[0]


@pytest.mark.parametrize(
    ("all_unix", "denied", "mode"),
    [
        pytest.param(True, (), "all", id="all"),
        pytest.param(True, ("/run/a[1]",), "stream", id="all but one"),
        pytest.param(False, ("/run/a[1]",), "stream", id="one is denied"),
    ],
)
def test_where_a_socket_is_denied_somebody_looks_at_each(
    *, all_unix: bool, denied: tuple[str, ...], mode: UnixSockets
) -> None:
    policy = POLICY.but(sockets=POLICY.sockets.but(all_unix=all_unix))
    patterns = [PathPattern.literal(path) for path in denied]
    spec = specify(policy, Plan(), temporary="/t", private=[], placed=[], denied=patterns)
    assert (spec.confinement, spec.denied_sockets) == (name(mode), tuple("/run/a\\[1\\]" for _ in denied))
    assert (SUPERVISED in spec.confinement) == (mode == "stream")
