"""The texts of remedies; which barrier is met on which machine is tested with ``diagnosis``."""

from __future__ import annotations

from errno import EIO, ENOSPC, EPERM

import pytest

from stockade.platforms.linux.barrier import Barrier, barrier, container_remedy
from stockade.platforms.linux.facts import Facts, Programs

RESTRICTED = Facts(
    release="6.8.0", euid=1000, maker="/usr/bin/python3.12", apparmor_restrict_unprivileged_userns=1, seccomp=0
)


def test_the_whole_remedy_against_apparmor() -> None:
    assert barrier(RESTRICTED, "user_namespace", EPERM) == Barrier(
        "AppArmor keeps user namespaces from programs without a profile"
        " (kernel.apparmor_restrict_unprivileged_userns=1)",
        """\
let only /usr/bin/python3.12 make them, and what it runs:
printf '%s\\n' 'abi <abi/4.0>,' 'profile stockade "/usr/bin/python3.12" flags=(unconfined) { userns, }' \
| sudo tee /etc/apparmor.d/stockade
sudo apparmor_parser -r /etc/apparmor.d/stockade
or let every program make them:
sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
to keep it: echo 'kernel.apparmor_restrict_unprivileged_userns = 0' | sudo tee -a /etc/sysctl.d/90-stockade.conf""",
    )


def test_a_bubblewrap_that_did_not_help_is_named() -> None:
    found = barrier(RESTRICTED.but(programs=Programs(bwrap="/usr/bin/bwrap")), "id_map", EPERM)
    assert found.why.endswith("; bubblewrap was tried too, and hands no right on to what it starts")


def test_root_needs_no_sudo() -> None:
    found = barrier(Facts(euid=0, max_user_namespaces=0), "user_namespace", ENOSPC)
    assert found.remedy.splitlines()[0] == "sysctl -w user.max_user_namespaces=15000"


def test_an_odd_number_is_told_in_the_kernels_words() -> None:
    assert barrier(Facts(), "mounts", EIO) == Barrier(
        "the kernel answers: Input/output error; none of the known reasons fits",
        "look for the refusal of mounts in `dmesg` and `journalctl -k`",
    )


@pytest.mark.parametrize(
    ("marks", "selinux", "text"),
    [
        ((), False, ""),
        (("docker",), False, "--security-opt systempaths=unconfined\nthis takes"),
        (("docker",), True, "--security-opt systempaths=unconfined --security-opt label=disable\nthis takes"),
        (("podman",), True, "--security-opt label=disable --security-opt unmask=ALL\nthis takes"),
        (("systemd-nspawn",), False, "systemd-nspawn --private-users=pick"),
    ],
)
def test_container_remedy(marks: tuple[str, ...], selinux: bool, text: str) -> None:  # noqa: FBT001
    remedy = container_remedy(Facts(marks=marks), selinux=selinux)
    assert text in remedy
    assert bool(remedy) == bool(marks)
