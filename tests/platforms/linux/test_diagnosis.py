"""Machines as they are met, each as a set of facts, and what is to be said about each."""

from __future__ import annotations

from errno import EACCES, EBUSY, EINVAL, ENODEV, ENOENT, ENOSPC, ENOSYS, EPERM

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.distribution import Distribution
from stockade.platforms.linux.diagnosis import Diagnosis, Enforceable, Finding, Level, diagnose
from stockade.platforms.linux.facts import Facts, Programs, Trials

ALL = Trials(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
TOOLS = Programs("/usr/bin/bwrap", "0.8.0", "/usr/bin/rg")
EVERY_CAPABILITY = (1 << 41) - 1
DOCKER_CAPABILITIES = 0xA80425FB
PYTHON = "/usr/bin/python3.12"


def refused(**steps: int) -> Trials:
    """Return trials in which one step was refused, and the later ones not reached."""
    (step,) = steps
    order = ("user_namespace", "id_map", "namespaces", "loopback", "mounts", "processes")
    reached = dict.fromkeys(order[: order.index(step)], 0) if step in order else dict.fromkeys(order, 0)
    return Trials(**(reached | {"filter": 0, "listener": 0, "masks": 0, "layers": 0} | steps))


DEBIAN = Facts(
    release="6.1.0-18-amd64",
    version="Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC",
    machine="x86_64",
    euid=1000,
    distribution=Distribution("debian", "debian", "12"),
    maker=PYTHON,
    max_user_namespaces=63434,
    unprivileged_userns_clone=1,
    seccomp=0,
    chrooted=False,
    landlock=2,
    cgroup=("cpu", "memory", "pids"),
    programs=TOOLS,
    trials=ALL,
)
ROOT = DEBIAN.but(euid=0, capabilities=EVERY_CAPABILITY)
UBUNTU = DEBIAN.but(
    release="6.8.0-31-generic",
    distribution=Distribution("ubuntu", "debian", "24.04"),
    apparmor_restrict_unprivileged_userns=1,
    apparmor=True,
    apparmor_profile="unconfined",
)
DOCKER = ROOT.but(
    capabilities=DOCKER_CAPABILITIES,
    seccomp=2,
    apparmor=True,
    apparmor_profile="docker-default (enforce)",
    marks=("docker",),
    trials=refused(user_namespace=EPERM),
)
PODMAN = ROOT.but(capabilities=DOCKER_CAPABILITIES, seccomp=2, marks=("podman",))
RHEL = DEBIAN.but(
    release="5.14.0-362.el9.x86_64",
    distribution=Distribution("rhel", "fedora", "9.3"),
    selinux="enforcing",
    unprivileged_userns_clone=None,
)
WSL1 = DEBIAN.but(
    release="4.4.0-19041-Microsoft",
    version="Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)",
    trials=refused(user_namespace=EINVAL),
)
WSL2 = DEBIAN.but(
    release="5.15.146.1-microsoft-standard-WSL2", version="Linux version 5.15.146.1-microsoft-standard-WSL2"
)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(DEBIAN, id="Debian 12, user"),
        pytest.param(ROOT, id="Debian 12, root"),
        pytest.param(DEBIAN.but(walls="", unrouted="", proxy=""), id="Debian 12, jail built"),
        pytest.param(UBUNTU.but(euid=0, capabilities=EVERY_CAPABILITY), id="Ubuntu 24.04, root"),
        pytest.param(UBUNTU, id="Ubuntu 24.04, program with a profile"),
        pytest.param(
            DOCKER.but(capabilities=EVERY_CAPABILITY, seccomp=0, apparmor_profile="unconfined", trials=ALL),
            id="Docker, privileged",
        ),
        pytest.param(WSL2, id="WSL2"),
        pytest.param(DEBIAN.but(machine="aarch64"), id="ARM"),
        pytest.param(DEBIAN.but(release="5.12.0"), id="the oldest kernel"),
        pytest.param(RHEL, id="RHEL 9"),
        pytest.param(DEBIAN.but(seccomp=2), id="a filter that lets through what is needed"),
    ],
)
def test_machines_where_every_wall_can_be_built(facts: Facts) -> None:
    diagnosis = diagnose(facts)
    assert diagnosis.enforceable is Enforceable.FULL
    assert {finding.level for finding in diagnosis.findings} == {Level.OK}


