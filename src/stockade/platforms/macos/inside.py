"""Whether this process is confined by Seatbelt already: then the kernel takes no second profile.

The variable of commands inside is asked first. It proves nothing, but it saves loading a library. A terminal that is
confined itself is no matter of these words.

Source of truth: ``sandbox_check`` of libSystem, as Chromium calls it to ask about its own process.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def is_inside(environment: Mapping[str, str]) -> bool:
    """Tell whether walls of ours are around this process, by the kernel's word and the variable of commands."""
    return environment.get("SANDBOX_RUNTIME") == "1" and _is_confined()


def _is_confined() -> bool:
    import ctypes

    try:
        check = ctypes.CDLL(None).sandbox_check
    except (OSError, AttributeError):
        return False
    return bool(check(os.getpid(), None, 0) == 1)
