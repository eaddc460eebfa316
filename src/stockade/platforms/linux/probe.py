"""Reads and tries what a machine allows: the only part of the diagnosis that touches the world.

Rules: it never raises, since a machine that is odd enough to need a diagnosis may refuse any of this; what
cannot be read stays unknown. It changes nothing and leaves nothing behind.
Source of truth: proc(5), the sysctl documentation of the kernel, apparmor(7), selinuxfs.
"""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.distribution import this_distribution
from stockade.platforms.linux.facts import Facts, Programs, Trials, container_marks
from stockade.platforms.linux.keeper_process import package_root
from stockade.platforms.linux.passage import find as find_bubblewrap
from stockade.platforms.requirements import find_anywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

_SYSCTL: Final = "/proc/sys/"
_CGROUP_ROOTS: Final = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
_PATIENCE: Final = 20.0
_TRIAL: Final = """\
import sys
sys.path.append(sys.argv[1])
from stockade.platforms.linux.trial import main
main()
"""


def read_facts(*, build: bool = True) -> Facts:
    """Read and try everything; takes about 100 ms. Without ``build`` no whole jail is tried."""
    kernel = os.uname()
    status = fields(_read("/proc/self/status"))
    tried = parse_trials(_output([sys.executable, "-I", "-S", "-c", _TRIAL, package_root()]))
    trials, landlock, absent = tried
    walls, unrouted = _walls(fresh_processes=True) if build else (None, None)
    weaker_walls, weakly_unrouted = _walls(fresh_processes=False) if walls else (None, None)
    return Facts(
        release=kernel.release,
        version=_read("/proc/version").strip(),
        machine=kernel.machine,
        euid=os.geteuid(),
        capabilities=_number(status.get("CapEff", ""), 16) or 0,
        distribution=this_distribution(),
        maker=os.path.realpath(sys.executable or ""),
        max_user_namespaces=_sysctl("user/max_user_namespaces"),
        unprivileged_userns_clone=_sysctl("kernel/unprivileged_userns_clone"),
        apparmor_restrict_unprivileged_userns=_sysctl("kernel/apparmor_restrict_unprivileged_userns"),
        ptrace_scope=_sysctl("kernel/yama/ptrace_scope"),
        apparmor=_read("/sys/module/apparmor/parameters/enabled").startswith("Y"),
        apparmor_profile=_apparmor_profile(),
        selinux={"1": "enforcing", "0": "permissive"}.get(_read("/sys/fs/selinux/enforce").strip(), ""),
        seccomp=_number(status.get("Seccomp", "")),
        chrooted=is_chrooted(_read("/proc/self/mountinfo")),
        marks=_marks(),
        inside_stockade=os.environ.get("SANDBOX_RUNTIME") == "1",
        landlock=landlock,
        cgroup=_cgroup_controllers(),
        absent_calls=absent,
        programs=_programs(),
        trials=trials,
        walls=walls,
        weaker_walls=weaker_walls,
        unrouted=weakly_unrouted if walls else unrouted,
        proxy=_proxy(),
    )


def fields(text: str) -> dict[str, str]:
    """Return the fields of a text of ``name: value`` lines, such as /proc/self/status."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def parse_trials(text: str) -> tuple[Trials, int, tuple[str, ...]]:
    """Return what the helper of ``trial`` printed: the steps, Landlock's version, and the calls that are absent."""
    words = [line.split() for line in text.splitlines()]
    pairs = [(pair[0], pair[1]) for pair in words if len(pair) == 2]  # noqa: PLR2004 - a name and its value
    absent = tuple(value for name, value in pairs if name == "absent")
    numbers = {name: number for name, value in pairs if (number := _number(value)) is not None}
    trials = Trials(**{name: numbers[name] for name in Trials._fields if name in numbers})
    return trials, numbers.get("landlock", 0), absent


