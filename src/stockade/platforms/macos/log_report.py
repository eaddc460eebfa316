"""An event of the log becomes a report of the walls, or nothing where it is noise.

Noise is what programs ask for without need of it and without harm from a refusal: services that libraries look up at
their start, names that are resolved past the proxies (which is refused to every program, and they go on by the
proxies), facts about other processes.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.backend import Report

if TYPE_CHECKING:
    from stockade.platforms.macos.log_event import Event

_QUIET_OPERATIONS: Final = (
    "mach-",
    "sysctl-",
    "iokit-",
    "ipc-",
    "process-info",
    "user-preference",
    "system-",
    "signal",
    "file-ioctl",
    "distributed-notification",
    "network-bind",
    "network-inbound",
)
_QUIET_TARGETS: Final = ("/dev/dtracehelper", "/dev/autofs_nowait", "/private/var/run/mDNSResponder")
#: What a report calls an operation of Seatbelt's.
_NAMES: Final = {
    "file-read-data": "read",
    "file-read-metadata": "read",
    "file-read-xattr": "read",
    "file-write-create": "create",
    "file-write-unlink": "delete",
    "file-write-data": "write",
    "file-write-mode": "metadata",
    "file-write-owner": "metadata",
    "file-write-flags": "metadata",
    "file-write-times": "metadata",
    "file-write-xattr": "metadata",
    "file-write-acl": "metadata",
    "file-write-setugid": "metadata",
    "process-exec": "execute",
    "process-exec*": "execute",
}


def report_of(event: Event) -> Report | None:
    """Return what is to be told of an event, ``None`` if nothing is."""
    if event.operation.startswith(_QUIET_OPERATIONS) or event.target in _QUIET_TARGETS:
        return None
    if event.operation == "network-outbound":
        # A destination is told apart from a path by its slash. The proxies tell what they refused themselves; a
        # connection past them says only that a program knows no proxy.
        path = event.target.removeprefix("path:").strip('"')
        return Report(event.tag.ticket, "unix-connect", path, event.times) if path.startswith("/") else None
    operation = _NAMES.get(event.operation)
    if operation is None and event.operation.startswith("file-"):
        operation = "write" if event.operation.startswith("file-write") else "read"
    if operation is None or not event.target.startswith("/"):
        return None
    return Report(event.tag.ticket, operation, event.target, event.times)
