from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from stockade.policy.effective import effective
from stockade.policy.live import LivePolicy
from stockade.sandbox.asynchronous import Sandbox
from stockade.sandbox.blocking import BlockingSandbox
from stockade.sandbox.following import Following, Heard
from stockade.settings.sources import Locations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sandbox.conftest import Ground

PATIENCE = 60.0


class Files:
    """The settings file of a user, which somebody edits."""

    def __init__(self, ground: Ground) -> None:
        self.path = ground.home / ".stockade" / "settings.json"
        self.path.parent.mkdir()
        self.locations = Locations(str(ground.project), str(ground.home), managed=str(ground.home / "none.json"))
        self.allow()

    def allow(self, *hosts: str) -> None:
        self.write(json.dumps({"sandbox": {"network": {"allowedDomains": hosts}}}))

    def write(self, text: str) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)

    def live(self) -> LivePolicy:
        return LivePolicy(self.locations)


@pytest.fixture
def files(ground: Ground) -> Files:
    return Files(ground)


@pytest.fixture
def port() -> Iterator[int]:
    """Somebody who greets, on a port of the host."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(b"hello\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(PATIENCE)


def until_said(file: Path, word: bytes) -> None:
    """Wait until a command has written a word."""
    end = time.monotonic() + PATIENCE
    while word not in file.read_bytes() and time.monotonic() < end:
        time.sleep(0.01)


def gain_and_lose(port: int) -> str:
    """A line that runs until a port of the host can be reached, and then until it cannot."""
    hear = f"(exec 3<>/dev/tcp/127.0.0.1/{port} && grep -q hello <&3) 2>/dev/null"
    return f"echo begun; until {hear}; do sleep 0.05; done; echo gained; while {hear}; do sleep 0.05; done; echo lost"


class Editor:
    """Changes the rules as a command gets on."""

    def __init__(self, files: Files, port: int) -> None:
        self.files = files
        self.allowed = f"127.0.0.1:{port}"

    def __call__(self, piece: bytes) -> None:
        if b"begun" in piece:
            self.files.allow(self.allowed)
        if b"gained" in piece:
            self.files.allow()


def test_a_command_that_runs_gains_and_loses_what_a_file_says(files: Files, port: int) -> None:
    with BlockingSandbox(files.live()) as sandbox:
        result = sandbox.run(gain_and_lose(port), timeout=PATIENCE, on_output=Editor(files, port))
    assert (result.output, result.limit) == ("begun\ngained\nlost\n", None)


def test_a_command_that_runs_gains_and_loses_what_a_file_says_with_asyncio(files: Files, port: int) -> None:
    async def main() -> str:
        async with Sandbox(files.live()) as sandbox:
            result = await sandbox.run(gain_and_lose(port), timeout=PATIENCE, on_output=Editor(files, port))
        return result.output

    assert asyncio.run(main()) == "begun\ngained\nlost\n"


def test_a_process_that_is_waited_for_gains_and_loses_too(files: Files, port: int, tmp_path: Path) -> None:
    files.allow(f"127.0.0.1:{port}")
    with (
        BlockingSandbox(files.live()) as sandbox,
        open(tmp_path / "said", "wb") as said,
        sandbox.spawn(gain_and_lose(port), stdout=said.fileno()) as process,
    ):

        def lose() -> None:
            # Only once it has gained: on a busy machine it may begin late.
            until_said(tmp_path / "said", b"gained")
            files.allow()

        losing = threading.Thread(target=lose)
        losing.start()
        assert process.wait(PATIENCE).ok
        losing.join()


def test_rules_of_files_hold_for_the_next_command(files: Files, ground: Ground) -> None:
    with BlockingSandbox(files.live()) as sandbox:
        (ground.project / "secret").write_text("s")
        assert sandbox.run("cat secret").output == "s"
        files.write(json.dumps({"sandbox": {"filesystem": {"denyRead": [str(ground.project / "secret")]}}}))
        sandbox.run("sleep 0.4")
        assert not sandbox.run("cat secret").ok


def test_a_broken_file_changes_nothing_and_is_told_once(files: Files, port: int) -> None:
    files.allow(f"127.0.0.1:{port}")
    with BlockingSandbox(files.live()) as sandbox:
        assert sandbox.run("sleep 0.3").notes == ()
        files.write("{")
        told = sandbox.run("sleep 0.7").notes
        after = sandbox.run(f"head -n 1 </dev/tcp/127.0.0.1/{port}")
    assert ["the settings before stay in force" in note for note in told] == [True]
    assert (after.output, after.notes) == ("hello\n", ())


def test_a_policy_that_the_host_sets_stays_until_the_files_say_something_new(files: Files, ground: Ground) -> None:
    with BlockingSandbox(files.live()) as sandbox:
        mine = ground.policy(network__allowedDomains=("mine.test",))
        sandbox.update(mine)
        sandbox.run("sleep 0.4")
        assert sandbox.policy is mine
        files.allow("theirs.test")
        sandbox.run("sleep 0.4")
        assert [str(rule.value) for rule in sandbox.policy.network.allowed] == ["theirs.test"]


def test_news_reaches_every_session_of_one_policy(files: Files) -> None:
    live = files.live()
    first, second = Following(live), Following(live)
    files.allow("new.test")
    assert first.look() == Heard(live.policy) == second.look()
    assert first.look() == Heard() == second.look()


def test_what_happened_before_the_first_look_is_found(files: Files) -> None:
    then = effective(files.locations)
    following = Following(lambda: LivePolicy(files.locations, since=then))
    assert following.left() is None
    following.begin()
    left = following.left()
    assert left is not None
    assert left > 0
    files.write("{")
    heard = following.look()
    assert heard.policy is None
    assert ["the settings before stay in force" in text for text in heard.warnings] == [True]
    files.allow("new.test")
    assert following.look().policy == effective(files.locations).policy
