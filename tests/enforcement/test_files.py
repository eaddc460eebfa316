"""A write outside the writable places is refused, however the path is spelt or reached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import MakeTrial, Trial

ROOT = os.geteuid() == 0

#: Spellings of one place outside. Each is written to.
SPELLINGS = {
    "the absolute path": "f'{there}/victim'",
    "a path with ..": "os.path.relpath(f'{there}/victim')",
    "a symlink to the directory": "f'{here}/link/victim'",
    "/proc/self/root": "f'/proc/self/root{there}/victim'",
    "/proc/thread-self/root": "f'/proc/thread-self/root{there}/victim'",
    "/proc/self/cwd": "f'/proc/self/cwd/{os.path.relpath(f\"{there}/victim\")}'",
    "/proc/self/fd of a file": "f'/proc/self/fd/{os.open(f\"{there}/victim\", os.O_RDONLY)}'",
    "/proc/self/fd of a path": "f'/proc/self/fd/{os.open(f\"{there}/victim\", os.O_PATH)}'",
    "/proc/self/fd of a directory": "f'/proc/self/fd/{os.open(there, os.O_PATH)}/victim'",
    "/dev/fd": "f'/dev/fd/{os.open(f\"{there}/victim\", os.O_RDONLY)}'",
    "/proc/self/task": "f'/proc/self/task/{os.getpid()}/root{there}/victim'",
}
#: Calls that change something outside.
CALLS = {
    "a symlink made inside": "os.symlink(f'{there}/victim', 'alias'); write('alias')",
    "a symlink through /proc made inside": "os.symlink(f'/proc/self/root{there}', 'alias'); write('alias/victim')",
    "truncating on opening": "os.open(f'{there}/victim', os.O_WRONLY | os.O_TRUNC)",
    "truncating on opening for reading": "os.open(f'{there}/victim', os.O_RDONLY | os.O_TRUNC)",
    "opening to append": "write(f'{there}/victim', flags=os.O_WRONLY | os.O_APPEND)",
    "creating": "make(f'{there}/new')",
    "creating through a dangling symlink": "os.symlink(f'{there}/new', 'alias'); make('alias')",
    "a directory kept from before a chdir": "folder = os.open(there, os.O_RDONLY); os.chdir('/');"
    "write('victim', dir_fd=folder)",
    "a working directory outside": "os.chdir(there); write('victim')",
    "fchdir": "os.fchdir(os.open(there, os.O_PATH)); write('victim')",
    "an unnamed file": "link(os.open(there, os.O_TMPFILE | os.O_WRONLY), f'{there}/new')",
    "shared memory of a file": "import mmap; m = mmap.mmap(os.open(f'{there}/victim', os.O_RDWR), 5); m[0] = 65",
    "making a directory": "os.mkdir(f'{there}/new')",
    "making a symlink": "os.symlink('victim', f'{there}/new')",
    "making a FIFO": "os.mkfifo(f'{there}/new')",
    "making a socket node": "os.mknod(f'{there}/new', stat.S_IFSOCK | 0o600)",
    "making a regular node": "os.mknod(f'{there}/new', stat.S_IFREG | 0o600)",
    "a hard link out of the project": "os.link('mine', f'{there}/new')",
    "an unnamed file linked out": "link(os.open(here, os.O_TMPFILE | os.O_WRONLY), f'{there}/new')",
    "making a hard link there": "os.link(f'{there}/victim', f'{there}/new')",
    "removing": "os.unlink(f'{there}/victim')",
    "removing a directory": "os.unlink(f'{there}/folder/kept'); os.rmdir(f'{there}/folder')",
    "renaming there": "os.rename(f'{there}/victim', f'{there}/new')",
    "exchanging there": "kernel('renameat2', -100, f'{there}/victim', -100, f'{there}/folder', 2)",
    "chmod": "os.chmod(f'{there}/victim', 0o600)",
    "fchmod": "os.fchmod(os.open(f'{there}/victim', os.O_RDONLY), 0o600)",
    "chmod through /proc of a path": "os.chmod(f'/proc/self/fd/{os.open(f\"{there}/victim\", os.O_PATH)}', 0o600)",
    "fchmodat2 on a path": "kernel('fchmodat2', os.open(f'{there}/victim', os.O_PATH), b'', 0o600, 0x1000)",
    "chown to oneself": "os.chown(f'{there}/victim', os.getuid(), os.getgid())",
    "fchown on a path": "os.chown(f'/proc/self/fd/{os.open(f\"{there}/victim\", os.O_PATH)}', os.getuid(), -1)",
    "utime": "os.utime(f'{there}/victim', (1, 1))",
    "futimens": "os.utime(os.open(f'{there}/victim', os.O_RDONLY), (1, 1))",
    "utime through a symlink": "os.utime('link/victim', (1, 1))",
    "setting an attribute": "os.setxattr(f'{there}/victim', 'user.mark', b'x')",
    "setting an attribute of a descriptor": "os.setxattr(os.open(f'{there}/victim', os.O_RDONLY), 'user.mark', b'x')",
    "removing an attribute": "os.removexattr(f'{there}/marked', 'user.mark')",
    "truncate": "os.truncate(f'{there}/victim', 1)",
    "fallocate": "os.posix_fallocate(os.open(f'{there}/victim', os.O_RDWR), 0, 4096)",
    "copy_file_range": "os.copy_file_range(os.open('mine', os.O_RDONLY), os.open(f'{there}/victim', os.O_WRONLY), 4)",
    "a shell's redirection": "code = subprocess.call(['sh', '-c', f'echo changed > {there}/victim'], stderr=-3);"
    "code and call(-1 if ctypes.set_errno(30) is not None else 0)",
}
#: What would carry something from one side to the other: the border is between two file systems.
BORDER = {
    "a hard link made inside": "os.link(f'{there}/victim', 'alias'); write('alias')",
    "a hard link by descriptor": "link(os.open(f'{there}/victim', os.O_RDONLY), 'alias'); write('alias')",
    "renaming out": "os.rename('mine', f'{there}/victim')",
    "renaming in": "os.rename(f'{there}/victim', 'taken')",
    "renaming a directory in": "os.rename(f'{there}/folder', 'taken')",
    "exchanging": "kernel('renameat2', -100, f'{here}/mine', -100, f'{there}/victim', 2)",
}
#: What a system call filter refuses before any file is looked at.
FILTERED = {
    "a file handle": """
