"""Can walls be built on this machine, how well, and if not, why and what to do: facts in, findings out.

Rules: no I/O. What stops the walls is BLOCKED and what lets them stand with less is WEAKER; MISSING is a comfort
that is not there, and takes nothing from the walls; WARNING is what walls cannot help. A jail that was built for
real outweighs all reasoning: if it stood, nothing is blocked; if it fell, something is, even if no cause was found.
"""

from __future__ import annotations

from enum import Enum
from errno import EACCES, EAFNOSUPPORT, EBUSY, EINVAL, ENODEV, ENOENT, ENOSYS, ENXIO, EOPNOTSUPP, EPERM, EPROTONOSUPPORT
from os import strerror

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.detect import System, detect
from stockade.platforms.distribution import as_root
from stockade.platforms.linux.barrier import WEAKER_LOSS, WEAKER_SETTING, barrier, container_remedy
from stockade.platforms.linux.facts import Trials
from stockade.platforms.requirements import BWRAP, install_command
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.platforms.linux.facts import Facts
    from stockade.platforms.requirements import Requirement

OLDEST_KERNEL: Final = (5, 12)
MACHINES: Final = ("x86_64", "aarch64")
_UPDATES: Final = {
    "debian": "apt-get update && apt-get dist-upgrade",
    "fedora": "dnf upgrade kernel",
    "arch": "pacman -Syu linux",
    "suse": "zypper update kernel-default",
}
_LANDLOCK_SERVES: Final = 2
_REPORT: Final = "this is not known yet: please report it with the output of `stockade doctor --json`"
_KERNEL_MODULES: Final = "nf_tables nft_chain_nat nft_redir"
_LACKING: Final = f"The kernel has no nftables, or not its part that redirects ({_KERNEL_MODULES})"
_FORBIDDING: Final = "A security module or a system call filter forbids it"
_FORBIDDEN: Final = frozenset(map(strerror, (EPERM, EACCES)))
_UNKNOWN_TO_KERNEL: Final = frozenset(
    map(strerror, (EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT, ENOENT, EINVAL, ENOSYS))
)
_STEPS: Final = (
    ("user_namespace", "user namespaces"),
    ("id_map", "ids in a user namespace"),
    ("namespaces", "mount, network, process and ipc namespaces"),
    ("loopback", "a private localhost"),
    ("mounts", "private mounts"),
)


class Level(Enum):
    """What a finding means for the walls."""

    OK = "ok"
    NOTE = "note"
    WEAKER = "weaker"
    MISSING = "missing"
    WARNING = "warning"
    BLOCKED = "blocked"


class Enforceable(Enum):
    """How much of a policy can be enforced; ``weaker`` needs sandbox.enableWeakerNestedSandbox."""

    FULL = "full"
    WEAKER = "weaker"
    NO = "no"


class Finding(Value):
    """One thing that was looked at; the remedy may have several lines."""

    level: Level
    what: str
    why: str
    remedy: str = ""


class Diagnosis(Value):
    """All findings, and what they come to."""

    findings: tuple[Finding, ...]

    @property
    def enforceable(self) -> Enforceable:
        """The least of all findings."""
        levels = {finding.level for finding in self.findings}
        if Level.BLOCKED in levels:
            return Enforceable.NO
        return Enforceable.WEAKER if Level.WEAKER in levels else Enforceable.FULL


def diagnose(facts: Facts) -> Diagnosis:
    """Explain what was read and tried."""
    impossible = _impossible(facts)
    if impossible is not None:
        return Diagnosis((impossible,))
    walls = tuple(_walls(facts))
    if facts.walls == "":
        walls = tuple(_stood(finding) for finding in walls)
    elif facts.walls is not None:
        walls += tuple(_fallen(facts, walls))
    return Diagnosis((_kernel(facts), *walls, *_comforts(facts)))


def _impossible(facts: Facts) -> Finding | None:
    """Return the one finding that makes all others pointless."""
    platform = detect("linux", facts.version or facts.release)
    if platform.system is System.NONE:
        return Finding(Level.BLOCKED, platform.name, platform.why, platform.remedy)
    if facts.gvisor:
        why = "this kernel is gVisor's, which has neither the mount calls nor the filters that walls are built with"
        return Finding(
            Level.BLOCKED, "gVisor", why, "run the container with another runtime: docker run --runtime=runc"
        )
    if facts.inside_stockade and facts.max_user_namespaces == 0:
        why = "this runs inside a Stockade sandbox already, and walls cannot be built within walls"
        return Finding(Level.BLOCKED, "nesting", why, "run it outside; what runs here is behind walls already")
    return None


