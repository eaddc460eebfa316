"""Runs one command line, with pipes or in a terminal, and returns how it ended and what it said."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time
from typing import TYPE_CHECKING

from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PATIENCE = 110.0
#: Nothing that is typed takes long; what waits for ever waits for a text that was not shown.
TYPING = 45.0


class Ending(Value):
    """How a command ended; ``None`` means that it was ended after a time."""

    code: int | None
    said: str


def run(words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Ending:
    """Run with pipes, both streams in one, and nothing to read."""
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        said = _end(process)
        return Ending(None, said.decode("utf-8", "replace"))
    return Ending(process.returncode, said.decode("utf-8", "replace"))


def _end(process: subprocess.Popen[bytes]) -> bytes:
    process.terminate()
    try:
        return process.communicate(timeout=10)[0]
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def run_in_terminal(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], keys: Sequence[tuple[str, str]]
) -> Ending:
    """Run in a terminal of its own; whenever the next text of ``keys`` has been shown, type what belongs to it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 # one call, and no threads of ours matter
    )
    os.close(theirs)
    said, read, todo = b"", 0, list(keys)
    deadline = time.monotonic() + TYPING
    try:
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    piece = os.read(ours, 65536)
                except OSError:
                    break
                if not piece:
                    break
                said += piece
            elif process.poll() is not None:
                break
            if todo and (at := said.find(todo[0][0].encode(), read)) >= 0:
                text, typed = todo.pop(0)
                read = at + len(text.encode())
                time.sleep(0.2)  # so that a program that has only begun to ask has set its terminal
                os.write(ours, typed.encode())
    finally:
        ended = process.poll() is not None or _wait(process)
        os.close(ours)
        if not ended:
            process.terminate()
            if not _wait(process):
                process.kill()
                process.wait()
    shown = said.decode("utf-8", "replace").replace("\r\n", "\n")
    return Ending(process.returncode if ended else None, shown)


def _wait(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        return False
    return True
