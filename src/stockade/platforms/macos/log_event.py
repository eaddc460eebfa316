"""What the system's log says of a refusal, read from whatever shape it is given in.

The kernel writes one message for each: ``Sandbox: NAME(PID) deny(1) OPERATION TARGET``, and behind it, on a line of its
own, the message of the rule. ``log stream`` shows it as JSON objects (one to a line) or in the manner of syslog.
Messages that repeat soon are counted: ``3 duplicate reports for Sandbox: ...``.

Rules: bytes come in pieces of any size; a line that is not understood is passed over; a line without end is cut off; no
text makes anything here raise. A target is text from inside: it may hold anything, line ends and forged messages too,
so only the last line that holds a message of this session counts, and only the first ``Sandbox:`` before it.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.macos.tag import Tag, decode
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A longer line is none of ours: a path has 1024 bytes, and escapes for each.
LONGEST_LINE: Final = 65536
#: How many lines of syslog one message may have: a path may hold line ends.
_MOST_LINES: Final = 64
_SANDBOX: Final = "Sandbox: "
_DUPLICATE: Final = ("duplicate report for ", "duplicate reports for ")


class Event(Value):
    """One refusal: to which command, by which process, what, and how often."""

    tag: Tag
    process: str
    pid: int
    operation: str
    target: str
    times: int = 1


class LogReader:
    """Puts the pieces of a stream together."""

    def __init__(self, suffix: str) -> None:
        """Read for the session with this suffix."""
        self._suffix = suffix
        self._rest = b""
        self._skipping = False
        self._lines: list[str] = []

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take the next piece; yield the events that it completes."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            if not self._skipping and len(line) <= LONGEST_LINE:
                yield from self._take(line.decode("utf-8", "replace"))
            self._skipping = False
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skipping = b"", True

    def _take(self, line: str) -> Iterator[Event]:
        if line.startswith("{"):
            event = read_event(_message(line), self._suffix)
            if event is not None:
                yield event
            return
        if _SANDBOX in line:
            self._lines.clear()
        self._lines.append(line)
        del self._lines[:-_MOST_LINES]
        if decode(line, self._suffix) is not None:
            event = read_event("\n".join(self._lines), self._suffix)
            self._lines.clear()
            if event is not None:
                yield event


def read_event(message: str, suffix: str) -> Event | None:
    """Read one message, ``None`` if it is no refusal of this session."""
    tag = decode(message, suffix)
    before, found, said = message.partition(_SANDBOX)
    if tag is None or not found:
        return None
    process, mark, rest = said.partition(") deny(")
    name, bracket, pid = process.rpartition("(")
    number, closed, what = rest.partition(") ")
    body = what[: what.rfind("CMD64_")].rstrip("\n ")
    operation, _, target = body.partition(" ")
    if not (mark and bracket and closed and operation and _is_number(pid) and _is_number(number)):
        return None
    return Event(tag, name, int(pid), operation, target.strip(" "), _times(before))


def _message(line: str) -> str:
    import json

    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    message = found.get("eventMessage") if isinstance(found, dict) else None
    return message if isinstance(message, str) else ""


def _times(before: str) -> int:
    for words in _DUPLICATE:
        if before.endswith(words):
            number = before.removesuffix(words).split()[-1:]
            return int(number[0]) if number and _is_number(number[0]) else 1
    return 1


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10  # noqa: PLR2004 - no pid or count is longer