def _kernel(facts: Facts) -> Finding:
    what = f"Linux {facts.release} on {facts.machine}"
    if facts.machine not in MACHINES:
        why = f"there is no system call filter for {facts.machine}"
        return Finding(Level.BLOCKED, what, why, "use a 64-bit x86 or ARM system")
    oldest = ".".join(map(str, OLDEST_KERNEL))
    if facts.kernel is not None and facts.kernel < OLDEST_KERNEL:
        return Finding(Level.BLOCKED, what, f"the kernel is older than {oldest}", _update(facts))
    if facts.absent_calls:
        cause = barrier(facts, "system calls", ENOSYS)
        return Finding(Level.BLOCKED, what, f"{', '.join(facts.absent_calls)}: {cause.why}", cause.remedy)
    return Finding(Level.OK, what, f"{oldest} or newer is needed")


def _update(facts: Facts) -> str:
    command = _UPDATES.get(facts.distribution.family)
    oldest = ".".join(map(str, OLDEST_KERNEL))
    if facts.container or command is None:
        return f"run it on a {'host' if facts.container else 'system'} with Linux {oldest} or newer"
    return f"sudo sh -c '{command}' and restart; if that kernel is too old as well, upgrade the distribution"


def _walls(facts: Facts) -> Iterator[Finding]:
    """Yield the steps up to the first that is refused; without it the later ones mean nothing."""
    refused = False
    for step, what in _STEPS:
        error = getattr(facts.trials, step)
        if error == 0:
            yield Finding(Level.OK, what, "tried and allowed")
            continue
        refused = True
        yield _refused(facts, step, what, error)
        break
    if not refused:
        yield _processes(facts)
    if facts.trials != Trials():
        yield _filter(facts)


def _refused(facts: Facts, step: str, what: str, error: int | None) -> Finding:
    if error is None:
        why = "could not be tried: the helper did not start"
        return Finding(Level.BLOCKED, what, why, f"check that {facts.maker or 'python'} can be run")
    cause = barrier(facts, step, error)
    return Finding(Level.BLOCKED, what, cause.why, cause.remedy)


def _processes(facts: Facts) -> Finding:
    what = "a fresh /proc"
    error = facts.trials.processes
    if error == 0:
        return Finding(Level.OK, what, "tried and allowed")
    if facts.weaker_walls:
        return Finding(Level.BLOCKED, what, facts.weaker_walls, container_remedy(facts) or _REPORT)
    why = "parts of /proc are masked here, as containers do, so the kernel allows no fresh one"
    remedy = f"{WEAKER_SETTING} to do without: {WEAKER_LOSS}; files, network and filters hold as always"
    better = container_remedy(facts)
    return Finding(Level.WEAKER, what, why, f"{better}\nor {remedy}" if better else remedy)


def _filter(facts: Facts) -> Finding:
    what = "system call filters"
    error = facts.trials.filter
    if error != 0:
        return _refused(facts, "filter", what, error)
    return Finding(Level.OK, what, "tried and allowed")


def _stood(finding: Finding) -> Finding:
    """Read a refusal again when the jail as a whole stood: there was another way."""
    if finding.level is Level.OK:
        return finding
    return Finding(Level.OK, finding.what, f"not allowed to this program, but had by another way ({finding.why})")


def _fallen(facts: Facts, found: tuple[Finding, ...]) -> Iterator[Finding]:
    """Yield the failure of the whole jail, unless a step has explained it."""
    if all(finding.level is Level.OK for finding in found):
        yield Finding(Level.BLOCKED, "a whole jail", facts.walls or "", _REPORT)


def _comforts(facts: Facts) -> Iterator[Finding]:
    yield _landlock(facts)
    yield _listener(facts)
    yield _masks(facts)
    yield _layers(facts)
    yield _groups(facts)
    if facts.unrouted is not None:
        yield _carried(facts, facts.unrouted)
    if facts.proxy is not None:
        yield _proxy(facts.proxy)
    if facts.programs.bwrap or facts.apparmor_restrict_unprivileged_userns:
        yield _program(facts, BWRAP, facts.programs.bwrap, facts.programs.bwrap_version)