handle = bytearray(struct.pack('Ii', 128, 0) + bytes(128))
mount = ctypes.c_int()
buffer = (ctypes.c_char * len(handle)).from_buffer(handle)
kernel('name_to_handle_at', -100, f'{there}/victim', buffer, ctypes.byref(mount), 0)
file = kernel('open_by_handle_at', os.open(there, os.O_RDONLY), buffer, os.O_WRONLY)
os.write(file, b'changed')
""",
}
ROOT_CALLS = {
    "chown to somebody else": ("os.chown(f'{there}/victim', 1, 1)", "EROFS"),
    "flags of the file system": (
        "fcntl.ioctl(os.open(f'{there}/victim', os.O_RDONLY), 0x40086602, struct.pack('l', 0x40))",
        "EROFS",
    ),
    "making a device outside": ("os.mknod(f'{there}/new', stat.S_IFCHR | 0o600, os.makedev(1, 3))", "EPERM"),
    "making a block device outside": ("os.mknod(f'{there}/new', stat.S_IFBLK | 0o600, os.makedev(7, 0))", "EPERM"),
    "a trusted attribute": ("os.setxattr(f'{there}/victim', 'trusted.mark', b'x')", "EROFS"),
    "capabilities of a file": (
        "os.setxattr(f'{there}/victim', 'security.capability', struct.pack('<5I', 0x2000001, 1, 0, 0, 0))",
        "EROFS",
    ),
}
ATTACKS: dict[str, tuple[str, ...]] = {
    **{f"write by {name}": (f"write({spelling})", "EROFS") for name, spelling in SPELLINGS.items()},
    **{name: (script, "EROFS") for name, script in CALLS.items()},
    **{name: (script, "EXDEV") for name, script in BORDER.items()},
    **{name: (script, "EPERM", "ok" if ROOT else "EPERM") for name, script in FILTERED.items()},
    **(ROOT_CALLS if ROOT else {}),
    "openat2": (
        "kernel('openat2', -100, f'{there}/victim', struct.pack('QQQ', 1, 0, 0), 24); write(f'{there}/victim')",
        "ENOSYS",
    ),
}


def _furnish(here: Path, there: Path) -> None:
    assert here != there
    (there / "marked").write_text("unchanged")
    os.setxattr(there / "marked", "user.mark", b"x")


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial) -> Trial:
    return make_trial(ATTACKS, furnish=_furnish)


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_outside_is_changed(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name])
    if len(ATTACKS[name]) == 2 or ROOT:
        assert trial.control.endings[name].changed, "outside, the attack leaves a mark"
