"""What was read and tried on a machine, as values; ``probe`` fills them, ``diagnosis`` explains them.

Rules: readings are raw, or nothing where nothing could be read. The outcome of a trial is the kernel's
error number: 0 if it worked, negative if a signal ended the trial (a filter may kill), and None if it was
not reached. Source of truth: proc(5), user_namespaces(7), sysctl documentation of the kernel.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.platforms.distribution import Distribution
from stockade.value import Value

CAP_SYS_ADMIN: Final = 21
FILTERED: Final = 2  # seccomp's mode number for a filter
_GVISOR: Final = ("gvisor", "#1 smp sun jan 10 15:06:54 pst 2016")  # the one build date that it always reports


class Trials(Value):
    """The steps of building a jail, each tried for real; a step that fails leaves the later ones untried."""

    user_namespace: int | None = None
    id_map: int | None = None
    namespaces: int | None = None
    loopback: int | None = None
    mounts: int | None = None
    processes: int | None = None
    filter: int | None = None
    listener: int | None = None
    masks: int | None = None
    layers: int | None = None


class Programs(Value):
    """Where programs were found; nothing if they were not."""

    bwrap: str = ""
    bwrap_version: str = ""
    rg: str = ""


class Facts(Value):
    """Everything that decides whether walls can be built here.

    ``maker``: the program that makes the namespaces, to whom a security module must allow them.
    ``marks``: words that tell of a container. ``chrooted``: whether / is not the root of the mounts.
    ``landlock``: the version of its interface. ``cgroup``: controllers that can be used to limit a session.
    ``walls``: why a whole jail could not be built, or nothing if it stood; ``weaker_walls``: the same
    with the /proc of the surroundings instead of a fresh one. ``unrouted``: what refused to lead connections of
    programs that know no proxy to ours, and how, or nothing if they are led; ``proxy``: what the proxy lacks.
    None if it was not tried.
    """

    release: str = ""
    version: str = ""
    machine: str = ""
    euid: int = 0
    capabilities: int = 0
    distribution: Distribution = Distribution()
    maker: str = ""
    max_user_namespaces: int | None = None
    unprivileged_userns_clone: int | None = None
    apparmor_restrict_unprivileged_userns: int | None = None
    ptrace_scope: int | None = None
    apparmor: bool = False
    apparmor_profile: str = ""
    selinux: str = ""
    seccomp: int | None = None
    chrooted: bool | None = None
    marks: tuple[str, ...] = ()
    inside_stockade: bool = False
    landlock: int = 0
    cgroup: tuple[str, ...] = ()
    absent_calls: tuple[str, ...] = ()
    programs: Programs = Programs()
    trials: Trials = Trials()
    walls: str | None = None
    weaker_walls: str | None = None
    unrouted: str | None = None
    proxy: str | None = None

    @property
    def root(self) -> bool:
        """Whether commands can be given without sudo."""
        return self.euid == 0

    @property
    def administers(self) -> bool:
        """Whether rules for unprivileged processes do not hold for this one."""
        return bool(self.capabilities >> CAP_SYS_ADMIN & 1)

    @property
    def kernel(self) -> tuple[int, int] | None:
        """The kernel's version, or None if it cannot be read from its release."""
        major, _, rest = self.release.partition(".")
        digits = "".join(char if char.isdecimal() else " " for char in rest).split()
        return (int(major), int(digits[0])) if major.isdecimal() and digits and rest[0].isdecimal() else None

    @property
    def gvisor(self) -> bool:
        """Whether the kernel is gVisor's, which plays Linux in user space."""
        text = f"{self.release} {self.version}".lower()
        return any(mark in text for mark in _GVISOR)

    @property
    def container(self) -> str:
        """The kind of container that this is, ``container`` if the kind is not known, or nothing."""
        for kind in ("kubernetes", "podman", "docker", "lxc", "systemd-nspawn"):
            if kind in self.marks:
                return kind
        return "container" if self.marks else ""


def container_marks(*, files: tuple[str, ...], cgroup: str, environment: dict[str, str]) -> tuple[str, ...]:
    """Return the kinds of containers that marker files, ``/proc/1/cgroup`` and the environment speak of."""
    found = []
    if "KUBERNETES_SERVICE_HOST" in environment or "kubepods" in cgroup:
        found.append("kubernetes")
    if "/.dockerenv" in files or "/docker" in cgroup:
        found.append("docker")
    if "/run/.containerenv" in files or "libpod" in cgroup:
        found.append("podman")
    if "/lxc" in cgroup:
        found.append("lxc")
    if "containerd" in cgroup or "cri-" in cgroup:
        found.append("containerd")
    # systemd's convention: container managers set this for the first process and what it starts.
    declared = environment.get("container", "")
    if declared and declared not in found:
        found.append("docker" if declared == "oci" else declared)
    return tuple(dict.fromkeys(found))
