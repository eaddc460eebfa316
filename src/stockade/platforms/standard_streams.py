"""Standard streams that somebody has closed.

A program started with ``<&-`` or ``>&-`` opens its next file as descriptor 0, 1 or 2, and would hand that file to the
command as a standard stream. So each closed one is taken first, by something that fails to read or write exactly as a
closed descriptor does: the command notices no difference.
"""

from __future__ import annotations

import os

_MODES = (os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)


def hold_standard_streams() -> None:
    """Fill the places of standard streams that are closed. To be called before anything is opened for long."""
    for number, mode in enumerate(_MODES):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is this one, since those below are open.
            os.open(os.devnull, mode)
