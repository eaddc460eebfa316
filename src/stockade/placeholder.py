"""What a placeholder looks like: a name on the host's disk that a sandbox keeps from being made while commands run.

It is a socket node that nobody may open, which git does not see and no program reads. Two names are read by git, inside
and on the host, whenever they are there, ``.git/commondir`` and ``.git/config.worktree``, and without them it gives up:
their placeholders are files that say what git would assume anyway.

To whoever looks for settings, protected files or anything else, nothing is there.
"""

from __future__ import annotations

import stat

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import os

#: Names whose placeholder is a file, and what it must hold to do no harm.
CONTENTS: Final = {"commondir": b".\n", "config.worktree": b"#\n"}
FILE_MODE: Final = 0o444


def is_placeholder(status: os.stat_result, name: str = "") -> bool:
    """Tell from an ``lstat`` of a name whether it is only kept."""
    content = CONTENTS.get(name)
    if content is None:
        return status.st_mode == stat.S_IFSOCK and not status.st_size
    return status.st_mode == stat.S_IFREG | FILE_MODE and status.st_size == len(content)
