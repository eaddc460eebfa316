"""What all jails of a session share: one private localhost and one set of System V objects.

These namespaces belong to a user namespace that lies above every jail's. So a new jail (for another plan) joins the
localhost of the one before, and root inside a jail has no rights over any of it. The name of the machine belongs to
that user namespace, too, so nobody inside can change it, and each jail may have a copy of its own.

Rules: entered before a jail's own namespaces are made; the owner holds the descriptors, so that they outlive jails. It
holds no more than it must, for each sandbox of a program counts against that program's limit.
Source of truth: setns(2), ioctl_ns(2), user_namespaces(7), network_namespaces(7).
"""

from __future__ import annotations

import os

from stockade.platforms.linux import kernel

_SHARED = (
    (b"net", kernel.CLONE_NEWNET),
    (b"ipc", kernel.CLONE_NEWIPC),
)
_ANY_PORT = b"/proc/sys/net/ipv4/ip_unprivileged_port_start"


def unshare() -> None:
    """Make them, with a mount namespace to work in; ids are not mapped yet."""
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS)
    kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)


def furnish() -> None:
    """Make the private localhost usable: any port may be listened on, for nobody else is there."""
    kernel.raise_loopback()
    file = os.open(_ANY_PORT, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, b"0")
    finally:
        os.close(file)


def descriptors() -> tuple[int, ...]:
    """Open them, for whoever comes later."""
    return tuple(os.open(b"/proc/self/ns/" + name, os.O_RDONLY | os.O_CLOEXEC) for name, _ in _SHARED)


def enter(shared: tuple[int, ...]) -> None:
    """Enter those that an earlier jail of the session made, and make the rest anew."""
    kernel.enter_owner(shared[0])
    for descriptor, (_, kind) in zip(shared, _SHARED, strict=True):
        kernel.setns(descriptor, kind)
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS)
