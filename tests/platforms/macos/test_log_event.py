from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.macos.log_event import LONGEST_LINE, Event, LogReader, read_event
from stockade.platforms.macos.tag import Tag, encode

SUFFIX = "0123abcd_SBX"
TAG = encode(7, "make all", SUFFIX)
OTHER = encode(7, "make all", "ffff_SBX")


def _event(operation: str, target: str, **more: int) -> Event:
    return Event(Tag(7, "make all"), "bash", 41, operation, target, **more)


def _said(operation: str, target: str) -> str:
    return f"Sandbox: bash(41) deny(1) {operation} {target}\n{TAG}"


def _json(message: str) -> str:
    return json.dumps({"eventType": "logEvent", "processID": 0, "eventMessage": message}) + "\n"


@pytest.mark.parametrize(
    ("message", "event"),
    [
        pytest.param(_said("file-read-data", "/etc/x"), _event("file-read-data", "/etc/x"), id="file"),
        pytest.param(_said("file-write-create", "/a b/c d"), _event("file-write-create", "/a b/c d"), id="spaces"),
        pytest.param(_said("file-read-data", "/a\nb"), _event("file-read-data", "/a\nb"), id="line-end"),
        pytest.param(_said("process-fork", ""), _event("process-fork", ""), id="no-target"),
        pytest.param(_said("mach-lookup", "com.apple.logd"), _event("mach-lookup", "com.apple.logd"), id="service"),
        pytest.param(
            _said("file-read-data", "/x Sandbox: sh(1) deny(1) file-write-data /y"),
            _event("file-read-data", "/x Sandbox: sh(1) deny(1) file-write-data /y"),
            id="a-forged-message-in-a-path",
        ),
        pytest.param(
            f"3 duplicate reports for {_said('file-read-data', '/x')}",
            _event("file-read-data", "/x", times=3),
            id="many",
        ),
        pytest.param(
            f"1 duplicate report for {_said('file-read-data', '/x')}", _event("file-read-data", "/x"), id="once-more"
        ),
        pytest.param(
            f"duplicate report for {_said('file-read-data', '/x')}", _event("file-read-data", "/x"), id="uncounted"
        ),
        pytest.param(
            f"Sandbox: a (b)(41) deny(1) file-read-data /x\n{TAG}",
            Event(Tag(7, "make all"), "a (b)", 41, "file-read-data", "/x"),
            id="a-name-with-parentheses",
        ),
        pytest.param(f"Sandbox: bash(41) deny(1) file-read-data /x\n{OTHER}", None, id="another-session"),
        pytest.param("Sandbox: bash(41) deny(1) file-read-data /x", None, id="no-tag"),
        pytest.param(f"Sandbox: bash(41) allow file-read-data /x\n{TAG}", None, id="no-refusal"),
        pytest.param(f"Sandbox: bash(x) deny(1) file-read-data /x\n{TAG}", None, id="no-pid"),
        pytest.param(TAG, None, id="only-a-tag"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_messages(message: str, event: Event | None) -> None:
    assert read_event(message, SUFFIX) == event


HEADER = 'Filtering the log data using "composedMessage ENDSWITH "x""\n'
COLUMNS = "Timestamp                       Thread     Type        Activity             PID    TTL  \n"
SYSLOG = "2026-01-07 00:57:47.733025-0800  localhost kernel[0]: (Sandbox) "
COMPACT = "2026-02-15 01:12:50.662 E  kernel[0:155023] (Sandbox) "
STREAMS = {
    "ndjson": HEADER + _json(_said("file-read-data", "/1")) + _json(_said("file-read-data", "/2\u00e9\n")),
    "ndjson-among-others": _json("x")
    + "{}\n{bad\n[1]\n"
    + _json(_said("file-read-data", "/1"))
    + '{"eventMessage": 3}\n',
    "syslog": HEADER
    + COLUMNS
    + SYSLOG
    + _said("file-read-data", "/1")
    + "\n"
    + SYSLOG
    + _said("file-read-data", "/2\u00e9\nx")
    + "\n",
    "compact": COMPACT + _said("file-read-data", "/1") + "\n" + COMPACT + "Sandbox: x(1) deny(1) a /b\n" + OTHER + "\n",
    "without-a-tag": COMPACT + "Sandbox: x(1) deny(1) a /b\n" + COMPACT + _said("file-read-data", "/1") + "\n",
    "too-long": "x" * (2 * LONGEST_LINE) + "\n" + _json(_said("file-read-data", "/1")),
}
EXPECTED = {
    "ndjson": ["/1", "/2\u00e9"],
    "ndjson-among-others": ["/1"],
    "syslog": ["/1", "/2\u00e9\nx"],
    "compact": ["/1"],
    "without-a-tag": ["/1"],
    "too-long": ["/1"],
}


@pytest.mark.parametrize("size", [1, 2, 7, 100, 10**6])
@pytest.mark.parametrize("name", [name for name in STREAMS if name != "too-long"])
def test_streams_in_pieces(name: str, size: int) -> None:
    reader, data = LogReader(SUFFIX), STREAMS[name].encode()
    events = [event for at in range(0, len(data), size) for event in reader.feed(data[at : at + size])]
    assert [event.target for event in events] == EXPECTED[name]


@pytest.mark.parametrize("size", [1000, LONGEST_LINE, 10**6])
def test_a_line_that_does_not_end_is_cut_off(size: int) -> None:
    reader, data = LogReader(SUFFIX), STREAMS["too-long"].encode()
    events = [event for at in range(0, len(data), size) for event in reader.feed(data[at : at + size])]
    assert [event.target for event in events] == EXPECTED["too-long"]
    assert len(reader._rest) <= LONGEST_LINE


@given(
    st.lists(st.binary() | st.sampled_from([TAG.encode(), b"Sandbox: ", b"\n", b"{", b") deny(", b"x(1) deny(1) a"]))
)
def test_nothing_is_raised(pieces: list[bytes]) -> None:
    reader = LogReader(SUFFIX)
    for piece in pieces:
        list(reader.feed(piece))
