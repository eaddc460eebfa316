from __future__ import annotations

import os
import signal
import sys

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.macos.keeper_process import KeeperProcess, package_path


def test_the_package_is_found() -> None:
    assert os.path.isfile(f"{package_path()}/stockade/__init__.py")


def test_it_ends_when_it_is_left() -> None:
    keeper = KeeperProcess()
    keeper.close()
    keeper.close()
    with pytest.raises(ProcessLookupError):
        os.kill(keeper.pid, 0)


def test_a_keeper_that_was_killed() -> None:
    keeper = KeeperProcess()
    os.kill(keeper.pid, signal.SIGKILL)
    assert keeper.receive() is None
    with pytest.raises(UnavailableError, match="killed"):
        keeper.tell({"do": "end", "ticket": 1})
    keeper.close()


def test_it_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(UnavailableError, match="cannot start the sandbox's keeper"):
        KeeperProcess()