BLOCKED = [
    pytest.param(
        UBUNTU.but(trials=refused(user_namespace=EPERM)),
        "user namespaces",
        "AppArmor keeps user namespaces from programs without a profile",
        (
            (
                f"""printf '%s\\n' 'abi <abi/4.0>,' 'profile stockade "{PYTHON}" flags=(unconfined) {{ userns, }}'"""
                " | sudo tee /etc/apparmor.d/stockade"
            ),
            "sudo apparmor_parser -r /etc/apparmor.d/stockade",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        id="Ubuntu 24.04, restricted",
    ),
    pytest.param(
        UBUNTU.but(trials=refused(id_map=EACCES)),
        "ids in a user namespace",
        "AppArmor keeps user namespaces from programs without a profile",
        ("sudo apparmor_parser -r /etc/apparmor.d/stockade",),
        id="Ubuntu 24.04, restricted after the first step",
    ),
    pytest.param(
        UBUNTU.but(trials=refused(namespaces=EPERM), seccomp=2),
        "mount, network, process and ipc namespaces",
        "AppArmor keeps user namespaces from programs without a profile",
        ("sudo apparmor_parser -r /etc/apparmor.d/stockade",),
        id="Ubuntu 24.04, restricted, under a harmless filter",
    ),
    pytest.param(
        DOCKER,
        "user namespaces",
        "a system call filter (seccomp) refuses it; it is part of this container (docker)",
        (
            (
                "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
                " --security-opt systempaths=unconfined"
            ),
            "--privileged works as well, but also gives it the host's devices and every capability",
        ),
        id="Docker, default",
    ),
    pytest.param(
        DOCKER.but(apparmor_restrict_unprivileged_userns=1),
        "user namespaces",
        "a system call filter (seccomp) refuses it",
        ("--security-opt seccomp=unconfined",),
        id="Docker on Ubuntu 24.04: the filter answers first",
    ),
    pytest.param(
        DOCKER.but(trials=refused(user_namespace=-31)),
        "user namespaces",
        "a system call filter killed the process (signal 31); it is part of this container",
        ("--security-opt seccomp=unconfined",),
        id="Docker, filter that kills",
    ),
    pytest.param(
        DOCKER.but(seccomp=0, trials=refused(mounts=EACCES)),
        "private mounts",
        "the AppArmor profile docker-default forbids it",
        ("--security-opt apparmor=unconfined",),
        id="Docker without its filter: AppArmor is next",
    ),
    pytest.param(
        DOCKER.but(marks=("kubernetes", "containerd")),
        "user namespaces",
        "it is part of this container (kubernetes)",
        ("seccompProfile: {type: Unconfined}", "procMount: Unmasked"),
        id="Kubernetes",
    ),
    pytest.param(
        PODMAN.but(selinux="enforcing", trials=refused(mounts=EACCES)),
        "private mounts",
        "SELinux forbids it to this container",
        ("--security-opt label=disable",),
        id="Podman, SELinux",
    ),
    pytest.param(
        DOCKER.but(marks=("lxc",)),
        "user namespaces",
        "(lxc)",
        ("lxc config set CONTAINER security.nesting=true",),
        id="LXC",
    ),
    pytest.param(
        DOCKER.but(marks=("mine",)), "user namespaces", "(container)", ("let its manager allow",), id="other container"
    ),
    pytest.param(
        DEBIAN.but(seccomp=2, trials=refused(user_namespace=EPERM)),
        "user namespaces",
        "it was put there by the program that started this one",
        ("RestrictNamespaces=",),
        id="systemd service",
    ),
    pytest.param(
        RHEL.but(max_user_namespaces=0, trials=refused(user_namespace=ENOSPC)),
        "user namespaces",
        "user.max_user_namespaces=0 switches user namespaces off",
        (
            "sudo sysctl -w user.max_user_namespaces=15000",
            "echo 'user.max_user_namespaces = 15000' | sudo tee -a /etc/sysctl.d/90-stockade.conf",
        ),
        id="RHEL, switched off",
    ),
    pytest.param(
        DOCKER.but(max_user_namespaces=0, trials=refused(user_namespace=ENOSPC)),
        "user namespaces",
        "user.max_user_namespaces=0",
        ("on the host of this container: sysctl -w user.max_user_namespaces=15000",),
        id="container, switched off on the host",
    ),
    pytest.param(
        DEBIAN.but(trials=refused(user_namespace=ENOSPC)),
        "user namespaces",
        "the limit of 63434 on user namespaces is reached, or they are nested 32 deep",
        ("sudo sysctl -w user.max_user_namespaces=126868",),
        id="nested too deep",
    ),
    pytest.param(
        DEBIAN.but(trials=refused(namespaces=ENOSPC)),
        "mount, network, process and ipc namespaces",
        "a limit on namespaces of another kind",
        ("sysctl -a | grep 'user.max_.*_namespaces'",),
        id="no network namespaces",
    ),
    pytest.param(
        DEBIAN.but(
            distribution=Distribution("arch", "arch"),
            unprivileged_userns_clone=0,
            trials=refused(user_namespace=EPERM),
        ),
        "user namespaces",
        "kernel.unprivileged_userns_clone=0 reserves user namespaces for root",
        ("sudo sysctl -w kernel.unprivileged_userns_clone=1",),
        id="Arch, hardened",
    ),
    pytest.param(
        ROOT.but(chrooted=True, trials=refused(user_namespace=EPERM)),
        "user namespaces",
        "this process runs in a chroot",
        ("pivot_root",),
        id="chroot",
    ),
    pytest.param(
        RHEL.but(trials=refused(user_namespace=EACCES)),
        "user namespaces",
        "SELinux forbids it",
        ("sudo ausearch -m avc -ts recent | audit2allow -M stockade", "sudo semodule -i stockade.pp"),
        id="SELinux",
    ),
    pytest.param(
        UBUNTU.but(
            apparmor_restrict_unprivileged_userns=0,
            apparmor_profile="snap.editor (enforce)",
            trials=refused(user_namespace=EACCES),
        ),
        "user namespaces",
        "the AppArmor profile snap.editor forbids it",
        ("allow `userns,` and `mount,` in the profile snap.editor",),
        id="AppArmor profile",
    ),
    pytest.param(
        DEBIAN.but(trials=refused(user_namespace=EINVAL)),
        "user namespaces",
        "the kernel 6.1.0-18-amd64 was built without it",
        ("CONFIG_USER_NS",),
        id="not built in",
    ),
    pytest.param(
        DEBIAN.but(trials=refused(user_namespace=EPERM)),
        "user namespaces",
        "none of the known reasons fits",
        ("journalctl -k",),
        id="unknown",
    ),
    pytest.param(
        RHEL.but(trials=refused(user_namespace=EPERM)),
        "user namespaces",
        "none of the known reasons fits",
        ("journalctl -k",),
        id="SELinux would answer otherwise",
    ),
    pytest.param(
        ROOT.but(unprivileged_userns_clone=0, chrooted=True, trials=refused(user_namespace=EPERM)),
        "user namespaces",
        "this process runs in a chroot",
        ("pivot_root",),
        id="root is not bound by unprivileged_userns_clone",
    ),
    pytest.param(
        DEBIAN.but(trials=Trials()),
        "user namespaces",
        "could not be tried",
        (PYTHON,),
        id="helper does not start",
    ),
    pytest.param(WSL1, "WSL1", "WSL1 is not supported", ("wsl --set-version DISTRIBUTION 2",), id="WSL1"),
    pytest.param(
        DEBIAN.but(release="4.4.0", version="Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016"),
        "gVisor",
        "this kernel is gVisor's",
        ("--runtime=runc",),
        id="gVisor",
    ),
    pytest.param(
        DEBIAN.but(inside_stockade=True, max_user_namespaces=0, trials=refused(user_namespace=ENOSPC)),
        "nesting",
        "inside a Stockade sandbox already",
        ("run it outside",),
        id="inside ourselves",
    ),
    pytest.param(
        DEBIAN.but(release="5.4.0-150-generic"),
        "Linux 5.4.0-150-generic on x86_64",
        "the kernel is older than 5.12",
        ("apt-get dist-upgrade",),
        id="old kernel",
    ),
    pytest.param(
        DOCKER.but(release="5.4.0-150-generic", trials=ALL),
        "Linux 5.4.0-150-generic on x86_64",
        "the kernel is older than 5.12",
        ("run it on a host with Linux 5.12 or newer",),
        id="old kernel below a container",
    ),
    pytest.param(
        DEBIAN.but(machine="riscv64"),
        "Linux 6.1.0-18-amd64 on riscv64",
        "there is no system call filter for riscv64",
        ("64-bit x86 or ARM",),
        id="architecture",
    ),
    pytest.param(
        DOCKER.but(absent_calls=("openat2", "mount_setattr"), trials=ALL),
        "Linux 6.1.0-18-amd64 on x86_64",
        "openat2, mount_setattr: a system call filter hides the call",
        ("--security-opt seccomp=unconfined",),
        id="calls hidden by an old engine",
    ),
    pytest.param(
        DEBIAN.but(trials=refused(filter=EINVAL)),
        "system call filters",
        "built without it",
        ("CONFIG_SECCOMP_FILTER",),
        id="no filters",
    ),
    pytest.param(
        DEBIAN.but(walls="cannot build the walls: mount: /x: Invalid argument"),
        "a whole jail",
        "cannot build the walls: mount: /x: Invalid argument",
        ("stockade doctor --json",),
        id="every step works, the whole does not",
    ),
    pytest.param(
        DEBIAN.but(
            trials=refused(processes=EPERM), walls="fresh /proc: refused", weaker_walls="mount: Invalid argument"
        ),
        "a fresh /proc",
        "mount: Invalid argument",
        ("stockade doctor --json",),
        id="not even weaker",
    ),
]


@pytest.mark.parametrize(("facts", "what", "why", "remedies"), BLOCKED)
def test_machines_without_walls_are_told_apart(facts: Facts, what: str, why: str, remedies: tuple[str, ...]) -> None:
    diagnosis = diagnose(facts)
    assert diagnosis.enforceable is Enforceable.NO
    (blocked,) = (finding for finding in diagnosis.findings if finding.level is Level.BLOCKED)
    assert blocked.what == what
    assert why in blocked.why
    assert [remedy for remedy in remedies if remedy not in blocked.remedy] == []


@pytest.mark.parametrize(
    ("facts", "remedies"),
    [
        pytest.param(
            DOCKER.but(seccomp=0, apparmor_profile="unconfined", trials=refused(processes=EPERM)),
            ("--security-opt systempaths=unconfined", '"enableWeakerNestedSandbox": true'),
            id="Docker without filters, /proc masked",
        ),
        pytest.param(
            PODMAN.but(trials=refused(processes=EPERM), walls="fresh /proc: refused", weaker_walls=""),
            ("--security-opt unmask=ALL", '"enableWeakerNestedSandbox": true'),
            id="Podman",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(processes=EPERM)), ('"enableWeakerNestedSandbox": true',), id="no container"
        ),
    ],
)
def test_without_a_fresh_proc_the_walls_are_weaker(facts: Facts, remedies: tuple[str, ...]) -> None:
    diagnosis = diagnose(facts)
    assert diagnosis.enforceable is Enforceable.WEAKER
    (weaker,) = (finding for finding in diagnosis.findings if finding.level is not Level.OK)
    assert (weaker.level, weaker.what) == (Level.WEAKER, "a fresh /proc")
    assert [remedy for remedy in remedies if remedy not in weaker.remedy] == []


