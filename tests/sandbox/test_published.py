from __future__ import annotations

import os
import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError, StockadeError
from stockade.sandbox.published import Published, listen


@pytest.mark.parametrize(
    ("text", "published"),
    [
        pytest.param("8080:3000", Published(8080, 3000), id="both"),
        pytest.param("3000", Published(3000, 3000), id="one for both"),
        pytest.param("0:3000", Published(0, 3000), id="any port of the host"),
    ],
)
def test_reads(text: str, published: Published) -> None:
    assert Published.parse(text) == published


@pytest.mark.parametrize(
    "text", ["", ":", "a:b", "1:2:3", "-1:2", "1:0", "0", "65536:1", "1:65536", "\u0661:\u0662", "1: 2"]
)
def test_refuses(text: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        Published.parse(text)
    assert "8080:3000" in caught.value.hint


@given(st.text())
def test_no_text_does_worse_than_be_refused(text: str) -> None:
    with suppress(InvalidTextError):
        Published.parse(text)


def test_listens_on_loopback_alone_and_says_which_port() -> None:
    descriptor, port = listen(Published(0, 3000))
    listener = socket.socket(fileno=descriptor)
    try:
        assert listener.getsockname() == ("127.0.0.1", port)
        assert not os.get_inheritable(descriptor)
        with socket.create_connection(("127.0.0.1", port)):
            pass
        with pytest.raises(StockadeError, match=f"port {port} of this host cannot be used"):
            listen(Published(port, 3000))
    finally:
        listener.close()
