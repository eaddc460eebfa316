"""Files that a shell may be named to read, and that hold what the line itself says: its input, a pipe, its variables.

A file of another name is a script, and a script may hold anything: no rule looks into it.
"""

from __future__ import annotations

import posixpath
import re

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.loose_word import fits

if TYPE_CHECKING:
    from stockade.tool.loose_word import LooseWord

_INPUT: Final = re.compile(r"-|/dev/(stdin|tty|pts|fd)(/.*)?|/proc/.*")
# By these names such a file is reached from its directory (`cd /dev/fd; . ./0`), or by a link (/proc/self/root/dev).
_NAMES: Final = ("stdin", "-", "0", "environ", "cmdline", "comm", "tty")


def may_be_input(word: LooseWord) -> bool:
    """Say whether a file that a shell reads may be what it is given, or what another command says."""
    if not word.literal:
        return "<(" in word.spelling or not word.name or any(fits(last, word.name) for last in _NAMES)
    return is_input(word.shape)


def is_input(path: str) -> bool:
    """Say whether a path names what a shell is given."""
    path = re.sub(r"^/+", "/", posixpath.normpath(path)) if path else path
    last = posixpath.basename(path)
    return bool(_INPUT.fullmatch(path)) or last in _NAMES or last.isdigit()
