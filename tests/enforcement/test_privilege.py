"""No program inside has or gains rights over the host, whoever runs the sandbox."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.syscalls import arch_of

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground

ROOT = os.geteuid() == 0
GROUP = "shadow" if ROOT else os.getegid()
#: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID and NET_BIND_SERVICE, over the session's own ids only.
OF_ROOT = 0b100_1111_1011


def _status(text: str) -> dict[str, int]:
    return {
        name: int(value, 16)
        for name, value in re.findall(r"^(Cap\w+|NoNewPrivs|Seccomp):\s+(\w+)$", text, re.MULTILINE)
    }


def test_a_command_has_no_rights_and_gains_none(ground: Ground) -> None:
    found = _status(ground.sandbox().run("cat /proc/self/status").output)
    assert (found["NoNewPrivs"], found["Seccomp"]) == (1, 2)
    rights = {name: value for name, value in found.items() if name.startswith("Cap")}
    assert rights["CapInh"] == rights["CapAmb"] == 0
    assert all(value & ~OF_ROOT == 0 for value in rights.values()), rights
    if not ROOT:
        assert set(rights.values()) == {0}


def test_process_1_has_no_more(ground: Ground) -> None:
    found = _status(ground.sandbox().run("cat /proc/1/status").output)
    assert all(value & ~OF_ROOT == 0 for name, value in found.items() if name.startswith("Cap")), found


def test_a_setuid_program_gains_nothing(ground: Ground) -> None:
    """Programs such as su run with the rights of whoever starts them."""
    program = shutil.which("su") or shutil.which("mount")
    assert program is not None
    assert os.stat(program).st_mode & stat.S_ISUID
    done = ground.sandbox().run(f"{program} --version >/dev/null; grep -E '^(Uid|CapEff)' /proc/self/status")
    assert f"Uid:\t{os.geteuid()}" in done.output


def test_no_place_gives_rights_to_programs_or_opens_devices(ground: Ground) -> None:
    """A second wall behind no_new_privs, and the only one around device nodes. The few nodes in /dev are meant."""
    mounts = ground.sandbox().run("cut -d' ' -f5,6 /proc/self/mountinfo").output.splitlines()
    wide = [line for line in mounts if not {"nosuid", "nodev"} <= set(line.split()[1].split(","))]
    assert [line for line in wide if not line.startswith("/dev/")] == []


def test_no_setuid_file_is_left_on_the_host(ground: Ground) -> None:
    """Inside it gives nothing, but outside another user could run it."""
    assert ground.bare("cp /bin/true bare && chmod u+s bare").returncode == 0
    assert (ground.project / "bare").stat().st_mode & stat.S_ISUID
    ground.sandbox().run("cp /bin/true mine && chmod u+s mine")
    assert not (ground.project / "mine").stat().st_mode & stat.S_ISUID


#: Every call that gives a file a mode, by its number, so that no C library stands between. Prints what it answers.
SETTERS = r"""
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
calls, mode = eval(sys.argv[1]), int(sys.argv[2], 8)
def kernel(name, *words):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(calls[name]), *(ctypes.c_long(w) if isinstance(w, int) else w for w in words))
    return result, errno.errorcode.get(ctypes.get_errno(), "ok")
def file(name):
    open(name, "w").close(); os.chmod(name, 0o755); return name.encode()
CREATE, TEMPORARY = os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_WRONLY
JUNK = 0xDEAD << 32
def linked(result, name):
    if result[0] >= 0: kernel("linkat", -100, f"/proc/self/fd/{result[0]}".encode(), -100, name, 0x400)
    return result
ways = {
    "chmod": lambda n: kernel("chmod", file(n), mode),
    "chmod with junk": lambda n: kernel("chmod", file(n), mode | JUNK),
    "fchmod": lambda n: kernel("fchmod", os.open(file(n), os.O_RDONLY), mode),
    "fchmodat": lambda n: kernel("fchmodat", -100, file(n), mode),
    "fchmodat by a directory": lambda n: kernel("fchmodat", os.open(".", os.O_PATH), file(n), mode),
    "fchmodat by /proc": lambda n: kernel("fchmodat", -100, b"/proc/self/fd/%d" % os.open(file(n), os.O_PATH), mode),
    "fchmodat by a link": lambda n: (os.symlink(file(n), n + "l"), kernel("fchmodat", -100, b"%bl" % file(n), mode))[1],
    "fchmodat2": lambda n: kernel("fchmodat2", -100, file(n), mode, 0),
    "fchmodat2 without a path": lambda n: kernel("fchmodat2", os.open(file(n), os.O_PATH), b"", mode, 0x1000),
    "creat": lambda n: kernel("creat", n.encode(), mode),
    "open": lambda n: kernel("open", n.encode(), CREATE, mode),
    "openat": lambda n: kernel("openat", -100, n.encode(), CREATE, mode),
    "openat without a name": lambda n: linked(kernel("openat", -100, b".", TEMPORARY, mode), n.encode()),
    "mknod": lambda n: kernel("mknod", n.encode(), 0o100000 | mode, 0),
    "mknodat": lambda n: kernel("mknodat", -100, n.encode(), 0o100000 | mode, 0),
    "locked first": lambda n: (kernel("chmod", file(n), mode & 0o6644), kernel("chmod", n.encode(), mode))[1],
}
os.umask(0)
for number, (way, act) in enumerate(ways.items()):
    if way.split()[0] in calls: print(way, act(f"made{number}")[1], sep=": ")
