from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.mount import Mount
from stockade.platforms.linux.tree import HIDDEN, PRIVATE, READ_ONLY, TEMPORARY, WRITABLE, arrange

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.linux.jail import Jail

    Outcome = Callable[..., tuple[int, str, str]]
    OpenJail = Callable[..., Jail]

AS_ROOT = os.geteuid() == 0


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        pytest.param([(WRITABLE, b"/w")], [(-1, True)], id="writable-in-read-only"),
        pytest.param([(READ_ONLY, b"/r")], [(-1, False)], id="read-only-in-read-only"),
        pytest.param([(WRITABLE, b"/w"), (WRITABLE, b"/w/pin")], [(-1, True), (0, False)], id="pin"),
        pytest.param([(WRITABLE, b"/w"), (READ_ONLY, b"/w/a/b")], [(-1, True), (0, False)], id="protected"),
        pytest.param([(HIDDEN, b"/h"), (READ_ONLY, b"/h/a")], [(-1, False), (0, True)], id="shown-again"),
        pytest.param(
            [(HIDDEN, b"/h"), (WRITABLE, b"/h/a"), (READ_ONLY, b"/h/a/b"), (HIDDEN, b"/h/a/c")],
            [(-1, False), (0, True), (1, False), (1, False)],
            id="deep",
        ),
        pytest.param([(TEMPORARY, b"/t"), (WRITABLE, b"/t/a")], [(-1, False), (0, True)], id="in-temporary"),
        pytest.param(
            [(PRIVATE, b"/p"), (WRITABLE, b"/p/a"), (READ_ONLY, b"/p/b"), (HIDDEN, b"/p/c")],
            [(-1, False), (0, True), (0, True), (0, False)],
            id="in-private",
        ),
        pytest.param([(WRITABLE, b"/w"), (WRITABLE, b"/wide")], [(-1, True), (-1, True)], id="only-a-prefix"),
        pytest.param([(WRITABLE, b"/"), (READ_ONLY, b"/a")], [(-1, True), (0, False)], id="root"),
    ],
)
def test_a_place_is_copied_before_what_surrounds_it_changes_its_looks(
    mounts: list[tuple[bytes, bytes]], expected: list[tuple[int, bool]]
) -> None:
    places = arrange([(operation, target, b"") for operation, target in mounts])
    assert [(place.outer, place.copied_first) for place in places] == expected


