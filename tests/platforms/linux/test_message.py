from __future__ import annotations

import errno

import pytest

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Packet, decode, encode
from stockade.platforms.linux.message import Build, Ended, Failed, Refused, Run


def _values(thing: object) -> dict[str, object]:
    return {name: getattr(thing, name) for name in type(thing).__slots__}  # type: ignore[attr-defined] # all have them


MOUNTS = [(b"writable", b"/w", b""), (b"hidden", b"/h \xff\n", b"")]


@pytest.mark.parametrize(
    ("said", "number"),
    [
        pytest.param(Build([], []), 0, id="build-nothing"),
        pytest.param(
            Build(
                MOUNTS,
                [b"12345678"],
                fresh_processes=False,
                confinement=b"all",
                sockets=[b"/s", b""],
                denied=[b"/d"],
                unlisted=[[b"/r \xff", b".git", b""], [b"/q"]],
                private=1,
            ),
            0,
            id="build",
        ),
        pytest.param(Run([b"true"], {}, b"/"), 1, id="run"),
        pytest.param(Run([b"a", b""], {b"A": b"=1=", b"B": b""}, b"/d", 3, [(7, -1), (0, 9)], 4), 2, id="run-all"),
        pytest.param(Ended(9, 1, 2, 3, alone=False), 3, id="ended"),
        pytest.param(Refused(b"write", b"/x\xff\n", 7), 5, id="refused"),
        pytest.param(Failed(errno.EPERM, b"mount", b"/x"), 4, id="failed"),
    ],
)
def test_each_message_is_read_as_it_was_written(said: Build | Run | Ended | Failed | Refused, number: int) -> None:
    packet = (
        said.packet(number, ())
        if isinstance(said, Run)
        else (said.packet() if isinstance(said, Build) else said.packet(number))
    )
    arrived, _ = decode(encode(packet))
    assert arrived.number == number
    assert _values(type(said).read(arrived)) == _values(said)


@pytest.mark.parametrize("private", [(), (8,)])
@pytest.mark.parametrize("terminals", [(), (9,)])
def test_that_a_jail_stands_is_read_as_it_was_written(private: tuple[int, ...], terminals: tuple[int, ...]) -> None:
    said = message.Ready(b"alone", b"", (7,), terminals, private)
    arrived, _ = decode(encode(said.packet()))
    arrived.descriptors = said.packet().descriptors
    assert _values(message.Ready.read(arrived)) == _values(said)


def test_passed_descriptors_are_read_as_they_were_written() -> None:
    run = Run([b"cat"], {}, b"/", groups=1)
    run.passed = [63, 3]
    arrived = Run.read(decode(encode(run.packet(1, ())))[0])
    assert (arrived.groups, arrived.passed) == (1, [63, 3])


def test_a_signal_is_read_as_it_was_written() -> None:
    assert message.read_signal(message.signal_packet(1, 15)) == 15


def test_covers_are_read_as_they_were_written() -> None:
    covered = message.Covered.read(message.Covered([b"/a", b"/b\n"], b"/link").packet())
    assert (covered.uncovered, covered.hopeless) == ([b"/a", b"/b\n"], b"/link")


def test_guests_are_read_as_they_were_written() -> None:
    packets = (message.guests_packet(7, receiving=True), message.guests_packet(0, receiving=False))
    assert [message.read_guests(packet) for packet in packets] == [(7, True), (0, False)]


@pytest.mark.parametrize(
    ("failed", "expected"),
    [
        pytest.param(Failed(errno.ENOENT, b"exec", b"x"), ("exec: x: No such file or directory", 127), id="no program"),
        pytest.param(Failed(errno.EACCES, b"exec", b"x"), ("exec: x: Permission denied", 126), id="not runnable"),
        pytest.param(Failed(errno.ENOENT, b"mount"), ("mount: No such file or directory", 125), id="our own"),
        pytest.param(Failed(0, b"fork"), ("fork: unexpected", 125), id="unexpected"),
    ],
)
def test_a_failure_has_words_and_a_status(failed: Failed, expected: tuple[str, int]) -> None:
    assert (failed.text(), failed.exit_status()) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(OSError(13, "no", b"/p"), (13, b"s", b"/p"), id="with-path"),
        pytest.param(OSError(13, "no"), (13, b"s", b""), id="without"),
        pytest.param(ValueError("bad"), (0, b"s", b"ValueError('bad')"), id="unexpected"),
    ],
)
def test_an_exception_is_described(error: Exception, expected: tuple[int, bytes, bytes]) -> None:
    failed = Failed.of(b"s", error)
    assert (failed.error, failed.step, failed.path) == expected


@pytest.mark.parametrize("reader", [Build.read, Run.read, Failed.read], ids=["build", "run", "failed"])
def test_a_broken_body_is_refused(reader: object) -> None:
    assert callable(reader)
    with pytest.raises(ValueError, match=r"."):
        reader(Packet(b"x", 0, b"\xff\xff\xff\xffshort"))