def _landlock(facts: Facts) -> Finding:
    what = "Landlock"
    if facts.landlock >= _LANDLOCK_SERVES:
        return Finding(Level.OK, what, f"version {facts.landlock}: a second wall around writing")
    why = (
        "a second wall around writing needs Linux 5.19 with Landlock: existing pipes outside can be written, "
        "and a file given as a stream can be opened again"
    )
    return Finding(Level.MISSING, what, why, "start the kernel with lsm=landlock,... or use a newer one")


def _listener(facts: Facts) -> Finding:
    what = "the supervisor"
    error = facts.trials.listener
    if error == 0:
        return Finding(Level.OK, what, "unix sockets are opened by path, and refused writes are told exactly")
    cause = "filters that notify could not be tried"
    remedy = container_remedy(facts)
    if error == EBUSY:
        cause = "another one listens around this process, and the kernel allows but one"
        remedy = "start Stockade outside of what listens: a container runtime, or a sandbox"
    elif error is not None:
        cause = f"filters that notify are not allowed here ({strerror(error)})"
    why = f"{cause}: unix sockets stay closed, and refused writes are refused without a report"
    return Finding(Level.MISSING, what, why, remedy or _REPORT)


def _masks(facts: Facts) -> Finding:
    what = "reports of refused reads"
    if facts.trials.masks == 0:
        return Finding(Level.OK, what, "every refused read is told exactly, and an allowed one costs nothing")
    absent = facts.trials.masks in {ENOENT, ENODEV, ENXIO}
    cause = "this kernel has no FUSE" if absent else "/dev/fuse cannot be opened"
    command = as_root("modprobe fuse" if absent else "chmod 666 /dev/fuse", root=facts.root)
    remedy = "give the container the device, as with docker run --device /dev/fuse" if facts.container else command
    return Finding(Level.MISSING, what, f"denied reads are refused, but not reported here: {cause}", remedy)


def _layers(facts: Facts) -> Finding:
    what = "a private /tmp"
    error = facts.trials.layers
    if error == 0:
        return Finding(Level.OK, what, "commands write in a version of it that is their session's own")
    cause, remedy = "overlayfs could not be tried", _REPORT
    if error == EINVAL:
        cause, remedy = "something is mounted below /tmp", "unmount it, or mount it elsewhere; findmnt shows it"
    elif error == ENODEV:
        cause, remedy = "this kernel has no overlayfs", as_root("modprobe overlay", root=facts.root)
    elif error is not None:
        cause = f"the kernel lets no user mount overlayfs here ({strerror(abs(error))})"
        remedy = container_remedy(facts) or "use Linux 5.11 or newer"
    return Finding(Level.MISSING, what, f"commands can write in $TMPDIR but not in /tmp, for {cause}", remedy)


def _groups(facts: Facts) -> Finding:
    what = "control groups"
    if {"memory", "pids"} <= set(facts.cgroup):
        return Finding(Level.OK, what, "memory and processes can be limited for a whole session")
    why = "no writable group with memory and pids: limits hold for each process alone"
    return Finding(Level.MISSING, what, why, "systemd-run --user --scope -p Delegate=yes stockade ...")


def _carried(facts: Facts, unrouted: str) -> Finding:
    """Tell whether programs that know no proxy reach allowed hosts; none of them reaches another one either way."""
    what = "programs without proxy variables"
    if not unrouted:
        return Finding(Level.OK, what, "are carried to the proxy as well")
    why = f"are not carried to the proxy, and find no network ({unrouted}); those that know proxies do"
    refusal = unrouted.rpartition(": ")[2]
    if refusal in _FORBIDDEN:
        return Finding(Level.MISSING, what, f"{why}. {_FORBIDDING}", container_remedy(facts) or _REPORT)
    if refusal in _UNKNOWN_TO_KERNEL:
        place = " on the host" if facts.container else ""
        return Finding(Level.MISSING, what, f"{why}. {_LACKING}", f"sudo modprobe -a {_KERNEL_MODULES}{place}")
    return Finding(Level.MISSING, what, why, _REPORT)


def _proxy(lacking: str) -> Finding:
    what = "the network proxy"
    if not lacking:
        return Finding(Level.OK, what, "finds its packages, h11 and idna")
    return Finding(Level.MISSING, what, f"{lacking}: no host can be reached", "install Stockade with its dependencies")


def _program(facts: Facts, requirement: Requirement, found: str, version: str = "") -> Finding:
    if found:
        place = f"{found} {version}".strip()
        return Finding(Level.OK, requirement.program, f"{place}: {requirement.purpose}")
    install = install_command(requirement, facts.distribution.family, root=facts.root)
    return Finding(Level.MISSING, requirement.program, requirement.purpose, install)
