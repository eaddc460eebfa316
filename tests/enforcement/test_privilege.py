"""No program inside has or gains rights over the host, whoever runs the sandbox."""

from __future__ import annotations

import os
import re
import shutil
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground

ROOT = os.geteuid() == 0
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
