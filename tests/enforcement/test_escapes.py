"""Ways out that somebody found by trying: each is made outside as the control, then inside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError

if TYPE_CHECKING:
    from tests.enforcement.conftest import Ground

ROOT = os.geteuid() == 0
#: Sets the mode that is there already, which needs the same right as another one and does no harm.
SAME_MODE = 'chmod "$(stat -L -c %a {path})" {path}'


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/fd/0"])
def test_the_hosts_devices_keep_their_mode(ground: Ground, path: str) -> None:
    """The nodes in the jail's /dev are the host's own, and so is what stands for "no input"."""
    line = SAME_MODE.format(path=path)
    if ROOT:
        assert subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, check=False).returncode == 0
    done = ground.sandbox().run(line)
    assert (done.exit_code, b"Read-only file system" in done.stderr or not ROOT) == (1, True)


RECONNECT = """
import ctypes, os, socket, sys
ctypes.CDLL(None).connect(0, bytes(16), 16)
peer = socket.socket(fileno=os.dup(0))
peer.connect(("127.0.0.1", int(sys.argv[1])))
peer.send(b"escaped")
"""


def test_a_socket_of_the_host_as_a_stream_is_no_way_to_its_network(ground: Ground) -> None:
    """A socket stays in the network in which it was made, and connect(2) can lead it to another peer."""
    with socket.create_server(("127.0.0.1", 0)) as service, socket.create_server(("127.0.0.1", 0)) as victim:
        words = [sys.executable, "-I", "-S", "-c", RECONNECT, str(victim.getsockname()[1])]
        victim.setblocking(False)
        with socket.create_connection(service.getsockname()) as stream:
            subprocess.run(words, stdin=stream.fileno(), check=True)
            victim.accept()[0].close()
        with socket.create_connection(service.getsockname()) as stream:
            sandbox = ground.sandbox()
            with sandbox.spawn(words, stdin=stream.fileno()) as process, pytest.raises(StockadeError, match="stream"):
                process.wait()
        with pytest.raises(BlockingIOError):
            victim.accept()


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["stream", "datagram"])
def test_a_local_socket_without_a_peer_is_no_stream(ground: Ground, kind: int) -> None:
    stream = socket.socket(socket.AF_UNIX, kind)
    with stream, ground.sandbox().spawn("true", stdin=stream.fileno()) as process, pytest.raises(StockadeError):
        process.wait()


def test_a_connected_pair_is_a_stream_like_a_pipe(ground: Ground) -> None:
    mine, theirs = socket.socketpair()
    with mine, theirs, ground.sandbox().spawn("head -c 2 >&0", stdin=theirs.fileno()) as process:
        mine.send(b"ab")
        assert (process.wait().exit_code, mine.recv(10)) == (0, b"ab")


def test_a_directory_as_a_stream_of_a_wrapped_command_is_no_way_out(ground: Ground) -> None:
    (ground.outside / "secret").write_text("secret")
    line = "cat /proc/self/fd/2/secret"
    folder = os.open(ground.outside, os.O_RDONLY)
    try:
        bare = subprocess.run(["sh", "-c", line], stderr=folder, stdout=subprocess.PIPE, check=False)
        assert bare.stdout == b"secret"
        wrapped = ground.sandbox(filesystem__denyRead=(str(ground.outside),)).wrap(line)
        done = subprocess.run(wrapped.argv, stderr=folder, stdout=subprocess.PIPE, check=False)
        assert (done.returncode != 0, done.stdout) == (True, b"")
    finally:
        os.close(folder)
