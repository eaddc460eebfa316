from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.linux.mount import Mount

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}


@pytest.fixture
def open_jail() -> Iterator[Callable[..., Jail]]:
    """Build jails from mounts; they end with the test."""
    if os.uname().sysname != "Linux":
        pytest.skip("the walls of Linux need Linux")
    from stockade.platforms.linux.jail import Jail
    from stockade.platforms.linux.mount import JailSpec

    opened: list[Jail] = []

    def open_one(*mounts: Mount, **options: Any) -> Jail:
        jail = Jail.start()
        opened.append(jail)
        jail.build(JailSpec(mounts, **options))
        jail.wait_ready()
        return jail

    yield open_one
    for jail in opened:
        jail.close()


@pytest.fixture
def jail(open_jail: Callable[..., Jail], tmp_path: Path) -> Jail:
    from stockade.platforms.linux.mount import Mount

    return open_jail(Mount("writable", str(tmp_path)))


@pytest.fixture
def outcome(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Run a command in a jail to its end: exit code, output, errors."""
    from stockade.platforms.linux.jail import Ended, Failed, Request

    def run(jail: Jail, *argv: str, text: str = "", **options: Any) -> tuple[int, str, str]:
        reader, out = os.pipe()
        error_reader, err = os.pipe()
        source, sink = os.pipe()
        os.write(sink, text.encode())
        os.close(sink)
        request = Request(
            argv, options.pop("environment", ENVIRONMENT), options.pop("directory", str(tmp_path)), **options
        )
        number = jail.run(request, (source, out, err))
        for descriptor in (source, out, err):
            os.close(descriptor)
        texts = _drain(reader, error_reader)
        answer = jail.receive()
        if isinstance(answer, Failed):
            return -1, "", answer.text()
        assert isinstance(answer, Ended)
        assert answer.number == number
        return os.waitstatus_to_exitcode(answer.status), *texts

    return run


def _drain(*readers: int) -> tuple[str, str]:
    found = dict.fromkeys(readers, b"")
    waiting = set(readers)
    while waiting:
        for reader in select.select(list(waiting), [], [])[0]:
            data = os.read(reader, 65536)
            found[reader] += data
            if not data:
                waiting.remove(reader)
                os.close(reader)
    first, second = (text.decode() for text in found.values())
    return first, second
