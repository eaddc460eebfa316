"""How to tell whether a file changed, without reading it."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import os

Signature: TypeAlias = "tuple[int, int, int, int, int]"

#: Nanoseconds; the clock of file systems has ticks of up to ten milliseconds.
TICK: Final = 20_000_000


def signature_of(status: os.stat_result) -> Signature:
    """Return what changes with every change of a file; a command can set all of it but the last, the ctime."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