"""


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6755, 0o2711, 0o2775, 0o2644], ids=oct)
@pytest.mark.parametrize("unsupervised", [False, True], ids=["supervised", "not supervised"])
def test_no_call_makes_a_setuid_or_setgid_file(ground: Ground, mode: int, unsupervised: bool) -> None:  # noqa: FBT001 - a case
    numbers = arch_of(platform.machine()).numbers()
    names = ("chmod", "fchmod", "fchmodat", "fchmodat2", "creat", "open", "openat", "mknod", "mknodat", "linkat")
    calls = repr({name: numbers[name] for name in names if name in numbers})
    words = [sys.executable, "-I", "-S", "-c", SETTERS, calls, f"{mode:o}"]
    bare = ground.bare(shlex.join(words)).stdout.decode()
    assert "EPERM" not in bare
    made = [path for path in ground.project.glob("made*") if path.stat().st_mode & 0o6000]
    assert len(made) >= len(bare.splitlines()) - 1, bare
    for path in ground.project.glob("made*"):
        path.unlink()
    open_to_sockets = ground.sandbox(observe="off", network__allowAllUnixSockets=True)
    done = (open_to_sockets if unsupervised else ground.sandbox()).run(words)
    assert set(re.findall(": (.*)", done.output)) == {"EPERM"}, done
    assert [path for path in ground.project.glob("made*") if path.stat().st_mode & 0o6000] == []


@pytest.mark.parametrize(
    ("line", "made"),
    [
        pytest.param("mkdir d && chmod g+s d", "d", id="chmod"),
        pytest.param("install -d -m 2775 d", "d", id="install"),
        pytest.param("mkdir -m 2775 d", "d", id="mkdir"),
        pytest.param('python3 -c \'import os; os.mkdir("d"); os.chmod("d", 0o2770)\'', "d", id="python"),
        pytest.param(
            'python3 -c \'import os; os.mkdir("d"); os.fchmod(os.open("d", 0), 0o2770)\'', "d", id="by descriptor"
        ),
        pytest.param("mkdir s && chmod 2775 s && tar cf t s && rm -r s && tar xpf t", "s", id="tar"),
        pytest.param("mkdir s && chmod 2775 s && cp -a s d", "d", id="cp"),
        pytest.param("git init -q --shared=group d", "d/.git/objects", id="a shared repository"),
        pytest.param(
            "git init -q --bare --shared=group o && git clone -q --config core.sharedRepository=group o d",
            "o/objects",
            id="a clone of one",
        ),
        pytest.param("mkdir s && chmod g+s s && mkdir s/d", "s/d", id="inherited"),
    ],
)
def test_directories_keep_the_setgid_bit(ground: Ground, line: str, made: str) -> None:
    done = ground.sandbox().run(line)
    assert done.exit_code == 0, done
    assert (ground.project / made).stat().st_mode & stat.S_ISGID


def test_a_directory_that_may_not_be_written_gets_no_bit(ground: Ground) -> None:
    outside = ground.outside / "folder"
    outside.mkdir()
    done = ground.sandbox().run(["chmod", "g+s", str(outside)])
    assert done.exit_code != 0
    assert not outside.stat().st_mode & stat.S_ISGID
    assert [(each.operation.value, each.target) for each in done.violations] == [("metadata", str(outside))]


def test_a_path_that_is_exchanged_meanwhile_gives_no_file_the_bit(ground: Ground) -> None:
    """One thread turns a name from a directory into a program and back, another sets its mode."""
    script = (
        "import os, threading\n"
        "os.mkdir('folder'); open('program', 'w').close(); os.chmod('program', 0o755); os.symlink('folder', 'name')\n"
        "over = False\n"
        "def flip():\n"
        "    while not over:\n"
        "        for end in ('program', 'folder'): os.symlink(end, 'new'); os.rename('new', 'name')\n"
        "other = threading.Thread(target=flip); other.start()\n"
        "done = 0\n"
        "for _ in range(2000):\n"
        "    try: os.chmod('name', 0o2755); done += 1\n"
        "    except PermissionError: pass\n"
        "over = True; other.join(); print(0 < done < 2000)\n"
    )
    done = ground.sandbox().run([sys.executable, "-c", script])
    assert done.output == "True\n", done
    assert not (ground.project / "program").stat().st_mode & stat.S_ISGID


def test_no_copy_gives_a_group_s_rights_to_everybody(ground: Ground) -> None:
    """Root tries it with the group that may read passwords, others with their own."""
    line = f"cp /bin/cat {{0}} && chgrp {GROUP} {{0}} && {{{{ chmod 2755 {{0}} || :; }}}} && chmod o+x {{0}}"
    assert ground.bare(line.format("bare")).returncode == 0
    assert _gives_rights(ground.project / "bare")
    assert ground.sandbox().run(line.format("mine")).exit_code == 0
    assert not _gives_rights(ground.project / "mine")


def test_no_program_gets_capabilities(ground: Ground) -> None:
    """Neither for the machine nor for the namespace of the session, whose root is the machine's."""
    everything = (2 << 24 | 1).to_bytes(4, "little") + b"\xff\xff\xff\xff" + bytes(12)
    for name, value in (
        ("v2", everything),
        ("v3", (3 << 24 | 1).to_bytes(4, "little") + everything[4:] + bytes(4)),
    ):
        script = (
            "import errno, os, shutil\n"
            f"shutil.copy('/bin/true', '{name}')\n"
            f"try: os.setxattr('{name}', 'security.capability', {value!r}); print('done')\n"
            "except OSError as error: print(errno.errorcode[error.errno])\n"
        )
        assert ground.bare(shlex.join([sys.executable, "-c", script])).stdout == (b"done\n" if ROOT else b"EPERM\n")
        (ground.project / name).unlink()
        assert ground.sandbox().run([sys.executable, "-c", script]).output == "EPERM\n"
        assert os.listxattr(ground.project / name) == []