def test_the_host_is_read_only_but_for_what_is_opened(open_jail: OpenJail, outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    jail = open_jail(Mount("writable", str(tmp_path / "in")))
    line = "touch in/x; touch out/x; touch x; touch /run/x; touch /x; touch /var/tmp/x; ls in out"
    code, out, err = outcome(jail, "sh", "-c", line)
    assert (code, out, err.count("Read-only file system")) == (0, "in:\nx\n\nout:\n", 5)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["in", "out", "x"]


def test_a_private_place_is_written_without_the_host(open_jail: OpenJail, outcome: Outcome, tmp_path: Path) -> None:
    lower, layers = tmp_path / "lower", tmp_path / "layers"
    for name in ("real", "kept", "shut"):
        (lower / name).mkdir(parents=True)
        (lower / name / "file").write_text("host\n")
    layers.mkdir()
    jail = open_jail(
        Mount("private", str(lower), source=str(layers)),
        Mount("absent", str(lower / "deep" / "none")),
        Mount("read-only", str(lower / "kept")),
        Mount("writable", str(lower / "real")),
        Mount("hidden", str(lower / "shut")),
    )
    line = (
        "cd lower && echo x > new && cat new && echo y > real/new && rm -r real 2>/dev/null; touch kept/x; ls shut;"
        " touch deep/none; rm -f deep/none; ls"
    )
    _, out, err = outcome(jail, "sh", "-c", line)
    assert out == "x\ndeep\nkept\nnew\nreal\nshut\n"
    assert [err.count(words) for words in ("Read-only", "Permission denied", "busy")] >= [1, 1, 1]
    assert sorted(path.name for path in lower.iterdir()) == ["kept", "real", "shut"]
    assert (layers / "upper0" / "new").read_text() == "x\n"
    assert jail.common == ""
    assert len(jail.private) == 1


def test_where_no_private_place_can_be_had_the_hosts_is_read_only(
    open_jail: OpenJail, outcome: Outcome, tmp_path: Path
) -> None:
    (tmp_path / "lower" / "real").mkdir(parents=True)
    lower = str(tmp_path / "lower")
    # The kernel takes no layer of a file, neither on disk nor in memory.
    (tmp_path / "lower" / "file").touch()
    jail = open_jail(
        Mount("private", lower + "/file", source=str(tmp_path)),
        Mount("writable", lower + "/real"),
    )
    code, out, err = outcome(jail, "sh", "-c", "touch lower/real/x && echo x > lower/file")
    assert (code != 0, out) == (True, "")
    assert "Read-only file system" in err
    assert jail.common.startswith("overlayfs cannot be mounted here, ")
    assert jail.private == ()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    (folder / "deep" / "shown").mkdir(parents=True)
    (folder / "deep" / "shown" / "page").write_text("page\n")
    (folder / "deep" / "other").write_text("other\n")
    (folder / "note").write_text("note\n")
    (folder / "key").write_text("key\n")
    return folder


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("ls secret", id="list"),
        pytest.param("cat secret/key", id="read"),
        pytest.param("cat secret/deep/other", id="read-deeper"),
        pytest.param("echo x > secret/new", id="write"),
        pytest.param("mkdir secret/new", id="make"),
        pytest.param("ls secret/deep", id="list-deeper"),
        pytest.param("cat key", id="file"),
        pytest.param("echo x > key", id="write-file"),
        pytest.param("cp key copy", id="copy"),
        pytest.param("python3 -c 'import os; os.listdir(\"secret\")'", id="another-program"),
        pytest.param("ls /dev/.walls || ls /dev/.walls/directory", id="the-wall-itself"),
        pytest.param("chmod 777 key; cat key", id="chmod-first"),
        pytest.param("chmod 777 secret; ls secret", id="chmod-directory-first"),
        pytest.param("ln key hard; cat key", id="hard-link"),
    ],
)
@pytest.mark.parametrize("shown", [pytest.param(False, id="closed"), pytest.param(True, id="with-a-way")])
def test_a_hidden_place_refuses_everybody(
    open_jail: OpenJail, outcome: Outcome, secret: Path, line: str, *, shown: bool
) -> None:
    (secret.parent / "key").write_text("key\n")
    mounts = [
        Mount("writable", str(secret.parent)),
        Mount("hidden", str(secret)),
        Mount("hidden", f"{secret.parent}/key"),
    ]
    if shown:
        mounts += [Mount("writable", f"{secret}/deep/shown"), Mount("read-only", f"{secret}/note")]
    jail = open_jail(*mounts)
    code, out, err = outcome(jail, "sh", "-c", line)
    expected = "ermission denied"
    if shown and line in {"cat secret/key", "cat secret/deep/other"}:
        expected = "No such file"
    if line == "echo x > key" or (shown and line in {"echo x > secret/new", "mkdir secret/new"}):
        expected = "Read-only file system"
    assert (code != 0, out, expected in err) == (True, "", True), err
    if shown:
        line = "cat secret/note secret/deep/shown/page; echo more >> secret/deep/shown/page"
        assert outcome(jail, "sh", "-c", line) == (0, "note\npage\n", "")
        assert (secret / "deep" / "shown" / "page").read_text() == "page\nmore\n"


def test_temporary_places_are_empty_and_private(open_jail: OpenJail, outcome: Outcome, secret: Path) -> None:
    jail = open_jail(Mount("temporary", str(secret)))
    assert outcome(jail, "sh", "-c", "ls secret; echo x > secret/y; cat secret/y") == (0, "x\n", "")
    assert not (secret / "y").exists()


def test_one_place_can_be_shown_at_another(open_jail: OpenJail, outcome: Outcome, secret: Path) -> None:
    jail = open_jail(Mount("read-only", "/etc/hostname", source=str(secret / "note")))
    assert outcome(jail, "cat", "/etc/hostname") == (0, "note\n", "")


