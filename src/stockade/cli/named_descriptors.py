"""Descriptors that somebody passes to a command on purpose: those that a word of it names.

A shell makes ``/dev/fd/63`` of ``<(...)`` and ``>(...)`` and leaves the descriptor open for the program that it starts.
What else is open by accident stays outside, as always.

Rules: only a pipe without a name goes in. A directory would lead around every wall. A file can be changed through its
descriptor in ways that its path does not allow, and can as well be named by its path. A terminal or a socket reaches
farther than the data that it was opened for.
"""

from __future__ import annotations

import os
import re
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import StockadeError
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable

#: A whole word, or the value of an option (curl's is ``@FILE``): in the midst of a text it is the text's own matter.
_NAMED: Final = re.compile(r"(?:\A|[=@])(/dev/fd/|/proc/self/fd/)(\d{1,9})\Z", re.ASCII)
_LAST_STREAM: Final = 2
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISREG, "a file"),
    (stat.S_ISFIFO, "a pipe with a name"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device or a terminal"),
)


def named_pipes(words: Iterable[str]) -> tuple[int, ...]:
    """Return the descriptors that these words name and that were left open for us; programs of ours do not get them.

    Raises StockadeError for one that is no pipe.
    """
    found: dict[int, None] = {}
    for word in words:
        named = _NAMED.search(word)
        number = int(named[2]) if named else 0
        # What this process has opened itself is not inherited by what it starts.
        if named and number > _LAST_STREAM and _is_left_open(number):
            _require_pipe(number, named[1] + named[2])
            found[number] = None
    for number in found:
        os.set_inheritable(number, False)
    return tuple(found)


def _is_left_open(number: int) -> bool:
    try:
        return os.get_inheritable(number)
    except OSError:
        return False


def _require_pipe(number: int, name: str) -> None:
    mode = os.fstat(number).st_mode
    if stat.S_ISFIFO(mode) and not _has_name(number):
        return
    kind = next((words for test, words in _KINDS if test(mode)), "something else")
    message = f"descriptor {number}, which the command names as {name}, is {kind}: only pipes can be passed inside"
    raise StockadeError(message, "name the file by its path, or send it through a pipe, as in <(cat FILE)")


def _has_name(pipe: int) -> bool:
    """Tell whether a pipe is a file of some directory, where the kernel says so."""
    with suppress(OSError):
        return not os.readlink(f"/proc/self/fd/{pipe}").startswith("pipe:[")
    return False
