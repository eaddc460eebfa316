from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.linux.facts import Facts, container_marks


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.1.0-18-amd64", (6, 1)),
        ("5.12", (5, 12)),
        ("5.12-rc3", (5, 12)),
        ("6.18.44-fc-v490", (6, 18)),
        ("4.4.0", (4, 4)),
        ("", None),
        ("6", None),
        ("six.one", None),
        ("6.x1", None),
    ],
)
def test_kernel(release: str, expected: tuple[int, int] | None) -> None:
    assert Facts(release=release).kernel == expected


@given(st.text())
def test_no_release_is_too_odd(release: str) -> None:
    facts = Facts(release=release)
    assert facts.kernel is None or len(facts.kernel) == 2


@pytest.mark.parametrize(
    ("release", "version", "expected"),
    [
        ("4.4.0", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016", True),
        ("4.19.0-gvisor", "", True),
        ("4.4.0", "Linux version 4.4.0 (build@machine) #1 SMP", False),
    ],
)
def test_gvisor(release: str, version: str, expected: bool) -> None:  # noqa: FBT001
    assert Facts(release=release, version=version).gvisor is expected


@pytest.mark.parametrize(
    ("files", "cgroup", "environment", "kind"),
    [
        pytest.param((), "0::/user.slice/user-1000.slice\n", {}, "", id="none"),
        pytest.param(("/.dockerenv",), "0::/\n", {}, "docker", id="docker by its file"),
        pytest.param((), "4:memory:/docker/0123\n", {}, "docker", id="docker by its group"),
        pytest.param(("/run/.containerenv",), "", {"container": "podman"}, "podman", id="podman"),
        pytest.param((), "", {"container": "oci"}, "docker", id="oci"),
        pytest.param((), "0::/machine.slice/libpod-1.scope", {}, "podman", id="podman by its group"),
        pytest.param(
            ("/.dockerenv",), "", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes", id="kubernetes in docker"
        ),
        pytest.param((), "0::/kubepods/burstable/pod1/x", {}, "kubernetes", id="kubernetes by its group"),
        pytest.param((), "", {"container": "lxc"}, "lxc", id="lxc"),
        pytest.param((), "", {"container": "systemd-nspawn"}, "systemd-nspawn", id="nspawn"),
        pytest.param((), "0::/system.slice/containerd.service/x", {}, "container", id="containerd"),
        pytest.param((), "", {"container": "other"}, "container", id="declared"),
    ],
)
def test_containers_by_their_marks(files: tuple[str, ...], cgroup: str, environment: dict[str, str], kind: str) -> None:
    marks = container_marks(files=files, cgroup=cgroup, environment=environment)
    assert Facts(marks=marks).container == kind


def test_who_rules_for_the_unprivileged_do_not_hold_for() -> None:
    assert Facts(euid=0, capabilities=1 << 21).administers
    assert not Facts(euid=0, capabilities=0xA80425FB).administers, "root in a container has no CAP_SYS_ADMIN"
