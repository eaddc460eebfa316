"""What stands in the way of the walls: from a refused step to its cause and the exact remedy.

The kernel says "Operation not permitted" for most of these, so the cause is told from the readings around the
refusal. Rules: certain causes come before likely ones; a remedy that weakens something else says so;
where no cause is known, that is said instead of a guess.
Source of truth: user_namespaces(7), namespaces(7), seccomp(2), the documentation of Docker, Podman,
Kubernetes and AppArmor.
"""

from __future__ import annotations

import os
from errno import EACCES, EINVAL, ENOSPC, ENOSYS, EPERM, EUSERS

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.distribution import as_root
from stockade.platforms.linux.facts import FILTERED
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.platforms.linux.facts import Facts

WEAKER_SETTING: Final = 'set "sandbox": {"enableWeakerNestedSandbox": true} in the settings'
WEAKER_LOSS: Final = (
    "commands see the processes around them: names, arguments and connections, but no files, memory or variables"
)
_NAMESPACES: Final = 15000
_PROFILE: Final = "/etc/apparmor.d/stockade"
_KEPT: Final = "/etc/sysctl.d/90-stockade.conf"
_OPTIONS: Final = {
    "docker": "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
    " --security-opt systempaths=unconfined",
    "podman": "podman run --security-opt seccomp=unconfined --security-opt label=disable --security-opt unmask=ALL",
    "kubernetes": "hostUsers: false, and in the container's securityContext: {procMount: Unmasked,"
    " seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}}",
    "lxc": "lxc config set CONTAINER security.nesting=true",
    "systemd-nspawn": "systemd-nspawn --private-users=pick --system-call-filter='@mount @keyring'",
}


class Barrier(Value):
    """Why a step was refused, and what to do about it, one line each."""

    why: str
    remedy: str


def barrier(facts: Facts, step: str, error: int) -> Barrier:
    """Return the cause of a refused step, by its number as ``facts`` has it."""
    if error < 0:
        return _filtered(facts, f"a system call filter killed the process (signal {-error})")
    if error in {ENOSPC, EUSERS}:
        return _exhausted(facts, step)
    if error in {EINVAL, ENOSYS}:
        return _not_built_in(facts)
    if error in {EPERM, EACCES}:
        return _forbidden(facts, step, error) or _unknown(facts, step, error)
    return _unknown(facts, step, error)


def _forbidden(facts: Facts, step: str, error: int) -> Barrier | None:
    if facts.unprivileged_userns_clone == 0 and not facts.administers:
        return Barrier(
            "kernel.unprivileged_userns_clone=0 reserves user namespaces for root",
            _sysctl(facts, "kernel.unprivileged_userns_clone", 1),
        )
    first = step == "user_namespace"
    filtered = facts.seccomp == FILTERED
    restricted = bool(facts.apparmor_restrict_unprivileged_userns) and not facts.administers
    # A container's filter answers before AppArmor is asked; once past the first step, no filter was in the way.
    if restricted and not (first and filtered and facts.container):
        return _restricted(facts)
    if first and facts.chrooted:
        return Barrier(
            "this process runs in a chroot, where the kernel refuses user namespaces",
            "use pivot_root instead of chroot: start it by a container engine or systemd-nspawn",
        )
    if first and filtered:
        return _filtered(facts, "a system call filter (seccomp) refuses it")
    return _security_module(facts, error) or (
        _filtered(facts, "a system call filter (seccomp) refuses it") if filtered else None
    )


def _security_module(facts: Facts, error: int) -> Barrier | None:
    if facts.apparmor_profile not in {"", "unconfined"}:
        return _confined(facts)
    return _labelled(facts) if facts.selinux == "enforcing" and error == EACCES else None


def _exhausted(facts: Facts, step: str) -> Barrier:
    if facts.max_user_namespaces == 0:
        return Barrier(
            "user.max_user_namespaces=0 switches user namespaces off",
            _sysctl(facts, "user.max_user_namespaces", _NAMESPACES),
        )
    if step == "user_namespace":
        limit = f" of {facts.max_user_namespaces}" if facts.max_user_namespaces else ""
        return Barrier(
            f"the limit{limit} on user namespaces is reached, or they are nested 32 deep",
            "end other sandboxes, start from fewer levels of nesting, or raise the limit:\n"
            + _sysctl(facts, "user.max_user_namespaces", 2 * (facts.max_user_namespaces or _NAMESPACES)),
        )
    return Barrier(
        "a limit on namespaces of another kind is reached or 0",
        "see which is too small: sysctl -a | grep 'user.max_.*_namespaces'\n"
        + _sysctl(facts, "user.max_net_namespaces", _NAMESPACES),
    )


