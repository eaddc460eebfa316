"""A command neither sees nor touches processes of the host, and all that it started ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stockade.sandbox.limits import Limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.enforcement.conftest import Facts, Ground, MakeTrial, Trial

ROOT = os.geteuid() == 0

#: Each aims at a process of the host by its number; inside there is no such number.
ATTACKS: dict[str, tuple[str, ...]] = {
    "asking whether it is there": ("os.kill(facts['pid'], 0)", "ESRCH"),
    "a harmless signal": ("os.kill(facts['pid'], signal.SIGCONT)", "ESRCH"),
    "a signal to its thread": ("kernel('tgkill', facts['pid'], facts['pid'], signal.SIGCONT)", "ESRCH"),
    "a signal to its group": ("os.killpg(os.getpgid(facts['pid']), signal.SIGCONT)", "ESRCH"),
    "a queued signal": (
        (
            "info = struct.pack('3i', signal.SIGCONT, 0, -1) + bytes(116);"
            "kernel('rt_sigqueueinfo', facts['pid'], signal.SIGCONT, info)"
        ),
        "ESRCH",
    ),
    "a descriptor of it": ("os.pidfd_open(facts['pid'])", "ESRCH"),
    "tracing it": ("kernel('ptrace', 0x4206, facts['pid'], 0, 0)", "ESRCH"),
    "reading its memory": (
        (
            "m = ctypes.create_string_buffer(8); kernel('process_vm_readv', facts['pid'],"
            "struct.pack('QQ', ctypes.addressof(m), 8), 1, struct.pack('QQ', facts['address'], 8), 1, 0)"
        ),
        "ESRCH",
    ),
    "its priority": ("os.setpriority(os.PRIO_PROCESS, facts['pid'], 19)", "ESRCH"),
    "its input priority": ("kernel('ioprio_set', 1, facts['pid'], 3 << 13)", "ESRCH"),
    "its limits": ("import resource; resource.prlimit(facts['pid'], resource.RLIMIT_CORE, (0, 0))", "ESRCH"),
    "its processors": ("os.sched_setaffinity(facts['pid'], os.sched_getaffinity(facts['pid']))", "ESRCH"),
    "its scheduler": ("os.sched_setscheduler(facts['pid'], os.SCHED_BATCH, os.sched_param(0))", "ESRCH"),
    "its session": ("os.getsid(facts['pid'])", "ESRCH"),
    "comparing with it": ("kernel('kcmp', os.getpid(), facts['pid'], 0, 0, 0)", "ESRCH"),
    "its environment": ("say(read(f'/proc/{facts[\"pid\"]}/environ'))", "ENOENT"),
    "its arguments": ("say(read(f'/proc/{facts[\"pid\"]}/cmdline'))", "ENOENT"),
    "its root": ("os.stat(f'/proc/{facts[\"pid\"]}/root/')", "ENOENT"),
    "its memory": ("os.open(f'/proc/{facts[\"pid\"]}/mem', os.O_RDWR)", "ENOENT"),
    "its descriptors": ("os.listdir(f'/proc/{facts[\"pid\"]}/fd')", "ENOENT"),
    "its namespaces": ("os.open(f'/proc/{facts[\"pid\"]}/ns/mnt', os.O_RDONLY)", "ENOENT"),
    "writing outside through it": ("write(f'/proc/{facts[\"pid\"]}/root{there}/victim')", "ENOENT"),
    "its badness": ("write(f'/proc/{facts[\"pid\"]}/oom_score_adj', '500')", "ENOENT"),
}


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial) -> Trial:
    return make_trial(ATTACKS)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_process_of_the_host_is_out_of_reach(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name])
    assert trial.inside.endings[name].said == ""


#: Process 1 inside belongs to the walls: it has an open channel, and had rights.
FIRST: dict[str, str] = {
    "tracing": "kernel('ptrace', 0x4206, 1, 0, 0)",
    "reading its memory": "m = ctypes.create_string_buffer(8); a = ctypes.addressof(m);"
    "kernel('process_vm_readv', 1, struct.pack('QQ', a, 8), 1, struct.pack('QQ', a, 8), 1, 0)",
    "writing its memory": "m = ctypes.create_string_buffer(8); a = ctypes.addressof(m);"
    "kernel('process_vm_writev', 1, struct.pack('QQ', a, 8), 1, struct.pack('QQ', a, 8), 1, 0)",
    "taking a descriptor": "kernel('pidfd_getfd', os.pidfd_open(1), 3, 0)",
    "its memory": "os.open('/proc/1/mem', os.O_RDONLY)",
    "its map": "open('/proc/1/maps').read(1)",
    "its descriptors": "os.listdir('/proc/1/fd')",
    "a descriptor by name": "os.open('/proc/1/fd/3', os.O_RDWR)",
    "its root": "os.stat('/proc/1/root/')",
    "its working directory": "os.stat('/proc/1/cwd/')",
    "its program": "os.readlink('/proc/1/exe')",
    "its environment": "open('/proc/1/environ').read()",
    "its namespaces": "os.open('/proc/1/ns/mnt', os.O_RDONLY)",
}
if ROOT:
    # Root may list the numbers of its descriptors, and open none of them.
    del FIRST["its descriptors"]


def test_process_1_inside_is_closed(ground: Ground) -> None:
    lines = ["import ctypes, errno, os, platform, struct, sys", "libc = ctypes.CDLL(None, use_errno=True)"]
    lines += [
        "from json import loads",
        "calls = loads(sys.argv[1])",
        "def kernel(name, *rest):",
        "    rest = [ctypes.c_long(one) if isinstance(one, int) else one for one in rest]",
        "    if libc.syscall(ctypes.c_long(calls[name]), *rest) < 0: raise OSError(ctypes.get_errno(), '')",
    ]
    for name, script in FIRST.items():
        lines += ["try:", f"    {script}", f"    print({name!r}, 'ok')"]
        lines += ["except OSError as error:", f"    print({name!r}, errno.errorcode[error.errno])"]
    import json
    import platform

    from stockade.platforms.linux.syscalls import arch_of

    calls = json.dumps(arch_of(platform.machine()).numbers())
    done = ground.sandbox().run([sys.executable, "-I", "-S", "-c", "\n".join(lines), calls])
    found = dict(line.rsplit(" ", 1) for line in done.output.splitlines())
    assert done.stderr == b""
    assert set(found) == set(FIRST)
    assert {name: end for name, end in found.items() if end not in {"EPERM", "EACCES"}} == {}


def test_only_the_commands_own_processes_are_listed(ground: Ground) -> None:
    assert str(os.getpid()) in os.listdir("/proc")
    done = ground.sandbox().run("ps -e -o pid=,comm= | sort -n; ls -d /proc/[0-9]*", env={"LC_ALL": "C"})
    assert str(os.getpid()) not in done.output.split()
    assert len([line for line in done.output.splitlines() if line.startswith("/proc/")]) < 8


def test_a_signal_to_everybody_reaches_nobody_outside(ground: Ground, host: Facts) -> None:
    sandbox = ground.sandbox()
    other = ground.sandbox()
    for line in ("kill -9 -1", "kill -TERM -1; kill -STOP -1", f"kill -9 {host.process.pid}", "kill -9 0"):
        sandbox.run(line)
    assert host.process.poll() is None
    assert Path(f"/proc/{host.process.pid}/stat").read_text().split()[2] in "SR"
    assert (sandbox.run("echo alive").output, other.run("echo alive").output) == ("alive\n", "alive\n")


def test_process_1_survives_what_a_command_sends_it(ground: Ground) -> None:
    script = (
        "import os, signal\n"
        "for number in range(1, 65):\n"
        "    try: os.kill(1, number)\n"
        "    except OSError: pass\n"
        "print('alive')"
    )
    done = ground.sandbox().run([sys.executable, "-I", "-S", "-c", script], timeout=20)
    assert (done.exit_code, done.output, done.limit) == (0, "alive\n", None)


def test_the_priority_of_the_users_other_processes_stays(ground: Ground, host: Facts) -> None:
    before = os.getpriority(os.PRIO_PROCESS, host.process.pid)
    script = f"import os; os.setpriority(os.PRIO_USER, {os.geteuid()}, 7); print(os.getpriority(os.PRIO_PROCESS, 0))"
    assert ground.sandbox().run([sys.executable, "-I", "-S", "-c", script]).output == "7\n"
    assert os.getpriority(os.PRIO_PROCESS, host.process.pid) == before


def test_no_descriptor_leaks_inside(ground: Ground) -> None:
    folder = os.open(ground.outside, os.O_RDONLY)
    os.set_inheritable(folder, True)
    try:
        bare = subprocess.run(["ls", "/proc/self/fd"], capture_output=True, check=True, close_fds=False)
        assert str(folder).encode() in bare.stdout.split()
        sandbox = ground.sandbox()
        for _ in range(3):
            done = sandbox.run(["sh", "-c", "ls /proc/self/fd /proc/$$/fd; ls -l /proc/$$/fd"])
            numbers = [line for line in done.output.splitlines() if line.isdecimal()]
            assert numbers == ["0", "1", "2", "0", "1", "2", "3"]
            assert str(ground.outside) not in done.output
    finally:
        os.close(folder)


STUBBORN = {
    "in the background": "sleep {mark} &",
    "a session of its own": "setsid sleep {mark} &",
    "nohup": "nohup sleep {mark} >/dev/null 2>&1 &",
    "a double fork": "( ( setsid sleep {mark} >/dev/null 2>&1 & ) & )",
    "ignoring signals": "(trap '' TERM HUP INT QUIT; exec sleep {mark}) &",
    "stopped": "sleep {mark} & kill -STOP $!",
    "forking on": "sh -c 'while :; do sleep {mark} & wait; done' &",
    "a new group each": "set -m; sleep {mark} & sleep {mark} &",
}
ENDINGS = ("by itself", "by a time limit", "by a signal", "by cancelling", "by closing")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", STUBBORN)
def test_all_that_a_command_started_ends_with_it(
    ground: Ground, processes_with: Callable[[str], list[int]], kind: str, ending: str
) -> None:
    bare, walled = (f"{seconds}.{os.getpid()}{time.time_ns() % 10**12:012}" for seconds in (601, 602))
    words = ["bash", "-c", f"{STUBBORN[kind].format(mark=bare)}\n:"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert _until(lambda: bool(processes_with(bare))), "the control: without walls it lives on"
    _run_until(ground, f"{STUBBORN[kind].format(mark=walled)}\nsleep 0.2", ending)
    assert processes_with(walled) == []


def _until(condition: Callable[[], bool]) -> bool:
    """Wait for what must become true soon."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def _run_until(ground: Ground, start: str, ending: str) -> None:
    sandbox = ground.sandbox()
    if ending == "by itself":
        assert sandbox.run(start).ok
    elif ending == "by a time limit":
        assert sandbox.run(f"{start}\nsleep 600", timeout=0.4).limit is Limit.TIME
    elif ending == "by a signal":
        assert sandbox.run(f"{start}\nkill -9 $$").signal == signal.SIGKILL
    elif ending == "by cancelling":

        def cancel(_piece: bytes) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sandbox.run(f"{start}\necho started; sleep 600", on_output=cancel)
    else:
        nothing = os.open(os.devnull, os.O_RDWR)
        sandbox.session.start(f"{start}\nsleep 600", (nothing, nothing, nothing))
        time.sleep(0.3)
        sandbox.close()
        os.close(nothing)


def test_all_ends_when_the_owner_is_killed(ground: Ground, processes_with: Callable[[str], list[int]]) -> None:
    mark = f"777.{time.time_ns() % 10**12}"
    owner = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "import sys\n"
                "from stockade.policy.compile import compile_policy\n"
                "from stockade.sandbox.blocking import BlockingSandbox\n"
                "from stockade.settings.merge import merge\n"
                "policy = compile_policy(merge([]), cwd=sys.argv[1], home=sys.argv[2])\n"
                "with BlockingSandbox(policy) as sandbox:\n"
                f"    sandbox.run('setsid sleep {mark} & echo; sleep {mark}', on_output=lambda _: print('up', flush=1))"
            ),
            str(ground.project),
            str(ground.home),
        ],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    assert _until(lambda: bool(processes_with(f"sleep\0{mark}")))
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert _until(lambda: not processes_with(f"sleep\0{mark}"))
