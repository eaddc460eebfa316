from __future__ import annotations

import errno

import pytest

from stockade.platforms.linux import message
from stockade.platforms.linux.channel import Packet, decode, encode
from stockade.platforms.linux.message import Build, Ended, Failed, Run


def _values(thing: object) -> dict[str, object]:
    return {name: getattr(thing, name) for name in type(thing).__slots__}  # type: ignore[attr-defined] # all have them


MOUNTS = [(b"writable", b"/w", b""), (b"hidden", b"/h \xff\n", b"")]


@pytest.mark.parametrize(
    ("said", "number"),
    [
        pytest.param(Build([], []), 0, id="build-nothing"),
        pytest.param(Build(MOUNTS, [b"12345678"], fresh_processes=False, listen=True), 0, id="build"),
        pytest.param(Run([b"true"], {}, b"/"), 1, id="run"),
        pytest.param(Run([b"a", b""], {b"A": b"=1=", b"B": b""}, b"/d", 3, [(7, -1), (0, 9)], MOUNTS), 2, id="run-all"),
        pytest.param(Ended(9, 1, 2, 3, alone=False), 3, id="ended"),
        pytest.param(Failed(errno.EPERM, b"mount", b"/x"), 4, id="failed"),
    ],
)
def test_each_message_is_read_as_it_was_written(said: Build | Run | Ended | Failed, number: int) -> None:
    packet = (
        said.packet(number, ())
        if isinstance(said, Run)
        else (said.packet() if isinstance(said, Build) else said.packet(number))
    )
    arrived, _ = decode(encode(packet))
    assert arrived.number == number
    assert _values(type(said).read(arrived)) == _values(said)


def test_a_run_with_mounts_is_told_apart_for_its_copy_is_not_used_again() -> None:
    plain, special = Run([b"x"], {}, b"/"), Run([b"x"], {}, b"/", mounts=MOUNTS)
    assert [run.packet(1, ()).kind for run in (plain, special)] == [message.RUN, message.RUN_WITH_MOUNTS]


def test_a_signal_is_read_as_it_was_written() -> None:
    assert message.read_signal(message.signal_packet(1, 15)) == 15


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
