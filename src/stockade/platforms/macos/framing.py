"""What the owner of a session and its keeper say to each other: a length, then JSON; descriptors travel beside it.

The socket is a stream, for macOS has no other kind that keeps order. Both ends wait while they send, and neither sends
what the other does not take at once. Half a message means that the other end is gone.
"""

from __future__ import annotations

import json
import os
import socket

from stockade.annotation import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTH: Final = 4
_CHUNK: Final = 65536
_MOST_DESCRIPTORS: Final = 3


def send(end: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Say something; raise ``OSError`` if nobody listens any more."""
    body = json.dumps(message).encode()
    head = len(body).to_bytes(_LENGTH, "big")
    if descriptors:
        socket.send_fds(end, [head], list(descriptors))
    else:
        end.sendall(head)
    end.sendall(body)


def receive(end: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Wait for a message, and return it with its descriptors; ``None`` if the other end is gone."""
    descriptors: list[int] = []
    data = b""
    try:
        while len(data) < _LENGTH:
            piece, found, _, _ = socket.recv_fds(end, _LENGTH - len(data), _MOST_DESCRIPTORS)
            descriptors += found
            if not piece:
                raise ConnectionResetError
            data += piece
        body = _exactly(end, int.from_bytes(data, "big"))
    except OSError:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    message: dict[str, Any] = json.loads(body)
    return message, descriptors


def _exactly(end: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = end.recv(min(size - len(data), _CHUNK))
        if not piece:
            raise ConnectionResetError
        data += piece
    return bytes(data)