def test_a_jail_that_stood_outweighs_a_refused_step() -> None:
    facts = UBUNTU.but(trials=refused(user_namespace=EPERM), walls="")
    assert diagnose(facts).enforceable is Enforceable.FULL


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            DEBIAN.but(landlock=0),
            Finding(
                Level.MISSING,
                "Landlock",
                "a second wall around writing needs Linux 5.19 with Landlock: existing pipes outside can be written, "
                "and a file given as a stream can be opened again",
                "start the kernel with lsm=landlock,... or use a newer one",
            ),
            id="no Landlock",
        ),
        pytest.param(
            DEBIAN.but(unrouted="nftables nat chain: Operation not supported"),
            Finding(
                Level.MISSING,
                "programs without proxy variables",
                "are not carried to the proxy, and find no network (nftables nat chain: Operation not supported); "
                "those that know proxies do. The kernel has no nftables, or not its part that redirects "
                "(nf_tables nft_chain_nat nft_redir)",
                "sudo modprobe -a nf_tables nft_chain_nat nft_redir",
            ),
            id="no nat in the kernel",
        ),
        pytest.param(
            PODMAN.but(unrouted="nftables: Protocol not supported"),
            Finding(
                Level.MISSING,
                "programs without proxy variables",
                "are not carried to the proxy, and find no network (nftables: Protocol not supported); those that know "
                "proxies do. The kernel has no nftables, or not its part that redirects "
                "(nf_tables nft_chain_nat nft_redir)",
                "sudo modprobe -a nf_tables nft_chain_nat nft_redir on the host",
            ),
            id="no nftables, in a container",
        ),
        pytest.param(
            DEBIAN.but(unrouted="IPv4 route to the loopback device: Operation not permitted"),
            Finding(
                Level.MISSING,
                "programs without proxy variables",
                "are not carried to the proxy, and find no network (IPv4 route to the loopback device: Operation not "
                "permitted); those that know proxies do. A security module or a system call filter forbids it",
                "this is not known yet: please report it with the output of `stockade doctor --json`",
            ),
            id="routes are forbidden",
        ),
        pytest.param(
            DEBIAN.but(proxy="the network proxy needs the package h11, which is not installed"),
            Finding(
                Level.MISSING,
                "the network proxy",
                "the network proxy needs the package h11, which is not installed: no host can be reached",
                "install Stockade with its dependencies",
            ),
            id="the proxy lacks a package",
        ),
        pytest.param(
            UBUNTU.but(programs=TOOLS.but(bwrap="")),
            Finding(
                Level.MISSING,
                "bwrap",
                "the door where AppArmor bars all other programs from user namespaces",
                "sudo apt-get install -y bubblewrap",
            ),
            id="bwrap where AppArmor restricts",
        ),
        pytest.param(
            DEBIAN.but(cgroup=("hugetlb",)),
            Finding(
                Level.MISSING,
                "control groups",
                "no writable group with memory and pids: limits hold for each process alone",
                "systemd-run --user --scope -p Delegate=yes stockade ...",
            ),
            id="control groups",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(listener=EBUSY)),
            Finding(
                Level.MISSING,
                "the supervisor",
                "another one listens around this process, and the kernel allows but one:"
                " unix sockets stay closed, and refused writes are refused without a report",
                "start Stockade outside of what listens: a container runtime, or a sandbox",
            ),
            id="another listener",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(listener=EACCES)),
            Finding(
                Level.MISSING,
                "the supervisor",
                "filters that notify are not allowed here (Permission denied):"
                " unix sockets stay closed, and refused writes are refused without a report",
                "this is not known yet: please report it with the output of `stockade doctor --json`",
            ),
            id="no listener",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(masks=EACCES)),
            Finding(
                Level.MISSING,
                "reports of refused reads",
                "denied reads are refused, but not reported here: /dev/fuse cannot be opened",
                "sudo chmod 666 /dev/fuse",
            ),
            id="a closed /dev/fuse",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(masks=ENOENT), euid=0),
            Finding(
                Level.MISSING,
                "reports of refused reads",
                "denied reads are refused, but not reported here: this kernel has no FUSE",
                "modprobe fuse",
            ),
            id="no /dev/fuse",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(masks=EPERM), marks=("docker",)),
            Finding(
                Level.MISSING,
                "reports of refused reads",
                "denied reads are refused, but not reported here: /dev/fuse cannot be opened",
                "give the container the device, as with docker run --device /dev/fuse",
            ),
            id="no /dev/fuse for a container",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(layers=EINVAL)),
            Finding(
                Level.MISSING,
                "a private /tmp",
                "commands can write in $TMPDIR but not in /tmp, for something is mounted below /tmp",
                "unmount it, or mount it elsewhere; findmnt shows it",
            ),
            id="a mount below /tmp",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(layers=ENODEV)),
            Finding(
                Level.MISSING,
                "a private /tmp",
                "commands can write in $TMPDIR but not in /tmp, for this kernel has no overlayfs",
                "sudo modprobe overlay",
            ),
            id="no overlayfs",
        ),
        pytest.param(
            DEBIAN.but(trials=refused(layers=EPERM)),
            Finding(
                Level.MISSING,
                "a private /tmp",
                "commands can write in $TMPDIR but not in /tmp, for"
                " the kernel lets no user mount overlayfs here (Operation not permitted)",
                "use Linux 5.11 or newer",
            ),
            id="no overlayfs for users",
        ),
    ],
)
def test_a_comfort_that_is_missing_takes_nothing_from_the_walls(facts: Facts, expected: Finding) -> None:
    diagnosis = diagnose(facts)
    assert diagnosis.enforceable is Enforceable.FULL
    assert [finding for finding in diagnosis.findings if finding.level is not Level.OK] == [expected]