def _gives_rights(program: Path) -> bool:
    """Tell whether another user gets a group's rights by this program: as root, by reading what only the group may."""
    if not ROOT:
        return bool(program.stat().st_mode & stat.S_ISGID)
    open_to_all = Path(tempfile.mkdtemp(dir="/tmp"))
    open_to_all.chmod(0o755)
    try:
        moved = open_to_all / "program"
        os.link(program, moved)
        words = ["setpriv", "--reuid=1", "--regid=1", "--clear-groups", str(moved), "/etc/shadow"]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    finally:
        shutil.rmtree(open_to_all)


def test_a_copy_with_the_setuid_bit_is_just_a_copy(ground: Ground) -> None:
    done = ground.sandbox().run('cp "$(command -v id)" mine && { chmod u+s,g+s mine || :; } && ./mine -u')
    assert done.output.strip() == str(os.geteuid())


def test_root_inside_owns_nothing_that_keeps_walls_up(ground: Ground) -> None:
    lines = (
        "mount -o remount,rw / && echo out",
        "mount -t tmpfs none /mnt && echo out",
        "umount -l /proc && echo out",
        "mount --bind / . && echo out",
        "umount -l .git && echo out",
        "unshare -m true && echo out",
        "unshare -Ur true && echo out",
        "nsenter -t 1 -m true && echo out",
        "chroot / true && echo out",
        "setpriv --bounding-set +sys_admin --inh-caps +sys_admin true && echo out",
        "ip link set lo down && echo out",
        "sysctl -w kernel.hostname=x && echo out",
        "mknod disk b 7 0 && echo out",
        "dmesg >/dev/null && echo out",
    )
    sandbox = ground.sandbox()
    done = sandbox.run("\n".join(lines))
    assert done.stdout == b""


def test_files_of_others_keep_their_owners(ground: Ground) -> None:
    line = "stat -c '%u %g' / /etc/passwd /etc/shadow"
    bare = ground.bare(line).stdout.decode()
    inside = ground.sandbox().run(line).output
    expected = bare if ROOT else re.sub(r"\b(\d+)\b", _as_seen, bare)
    assert inside == expected


def _as_seen(match: re.Match[str]) -> str:
    """An ordinary user has one id; all others are nobody's."""
    return match.group() if int(match.group()) in (os.geteuid(), os.getegid()) else "65534"


def test_a_root_caller_works_in_a_directory_of_somebody_else(ground: Ground) -> None:
    line = "touch made && stat -c %u made"
    if ROOT:
        _give_away(ground.project)
    assert ground.sandbox().run(line).output == f"{os.geteuid()}\n"


def _give_away(folder: Path) -> None:
    os.chown(folder, 1, 1)
