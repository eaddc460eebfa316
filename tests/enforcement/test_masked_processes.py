"""Walls where the kernel allows no fresh ``/proc``, as in containers: a real one, made by masking a file of ``/proc``.

Without the setting nothing runs. With it commands see the processes around them, and here is what they still cannot
do to them: each attack is made by a process beside the victim as the control, then from inside.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2] / "src"

MASKED = """
import ctypes, json, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from stockade.platforms.linux.jail import Ended, Jail, Request
from stockade.platforms.linux.mount import JailSpec, Mount
from stockade.platforms.linux.program import name
from stockade.errors import UnavailableError

inside, outside, attacks = sys.argv[2:5]

def strict():
    jail = Jail.start()
    try:
        jail.build(JailSpec(()))
        jail.wait_ready()
    except UnavailableError as error:
        return [error.message, error.hint]
    finally:
        jail.close()

def weaker(*argv):
    reader, writer = os.pipe()
    jail.run(Request(argv, {"PATH": "/usr/bin:/bin"}, inside), (null, writer, writer))
    os.close(writer)
    with open(reader) as file:
        said = file.read()
    jail.receive()
    return said

null = os.open(os.devnull, os.O_RDWR)
handle = os.open(outside + "/open", os.O_RDWR)
victim = subprocess.Popen(["sleep", "60"], cwd=outside, env={"SECRET": "canary", "PATH": "/usr/bin:/bin"},
                          pass_fds=(handle,))
found = {"strict": strict()}
jail = Jail.start()
jail.build(JailSpec((Mount("writable", inside),), confinement=name(tracing=False), fresh_processes=False))
jail.wait_ready()
with open(f"/proc/{jail.pid}/task/{jail.pid}/children") as file:
    launcher = file.read().strip()
numbers = (str(victim.pid), str(handle), outside, str(jail.pid), launcher)
words = (sys.executable, "-I", "-S", "-c", attacks, *numbers)
found["inside"] = json.loads(weaker(*words))
found["again"] = json.loads(weaker(*words))
found["everyday"] = weaker("bash", "-c", "cat <(echo substituted); cat /dev/stdin; head -c4 /proc/self/comm")
before = sorted(os.listdir(outside))
found["alive"] = victim.poll() is None
found["control"] = json.loads(subprocess.run(words, stdout=subprocess.PIPE).stdout)
found["left"] = before
victim.kill(), victim.wait()
jail.close()
print(json.dumps(found))
"""

ATTACKS = r"""
import ctypes, errno, json, os, sys
pid, handle, outside, keeper, launcher = sys.argv[1:]
base = f"/proc/{pid}"
libc = ctypes.CDLL(None, use_errno=True)

def make(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))

def write(path, text=b"0"):
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text)
    finally:
        os.close(file)

def read(path):
    with open(path, "rb", buffering=0) as file:
        file.read(1)

def signal_by_directory():
    place = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    if libc.syscall(424, place, 0, None, 0) < 0:
        raise OSError(ctypes.get_errno(), "")

def enter(kind):
    place = os.open(f"{base}/ns/{kind}", os.O_RDONLY)
    os.close(place)

attacks = {
    "root-list": lambda: os.listdir(f"{base}/root/"),
    "root-write": lambda: make(f"{base}/root{outside}/by-root"),
    "cwd-write": lambda: make(f"{base}/cwd/by-cwd"),
    "descriptor-write": lambda: write(f"{base}/fd/{handle}"),
    "descriptor-read": lambda: read(f"{base}/fd/{handle}"),
    "task-root-write": lambda: make(f"{base}/task/{pid}/root{outside}/by-task"),
    "program": lambda: os.readlink(f"{base}/exe"),
    "variables": lambda: read(f"{base}/environ"),
    "memory": lambda: os.close(os.open(f"{base}/mem", os.O_RDONLY)),
    "map": lambda: read(f"{base}/maps"),
    "auxiliary": lambda: read(f"{base}/auxv"),
    "mount-namespace": lambda: enter("mnt"),
    "user-namespace": lambda: enter("user"),
    "signal": lambda: os.kill(int(pid), 0),
    "signal-by-directory": signal_by_directory,
    "rank": lambda: write(f"{base}/oom_score_adj"),
    "first-root-write": lambda: make(f"/proc/1/root{outside}/by-first"),
    "first-memory": lambda: os.close(os.open("/proc/1/mem", os.O_RDONLY)),
    "keeper-root-write": lambda: make(f"/proc/{keeper}/root{outside}/by-keeper"),
    "keeper-memory": lambda: os.close(os.open(f"/proc/{keeper}/mem", os.O_RDONLY)),
    "launcher-memory": lambda: os.close(os.open(f"/proc/{launcher}/mem", os.O_RDONLY)),
    "launcher-descriptor": lambda: os.readlink(f"/proc/{launcher}/fd/0"),
    "own-root-write": lambda: make(f"/proc/self/root{outside}/by-self"),
}
found = {}
for name, attack in attacks.items():
    try:
        attack()
        found[name] = "ok"
    except OSError as error:
        found[name] = errno.errorcode[error.errno]
print(json.dumps(found))
"""

ENDS = {
    "root-list": "EACCES",
    "root-write": "EACCES",
    "cwd-write": "EACCES",
    "descriptor-write": "EACCES",
    "descriptor-read": "EACCES",
    "task-root-write": "EACCES",
    "program": "EACCES",
    "variables": "EACCES",
    "memory": "EACCES",
    "map": "EACCES",
    "auxiliary": "EACCES",
    "mount-namespace": "EACCES",
    "user-namespace": "EACCES",
    "signal": "ESRCH",
    "signal-by-directory": "EINVAL",
    "rank": "EROFS",
    "first-root-write": "EACCES",
    "first-memory": "EACCES",
    "keeper-root-write": "EACCES",
    "keeper-memory": "EACCES",
    "launcher-memory": "EACCES",
    "launcher-descriptor": "EACCES",
    "own-root-write": "EROFS",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if shutil.which("unshare") is None:
        pytest.skip("unshare (util-linux) is not installed")
    root = tmp_path_factory.mktemp("masked").resolve()
    inside, outside = root / "inside", root / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "open").write_text("text")
    mask = 'mount --bind /dev/null /proc/version && exec "$@"'
    own = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", mask, "sh")
    words = [*own, sys.executable, "-I", "-c", MASKED, str(ROOT), str(inside), str(outside), ATTACKS]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    assert (ran.returncode, ran.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.mark.parametrize("name", ENDS)
def test_processes_around_are_seen_and_stay_closed(found: dict[str, Any], name: str) -> None:
    assert found["control"][name] == "ok", "an attack that does not work outside proves nothing"
    assert (found["inside"][name], found["again"][name]) == (ENDS[name], ENDS[name])


def test_nothing_was_changed_around(found: dict[str, Any]) -> None:
    assert (found["left"], found["alive"]) == (["open"], True)


def test_programs_that_look_at_themselves_work(found: dict[str, Any]) -> None:
    assert found["everyday"] == "substituted\nhead"


def test_without_the_setting_nothing_runs_and_the_setting_is_named(found: dict[str, Any]) -> None:
    message, hint = found["strict"]
    assert message.startswith("cannot build the walls: fresh /proc: ")
    assert "enableWeakerNestedSandbox" in hint