def test_bwrap_is_not_missed_where_nothing_needs_it() -> None:
    findings = diagnose(DEBIAN.but(programs=TOOLS.but(bwrap=""))).findings
    assert "bwrap" not in [finding.what for finding in findings]


errors = st.sampled_from([None, 0, -31, -9, EPERM, EACCES, ENOSPC, EINVAL, ENOSYS, EBUSY, 12, 4095])
numbers = st.none() | st.integers(0, 2)
texts = st.sampled_from(["", "unconfined", "docker-default (enforce)", "\x1b[2J"]) | st.text(max_size=8)
machines = st.builds(
    Facts,
    release=texts | st.just("6.1.0"),
    version=texts,
    machine=st.sampled_from(["x86_64", "aarch64", "", "mips"]),
    euid=st.integers(0, 2),
    capabilities=st.sampled_from([0, EVERY_CAPABILITY]),
    distribution=st.builds(Distribution, texts, st.sampled_from(["", "debian", "fedora", "gentoo"])),
    max_user_namespaces=numbers,
    unprivileged_userns_clone=numbers,
    apparmor_restrict_unprivileged_userns=numbers,
    apparmor_profile=texts,
    selinux=st.sampled_from(["", "enforcing", "permissive"]),
    seccomp=numbers,
    chrooted=st.none() | st.booleans(),
    marks=st.lists(st.sampled_from(["docker", "podman", "kubernetes", "lxc", "x"]), max_size=2).map(tuple),
    inside_stockade=st.booleans(),
    absent_calls=st.sampled_from([(), ("openat2",)]),
    trials=st.builds(Trials, *([errors] * 8)),
    walls=st.none() | texts,
    weaker_walls=st.none() | texts,
)


@given(machines)
def test_every_machine_has_a_diagnosis_and_every_trouble_a_remedy(facts: Facts) -> None:
    diagnosis = diagnose(facts)
    for finding in diagnosis.findings:
        assert (finding.level is Level.OK) or (finding.why and finding.remedy), finding
    if facts.walls:
        assert diagnosis.enforceable is not Enforceable.FULL


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((), Enforceable.FULL),
        ((Level.OK, Level.MISSING), Enforceable.FULL),
        ((Level.OK, Level.WEAKER), Enforceable.WEAKER),
        ((Level.WEAKER, Level.BLOCKED), Enforceable.NO),
    ],
)
def test_the_worst_finding_decides(levels: tuple[Level, ...], expected: Enforceable) -> None:
    assert Diagnosis(tuple(Finding(level, "x", "y") for level in levels)).enforceable is expected