def _not_built_in(facts: Facts) -> Barrier:
    if facts.seccomp == FILTERED and facts.container:
        return _filtered(facts, "a system call filter hides the call")
    return Barrier(
        f"the kernel {facts.release} was built without it",
        "use a kernel with CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, CONFIG_UTS_NS, CONFIG_CGROUPS"
        " and CONFIG_SECCOMP_FILTER",
    )


def _restricted(facts: Facts) -> Barrier:
    rule = f'profile stockade "{facts.maker}" flags=(unconfined) {{ userns, }}'
    lines = [
        f"{_host(facts)}let only {facts.maker} make them, and what it runs:",
        f"printf '%s\\n' 'abi <abi/4.0>,' '{rule}' | {as_root('tee', root=facts.root)} {_PROFILE}",
        as_root(f"apparmor_parser -r {_PROFILE}", root=facts.root),
        "or let every program make them:",
        _sysctl(facts.but(marks=()), "kernel.apparmor_restrict_unprivileged_userns", 0),
    ]
    tried = "; bubblewrap was tried too, and hands no right on to what it starts" if facts.programs.bwrap else ""
    return Barrier(
        "AppArmor keeps user namespaces from programs without a profile"
        f" (kernel.apparmor_restrict_unprivileged_userns=1){tried}",
        "\n".join(lines),
    )


def _confined(facts: Facts) -> Barrier:
    name = facts.apparmor_profile.split(" ")[0]
    return Barrier(
        f"the AppArmor profile {name} forbids it",
        container_remedy(facts) or f"allow `userns,` and `mount,` in the profile {name}, or leave it",
    )


def _labelled(facts: Facts) -> Barrier:
    if facts.container:
        return Barrier("SELinux forbids it to this container", container_remedy(facts, selinux=True))
    return Barrier(
        "SELinux forbids it",
        "see the refusal and make a rule of it:\n"
        + as_root("ausearch -m avc -ts recent", root=facts.root)
        + " | audit2allow -M stockade\n"
        + as_root("semodule -i stockade.pp", root=facts.root),
    )


def _filtered(facts: Facts, why: str) -> Barrier:
    if facts.container:
        return Barrier(f"{why}; it is part of this container ({facts.container})", container_remedy(facts))
    return Barrier(
        f"{why}; it was put there by the program that started this one",
        "start Stockade outside that program; of a systemd service, take out RestrictNamespaces= and SystemCallFilter=",
    )


def _unknown(facts: Facts, step: str, error: int) -> Barrier:
    return Barrier(
        f"the kernel answers: {os.strerror(error)}; none of the known reasons fits",
        container_remedy(facts) or f"look for the refusal of {step} in `dmesg` and `journalctl -k`",
    )


def container_remedy(facts: Facts, *, selinux: bool = False) -> str:
    """Return how a container is started so that walls can be built in it; nothing if this is none."""
    kind = facts.container
    if not kind:
        return ""
    if kind not in _OPTIONS:
        return "let its manager allow user namespaces, mounts and an unmasked /proc inside"
    options = _OPTIONS[kind]
    if kind == "docker" and selinux:
        options += " --security-opt label=disable"
    lines = [f"start the container with: {options}"]
    if kind in {"docker", "podman", "kubernetes"}:
        lines.append("this takes filters off the container itself, so run nothing else in it")
    if kind in {"docker", "podman"}:
        lines.append("--privileged works as well, but also gives it the host's devices and every capability")
    return "\n".join(lines)


def _sysctl(facts: Facts, name: str, value: int) -> str:
    """Return the commands that set a sysctl, now and after a restart."""
    return (
        f"{_host(facts)}{as_root(f'sysctl -w {name}={value}', root=facts.root)}\n"
        f"to keep it: echo '{name} = {value}' | {as_root('tee', root=facts.root)} -a {_KEPT}"
    )


def _host(facts: Facts) -> str:
    return "on the host of this container: " if facts.container else ""