def test_protected_places_hold_against_renaming_when_parents_are_pinned(
    open_jail: OpenJail, outcome: Outcome, tmp_path: Path
) -> None:
    hooks = tmp_path / "repo" / ".git" / "hooks"
    hooks.mkdir(parents=True)
    repo = str(tmp_path / "repo")
    jail = open_jail(
        Mount("writable", str(tmp_path)),
        Mount("writable", repo),
        Mount("writable", f"{repo}/.git"),
        Mount("read-only", str(hooks)),
    )
    line = "mv repo aside; mv repo/.git aside; mv repo/.git/hooks aside; rmdir repo/.git/hooks; touch repo/.git/hooks/x"
    code, _, err = outcome(jail, "sh", "-c", f"{line}; touch repo/x repo/.git/x")
    assert (code, err.count("busy"), err.count("Read-only")) == (0, 4, 1)
    assert sorted(str(path.relative_to(repo)) for path in (tmp_path / "repo").rglob("*")) == [
        ".git",
        ".git/hooks",
        ".git/x",
        "x",
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("echo x > /proc/sys/kernel/core_pattern", id="core-pattern"),
        pytest.param("echo 0 > /proc/sys/kernel/randomize_va_space", id="sysctl"),
        pytest.param("echo 1 > /proc/sys/net/ipv4/ip_forward", id="network-sysctl"),
        pytest.param("echo 9 > /proc/sys/user/max_user_namespaces", id="namespace-limit"),
        pytest.param("echo h > /proc/sysrq-trigger", id="sysrq"),
        pytest.param("hostname other", id="hostname"),
        pytest.param("mkdir /sys/fs/cgroup/mine || mkdir /sys/fs/cgroup/unified/mine", id="cgroup"),
        pytest.param("echo x > /sys/kernel/mm/transparent_hugepage/enabled", id="sys"),
        pytest.param("touch /dev/x", id="dev"),
        pytest.param("mknod node b 254 0", id="device-node"),
        pytest.param("mount -t tmpfs x /mnt", id="mount"),
        pytest.param("umount /proc", id="uncover-proc"),
        pytest.param("umount /dev", id="uncover-dev"),
        pytest.param("mount -o remount,rw /", id="remount"),
        pytest.param("unshare -U true", id="user-namespace"),
        pytest.param("unshare -m true", id="mount-namespace"),
        pytest.param("nsenter -t 1 -m true", id="enter"),
        pytest.param("chroot / true", id="chroot"),
        pytest.param("ip link add d type dummy", id="network"),
        pytest.param("swapoff -a; echo > /dev/kmsg", id="kernel-log"),
    ],
)
def test_the_machine_is_out_of_reach(open_jail: OpenJail, outcome: Outcome, tmp_path: Path, line: str) -> None:
    jail = open_jail(Mount("writable", str(tmp_path)))
    code, _, err = outcome(jail, "sh", "-c", line)
    assert code != 0, err


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("echo x > /proc/sys/kernel/core_pattern", id="core-pattern"),
        pytest.param("mkdir /sys/fs/cgroup/mine || mkdir /sys/fs/cgroup/unified/mine", id="cgroup"),
        pytest.param("touch /dev/x", id="dev"),
    ],
)
def test_a_writable_root_leaves_the_machine_out_of_reach(open_jail: OpenJail, outcome: Outcome, line: str) -> None:
    jail = open_jail(Mount("writable", "/"), Mount("read-only", "/etc"))
    code, _, err = outcome(jail, "sh", "-c", line)
    assert code != 0, err
    code, _, err = outcome(jail, "sh", "-c", "touch in && touch /etc/x")
    assert (code, "Read-only" in err) == (1, True)


@pytest.mark.skipif(not AS_ROOT, reason="only root meets files that it may edit and does not own")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("echo more >> theirs && cat theirs", (0, "text\nmore\n", ""), id="edit"),
        pytest.param("stat -c %u:%g theirs dir", (0, "1234:1234\n4321:4321\n", ""), id="owners-are-seen"),
        pytest.param("rm theirs && touch dir/new && chmod 600 dir/new", (0, "", ""), id="create"),
        pytest.param("chown 77:77 theirs && stat -c %u theirs", (0, "77\n", ""), id="chown"),
        pytest.param("setpriv --reuid 1234 --clear-groups cat theirs", (0, "text\n", ""), id="become-somebody"),
    ],
)
def test_root_works_in_somebody_elses_directory(
    jail: Jail, outcome: Outcome, tmp_path: Path, line: str, expected: tuple[int, str, str]
) -> None:
    (tmp_path / "theirs").write_text("text\n")
    (tmp_path / "theirs").chmod(0o600)
    os.chown(tmp_path / "theirs", 1234, 1234)
    (tmp_path / "dir").mkdir(mode=0o700)
    os.chown(tmp_path / "dir", 4321, 4321)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() == "root" and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    assert outcome(jail, "sh", "-c", line) == expected