def is_chrooted(mountinfo: str) -> bool | None:
    """Tell from /proc/self/mountinfo whether / is no mount, as after a chroot into a plain directory."""
    points = [line.split()[4] for line in mountinfo.splitlines() if len(line.split()) > 4]  # noqa: PLR2004 - proc(5)
    return "/" not in points if points else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def _number(text: str, base: int = 10) -> int | None:
    try:
        return int(text, base)
    except ValueError:
        return None


def _sysctl(name: str) -> int | None:
    return _number(_read(_SYSCTL + name))


def _apparmor_profile() -> str:
    """Return the profile of this process; the second file is shared with other security modules."""
    own = _read("/proc/self/attr/apparmor/current")
    shared = _read("/proc/self/attr/current") if os.path.isdir("/sys/module/apparmor") else ""
    return (own or shared).strip("\0\n ")


def _marks() -> tuple[str, ...]:
    files = tuple(path for path in ("/.dockerenv", "/run/.containerenv") if os.path.lexists(path))
    cgroup = _read("/proc/1/cgroup") + _read("/proc/self/cgroup")
    first = _read("/proc/1/environ").split("\0")  # systemd's convention; only root may read it
    declared = [entry.partition("=")[2] for entry in first if entry.startswith("container=")]
    environment = dict(os.environ) | ({"container": declared[0]} if declared else {})
    return container_marks(files=files, cgroup=cgroup, environment=environment)


def _cgroup_controllers() -> tuple[str, ...]:
    """Return the controllers of this process's own groups, of either version, if groups can be made below them."""
    paths = [line[3:] for line in _read("/proc/self/cgroup").splitlines() if line.startswith("0::")]
    found: list[str] = []
    for group in (root + path.rstrip("/") for root in _CGROUP_ROOTS for path in paths):
        if os.access(group, os.W_OK) and os.access(f"{group}/cgroup.procs", os.W_OK):
            found += _read(f"{group}/cgroup.controllers").split()
    return tuple(dict.fromkeys([*found, *(name for name in ("memory", "pids") if _has_old_group(name))]))


def _has_old_group(controller: str) -> bool:
    """Tell whether version 1 of the interface lets a group be made for a controller."""
    for line in _read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return os.access(f"{_CGROUP_ROOTS[0]}/{controller}{path}", os.W_OK)
    return False


def _programs() -> Programs:
    # Only the system's bubblewrap is ever started: one on PATH could be anybody's.
    bwrap = find_bubblewrap()
    version = _output([bwrap, "--version"]).removeprefix("bubblewrap ").strip() if bwrap else ""
    return Programs(bwrap or find_anywhere("bwrap") or "", version, find_anywhere("rg") or "")


def _walls(*, fresh_processes: bool) -> tuple[str, str | None]:
    """Build a whole jail and let it go again; return why it did not stand, and if it did, what is not routed."""
    from stockade.errors import StockadeError
    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.linux.mount import JailSpec
    from stockade.platforms.linux.seccomp import Features, program
    from stockade.platforms.linux.syscalls import arch_of

    try:
        filters = (program(arch_of(os.uname().machine), Features()),)
        jail = Jail.start()
        try:
            jail.build(JailSpec((), filters, fresh_processes=fresh_processes))
            jail.wait_ready(explain=False)
            told = [label.partition(" ") for label, _ in jail.entrances]
        finally:
            jail.close()
    except StockadeError as error:
        return error.message, None
    except (OSError, ValueError) as error:
        return f"cannot start the helpers: {error}", None
    return "", next((rest for kind, _, rest in told if kind == "unrouted"), "")


def _proxy() -> str:
    """Return what the proxy process lacks."""
    from stockade.errors import StockadeError
    from stockade.network.proxy_process import package_path

    try:
        package_path()
    except StockadeError as error:
        return error.message
    except (OSError, ValueError) as error:
        return f"its packages cannot be looked for: {error}"
    return ""


def _output(words: Sequence[str]) -> str:
    import subprocess

    try:
        ran = subprocess.run(words, capture_output=True, timeout=_PATIENCE, check=False, env={}, cwd="/")  # noqa: S603 - our own helper and bwrap
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return ran.stdout.decode("utf-8", "replace")
