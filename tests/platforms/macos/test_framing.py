from __future__ import annotations

import os
import socket
import threading

import pytest

from stockade.platforms.macos import framing


@pytest.mark.parametrize(
    "message",
    [
        pytest.param({}, id="empty"),
        pytest.param({"text": "caf\u00e9 \udcff \n"}, id="any-text"),
        pytest.param({"profile": "x" * 600_000}, id="large"),
    ],
)
def test_messages_arrive_whole(message: dict[str, object]) -> None:
    here, there = socket.socketpair()
    with here, there:
        sender = threading.Thread(target=framing.send, args=(here, message))
        sender.start()
        assert framing.receive(there) == (message, [])
        sender.join()


def test_descriptors_travel_and_are_not_inherited() -> None:
    here, there = socket.socketpair()
    reader, writer = os.pipe()
    with here, there:
        framing.send(here, {"a": 1}, [writer])
        os.close(writer)
        heard = framing.receive(there)
        assert heard is not None
        message, (descriptor,) = heard
        assert message == {"a": 1}
        assert not os.get_inheritable(descriptor)
        os.write(descriptor, b"x")
        os.close(descriptor)
    assert os.read(reader, 9) == b"x"
    os.close(reader)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\x09half"])
def test_half_a_message_is_the_end(data: bytes) -> None:
    here, there = socket.socketpair()
    with there:
        here.sendall(data)
        here.close()
        assert framing.receive(there) is None


def test_nobody_listens() -> None:
    here, there = socket.socketpair()
    there.close()
    with here, pytest.raises(OSError, match=r"pipe|reset"):
        framing.send(here, {"a": "x" * 100})
