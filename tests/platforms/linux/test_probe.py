"""The probe on this machine as it is, and on this machine made poorer by real means."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux import probe
from stockade.platforms.linux.facts import Facts, Trials

DOCTOR = [sys.executable, "-I", "-m", "stockade", "doctor", "--json"]
# Refuses unshare, as the filter of an unprivileged container does.
NO_UNSHARE = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 272, "aarch64": 97}[platform.machine()]
code = b"".join(struct.pack("<HBBI", *one) for one in
                [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, ACTION), (6, 0, 0, 0x7FFF0000)])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
# Knows no netfilter, as a kernel that was built without it.
NO_NETFILTER = """
import ctypes, os, platform, struct, sys
number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
code = b"".join(struct.pack("<HBBI", *one) for one in
                [(0x20, 0, 0, 0), (0x15, 0, 5, number), (0x20, 0, 0, 16), (0x15, 0, 3, 16), (0x20, 0, 0, 32),
                 (0x15, 0, 1, 12), (6, 0, 0, 0x0005005D), (6, 0, 0, 0x7FFF0000)])
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(8, code)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
REFUSE, KILL = "0x00050001", "0x80000000"


def test_parse_trials() -> None:
    text = "user_namespace 0\nid_map 1\nfilter -31\nlandlock 7\nabsent openat2\nabsent fsopen\nodd\nother x\n"
    assert probe.parse_trials(text) == (Trials(0, 1, filter=-31), 7, ("openat2", "fsopen"))


@given(st.text())
def test_any_output_is_parsed(text: str) -> None:
    trials, landlock, absent = probe.parse_trials(text)
    assert isinstance(trials, Trials)
    assert isinstance(landlock, int)
    assert isinstance(absent, tuple)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("22 1 0:20 / / rw - ext4 /dev/vda rw\n23 22 0:21 / /proc rw - proc proc rw", False),
        ("23 22 0:21 / /proc rw - proc proc rw", True),
        ("", None),
        ("short line", None),
    ],
)
def test_is_chrooted(text: str, expected: bool | None) -> None:  # noqa: FBT001
    assert probe.is_chrooted(text) is expected


def test_fields() -> None:
    assert probe.fields("Name:\tsh\nSeccomp:\t2\nodd\n") == {"Name": "sh", "Seccomp": "2", "odd": ""}


def test_facts_of_this_machine() -> None:
    facts = probe.read_facts()
    assert (facts.release, facts.machine, facts.euid) == (os.uname().release, os.uname().machine, os.geteuid())
    assert facts.trials != Trials()
    assert facts.kernel is not None


def test_nothing_makes_it_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Any:
        raise PermissionError(13, "refused")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("os.posix_spawn", refuse)
    monkeypatch.setattr("subprocess.Popen", refuse)
    facts = probe.read_facts()
    assert facts.trials == Trials()
    assert facts.walls == f"cannot start the sandbox's helper {sys.executable}: refused"
    assert Facts(max_user_namespaces=facts.max_user_namespaces, version=facts.version) == Facts()


def doctor(*before: str, **options: Any) -> tuple[int, dict[str, Any]]:
    ran = subprocess.run([*before, *DOCTOR], capture_output=True, text=True, check=False, **options)
    assert ran.stdout, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def blocked(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["what"], one["why"]) for one in report["findings"] if one["level"] in {"blocked", "weaker"}]


@pytest.fixture
def able() -> None:
    """Skip where the machine itself has no walls: then it cannot be made poorer."""
    if probe.read_facts().walls:
        pytest.skip("no walls can be built on this machine")
    if shutil.which("unshare") is None:
        pytest.skip("unshare (util-linux) is not installed")


@pytest.mark.usefixtures("able")
@pytest.mark.parametrize(
    ("action", "why"),
    [
        pytest.param(REFUSE, "a system call filter (seccomp) refuses it", id="refused"),
        pytest.param(KILL, "a system call filter killed the process (signal 31)", id="killed"),
    ],
)
def test_under_a_filter_that_refuses_namespaces(action: str, why: str) -> None:
    status, report = doctor(sys.executable, "-I", "-c", NO_UNSHARE.replace("ACTION", action))
    assert (status, report["enforceable"]) == (1, "no")
    ((what, found),) = blocked(report)
    assert what == "user namespaces"
    assert found.startswith(why)
    assert report["facts"]["seccomp"] == 2
    assert report["facts"]["walls"].startswith(("cannot build the walls", "the sandbox's helper ended"))


@pytest.mark.usefixtures("able")
def test_on_a_kernel_without_netfilter_walls_stand_and_not_every_program_is_carried() -> None:
    status, report = doctor(sys.executable, "-I", "-c", NO_NETFILTER)
    assert (status, report["enforceable"]) == (0, "full")
    assert report["facts"]["unrouted"] == "nftables: Protocol not supported"
    (found,) = (one for one in report["findings"] if one["what"] == "programs without proxy variables")
    assert found["level"] == "missing"
    assert "The kernel has no nftables" in found["why"]


@pytest.mark.usefixtures("able")
def test_where_every_program_is_carried_and_the_proxy_is_whole() -> None:
    _, report = doctor()
    assert (report["facts"]["unrouted"], report["facts"]["proxy"]) == ("", "")


@pytest.mark.usefixtures("able")
def test_where_user_namespaces_are_switched_off() -> None:
    line = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    status, report = doctor("unshare", "--user", "--map-root-user", "sh", "-c", line, "sh")
    assert (status, report["enforceable"]) == (1, "no")
    assert blocked(report) == [("user namespaces", "user.max_user_namespaces=0 switches user namespaces off")]


@pytest.mark.usefixtures("able")
def test_where_proc_is_masked() -> None:
    line = 'mount --bind /dev/null /proc/version && exec "$@"'
    own = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", line, "sh")
    status, report = doctor(*own)
    assert (status, report["enforceable"]) == (1, "weaker")
    assert [what for what, _ in blocked(report)] == ["a fresh /proc"]
    assert report["facts"]["weaker_walls"] == ""
