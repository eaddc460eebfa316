from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.backend import Launch, Outcome
from stockade.platforms.linux.walls import LinuxWalls
from stockade.platforms.temporary import TemporaryDirectory
from stockade.policy.compile import compile_policy
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy


class Yard:
    """Walls around a project, and commands run in them one by one."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.root = root
        self.temporary = TemporaryDirectory.make({"TMPDIR": str(root)})
        self.walls = LinuxWalls(self.temporary.path)
        self.outcomes: list[Outcome] = []

    def policy(self, **values: Any) -> SandboxPolicy:
        named = {f"sandbox.{name.replace('__', '.')}": value for name, value in values.items()}
        settings = merge([Document(Layer.USER, "settings.json", named)])
        return compile_policy(settings, cwd=str(self.project), home=str(self.root))

    def launch(self, line: str) -> int:
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            launch = Launch(("/bin/sh", "-c", line), dict(os.environ), str(self.project))
            return self.walls.launch(launch, (nothing, nothing, nothing))
        finally:
            os.close(nothing)

    def outcome(self) -> Outcome:
        while not self.outcomes:
            ready, _, _ = select.select([self.walls.fileno()], [], [], 20)
            assert ready, "no answer"
            self.outcomes += self.walls.receive()
        return self.outcomes.pop(0)

    def status(self, line: str) -> int:
        self.launch(line)
        return os.waitstatus_to_exitcode(self.outcome().status)


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path.resolve())
    yield made
    made.walls.close()
    made.temporary.remove()


def test_a_plan_that_stays_keeps_its_jail(yard: Yard) -> None:
    (yard.project / "before").touch()
    policy = yard.policy()
    yard.walls.renew(policy)
    first = yard.walls._current
    assert yard.status("echo x > file") == 0
    yard.walls.renew(policy)
    assert yard.walls._current is first
    yard.walls.renew(yard.policy())
    assert yard.walls._current is first


def test_a_jail_goes_when_its_empty_project_has_filled_and_when_that_is_empty_again(yard: Yard) -> None:
    """In an empty project placeholders are not listed, which costs something with each directory."""
    policy = yard.policy()
    cells = []
    for line in ('[ -z "$(ls -A)" ] && echo x > file', '[ -n "$(ls -A)" ] && rm file', '[ -z "$(ls -A)" ]', "true"):
        yard.walls.renew(policy)
        cells.append(yard.walls._current)
        assert yard.status(line) == 0, line
    assert [bool(cell and cell.unlisted) for cell in cells] == [True, False, True, True]
    assert (cells[3] is cells[2], len(yard.walls._cells)) == (True, 1)


def test_what_a_command_makes_is_protected_for_the_next(yard: Yard) -> None:
    policy = yard.policy()
    yard.walls.renew(policy)
    assert yard.status("mkdir sub && echo mine > sub/.bashrc") == 0
    yard.walls.renew(policy)
    assert yard.status("echo theirs > sub/.bashrc") != 0
    assert yard.status("mv sub aside") != 0
    assert (yard.project / "sub" / ".bashrc").read_text() == "mine\n"


def test_an_old_jail_lives_until_its_last_command_ends(yard: Yard) -> None:
    other = yard.root / "other"
    other.mkdir()
    yard.walls.renew(yard.policy())
    slow = yard.launch(f"while [ ! -e go ]; do sleep 0.02; done; touch {other}/old")
    old = yard.walls._current
    yard.walls.renew(yard.policy(filesystem__allowWrite=(str(other),)))
    assert yard.walls._current is not old
    assert yard.status(f"touch {other}/new go") == 0
    ended = yard.outcome()
    assert ended.ticket == slow
    assert os.waitstatus_to_exitcode(ended.status) != 0
    assert (other / "new").exists()
    assert not (other / "old").exists()
    assert len(yard.walls._cells) == 1


def test_names_are_given_back_at_rest_and_kept_again(yard: Yard) -> None:
    policy = yard.policy()
    yard.walls.renew(policy)
    assert os.path.lexists(yard.project / ".mcp.json")
    running = yard.launch("sleep 60")
    yard.walls.rest()
    assert os.path.lexists(yard.project / ".mcp.json")
    yard.walls.end(running)
    yard.outcome()
    yard.walls.rest()
    assert os.listdir(yard.project) == []
    yard.walls.renew(policy)
    assert yard.status("echo x > .mcp.json") != 0


def test_killed_helpers_are_told_and_replaced(yard: Yard) -> None:
    policy = yard.policy()
    yard.walls.renew(policy)
    ticket = yard.launch("sleep 60")
    current = yard.walls._current
    assert current is not None
    os.kill(current.jail.pid, signal.SIGKILL)
    outcome = yard.outcome()
    assert outcome.ticket == ticket
    assert "helpers were killed" in outcome.failure
    yard.walls.renew(policy)
    assert yard.status("true") == 0


@pytest.mark.parametrize("victim", ["keeper", "launcher"])
def test_helpers_killed_while_nothing_runs_are_replaced_before_the_next_command(yard: Yard, victim: str) -> None:
    policy = yard.policy()
    yard.walls.renew(policy)
    assert yard.status("true") == 0
    current = yard.walls._current
    assert current is not None
    keeper = current.jail.pid
    with open(f"/proc/{keeper}/task/{keeper}/children", encoding="ascii") as file:
        launcher = os.pidfd_open(int(file.read()))
    os.kill(keeper, signal.SIGKILL) if victim == "keeper" else signal.pidfd_send_signal(launcher, signal.SIGKILL)
    assert select.select([launcher], [], [], 20)[0], "it outlives its keeper"
    os.close(launcher)
    yard.walls.renew(policy)
    assert yard.status("true") == 0


def test_a_command_that_has_ended_or_lost_its_helpers_is_neither_signalled_nor_ended(yard: Yard) -> None:
    yard.walls.renew(yard.policy())
    done = yard.launch("true")
    yard.outcome()
    lost = yard.launch("sleep 60")
    current = yard.walls._current
    assert current is not None
    os.kill(current.jail.pid, signal.SIGKILL)
    while not current.jail.is_gone():
        time.sleep(0.001)
    for ticket in (done, lost):
        yard.walls.signal(ticket, signal.SIGTERM)
        yard.walls.end(ticket)
    assert yard.outcome().ticket == lost


def test_what_cannot_be_enforced_is_refused(yard: Yard) -> None:
    with pytest.raises(UnavailableError) as caught:
        yard.walls.renew(yard.policy(filesystem__denyRead=("/**/secret",)))
    assert "/**/secret" in caught.value.message
    assert caught.value.hint


def test_signals_reach_the_command(yard: Yard) -> None:
    yard.walls.renew(yard.policy())
    ticket = yard.launch("trap 'exit 7' TERM; touch ready; while :; do sleep 0.02; done")
    for _ in range(1000):
        if (yard.project / "ready").exists():
            break
        select.select([], [], [], 0.01)
    yard.walls.signal(ticket, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(yard.outcome().status) == 7


def test_closing_leaves_nothing(yard: Yard) -> None:
    yard.walls.renew(yard.policy())
    yard.launch("sleep 60")
    yard.walls.close()
    assert os.listdir(yard.project) == []
    yard.walls.close()
    with pytest.raises(UnavailableError):
        yard.launch("true")


def test_a_new_jail_keeps_the_localhost_of_the_session(yard: Yard) -> None:
    python = sys.executable
    serve = (
        "import socket; s = socket.create_server(('127.0.0.1', 80)); open('ready', 'w').close(); s.accept()[0].close()"
    )
    yard.walls.renew(yard.policy())
    server = yard.launch(f'exec {python} -c "{serve}"')
    for _ in range(1000):
        if (yard.project / "ready").exists():
            break
        select.select([], [], [], 0.01)
    old = yard.walls._current
    yard.walls.renew(yard.policy(filesystem__denyRead=("/etc/hostname",)))
    assert yard.walls._current is not old
    client = yard.launch(f"exec {python} -c \"import socket; socket.create_connection(('127.0.0.1', 80), 5)\"")
    ended = {outcome.ticket: os.waitstatus_to_exitcode(outcome.status) for outcome in (yard.outcome(), yard.outcome())}
    assert ended == {server: 0, client: 0}


def test_walls_that_were_interrupted_while_they_were_made_leave_nothing(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stockade.platforms.linux.placeholders.Lease.changed", property(interrupted))
    with pytest.raises(KeyboardInterrupt):
        yard.walls.renew(yard.policy())
    assert os.listdir(yard.project)
    yard.walls.close()
    assert os.listdir(yard.project) == []
