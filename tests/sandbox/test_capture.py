from __future__ import annotations

import os

from stockade.sandbox.capture import Capture, exceeded
from stockade.sandbox.limits import Limits


def test_everything_is_kept_in_order_and_the_watcher_is_told() -> None:
    heard: list[bytes] = []
    capture = Capture(heard.append)
    os.write(capture.writer, b"one ")
    assert capture.read()
    os.write(capture.writer, b"two")
    capture.close_writer()
    assert capture.finish() == b"one two"
    assert b"".join(heard) == b"one two"
    assert capture.finish() == b"one two"


def test_nothing_to_read_is_not_the_end() -> None:
    capture = Capture()
    assert capture.read()
    capture.close_writer()
    assert not capture.read()
    capture.finish()


def test_the_commands_end_is_an_ordinary_pipe() -> None:
    capture = Capture()
    assert os.get_blocking(capture.writer)
    capture.finish()


def test_exceeded() -> None:
    capture = Capture()
    os.write(capture.writer, b"12345")
    capture.read()
    assert not exceeded([capture], Limits())
    assert not exceeded([capture], Limits(output_bytes=5))
    assert exceeded([capture], Limits(output_bytes=4))
    capture.finish()
