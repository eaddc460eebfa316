"""Descriptors that one command hands to another: they show no more than the walls, whatever ends in whatever order.

A *sender* opens things and passes them over a unix socket of the session to a *receiver*, and ends, or is ended. Then
the receiver looks at each again. The kernel takes the mounts of a dead namespace apart, so a cover that is not locked
would be gone by now.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.blocking_process import BlockingProcess

PATIENCE = 30.0
SECRET = "what-the-rules-deny"  # noqa: S105 - no password

RECEIVER = r"""
import errno, json, os, socket, sys
project, expected = sys.argv[1], int(sys.argv[2])
os.chdir(project)  # an address has room for a hundred characters
server = socket.socket(socket.AF_UNIX); server.bind("meeting"); server.listen(50)
print("listening", flush=True)
given = {}
for number in range(expected):
    end, _ = server.accept()
    names, descriptors, _, _ = socket.recv_fds(end, 4000, 50)
    given[number] = dict(zip(names.decode().split(), descriptors))
    end.send(b"x"); end.close()
print("received", flush=True)
sys.stdin.readline()

def said(act):
    try:
        return act()
    except OSError as error:
        return errno.errorcode[error.errno]

def read(base, path):
    file = os.open(path, os.O_RDONLY, dir_fd=base)
    return os.read(file, 100).decode()

def write(base, path):
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o755, dir_fd=base)
    os.write(file, b"planted")
    return "written"

def look(base, way):
    found = {}
    for name in ("secret", "vault/key"):
        found["read " + name] = said(lambda: read(base, way + name))
    for name in (".git/config", ".git/hooks/pre-commit", ".mcp.json", ".mcp.json/new", "secret", "vault/new"):
        found["write " + name] = said(lambda: write(base, way + name))
    found["list vault"] = said(lambda: os.listdir(os.open(way + "vault", os.O_RDONLY, dir_fd=base)))
    return found

def processes(base):
    return [name for name in os.listdir(base) if name.isdecimal()]

answers = []
for number, ends in given.items():
    for name in ("directory", "path"):
        answers += [(f"{name}: {what}", how) for what, how in look(ends[name], "").items()]
    answers += [(f"root: {what}", how) for what, how in look(ends["root"], project[1:] + "/").items()]
    os.fchdir(ends["path"])
    answers += [(f"cwd: {what}", how) for what, how in look(None, "./").items()]
    os.chdir("/")
    answers.append(("git: config", said(lambda: write(ends["git"], "config"))))
    answers.append(("git: hooks", said(lambda: write(ends["git"], "hooks/post-commit"))))
    answers.append(("config", said(lambda: write(None, "/proc/self/fd/%d" % ends["config"]))))
    answers.append(("secret", said(lambda: read(None, "/proc/self/fd/%d" % ends["denied"]))))
    answers.append(("root: proc", said(lambda: processes(os.open("proc", os.O_RDONLY, dir_fd=ends["root"])))))
    answers.append(("root: setting", said(lambda: write(ends["root"], "proc/sys/net/ipv4/ip_default_ttl"))))
    answers.append(("proc: ..", said(lambda: processes(os.open("../proc", os.O_RDONLY, dir_fd=ends["proc"])))))
    answers.append(("proc: setting", said(lambda: write(ends["proc"], "sys/net/ipv4/ip_default_ttl"))))
print(json.dumps(answers), flush=True)
"""

SENDER = r"""
import os, socket, sys
project, waits, stays = sys.argv[1], "wait" in sys.argv[2], "stay" in sys.argv[2]
opened = {
    "directory": os.open(project, os.O_RDONLY),
    "path": os.open(project, os.O_PATH),
    "root": os.open("/", os.O_PATH),
    "git": os.open(project + "/.git", os.O_RDONLY),
    "config": os.open(project + "/.git/config", os.O_PATH),
    "denied": os.open(project + "/secret", os.O_PATH),
    "proc": os.open("/proc", os.O_RDONLY),
}
print("opened", flush=True)
if waits:
    sys.stdin.readline()
os.chdir(project)
end = socket.socket(socket.AF_UNIX); end.connect("meeting")
socket.send_fds(end, [" ".join(opened).encode()], list(opened.values()))
end.recv(1)
print("sent", flush=True)
if stays:
    sys.stdin.readline()
"""

#: What the receiver may see of each descriptor.
ALLOWED = {"EACCES", "EROFS", "ENOENT", "ENOTDIR", "EPERM", "EBUSY"}
#: A missing name is held by a directory, on the host and inside: only what is made *in* it tells the two apart.
HELD, OPENED_HELD, OPENED_IN_HELD = ".mcp.json", {"EACCES"}, {"EACCES", "EROFS"}


class Meeting:
    """A project with a secret, and two commands of one session that meet there."""

    def __init__(self, ground: Any) -> None:
        self.project: Path = ground.project
        _furnish(self.project)
        self._others = set(_children(os.getpid()))
        self.sandbox: BlockingSandbox = ground.sandbox(
            filesystem__denyRead=(f"{self.project}/secret", f"{self.project}/vault")
        )
        self.before = _state(self.project)
        self._processes = ExitStack()

    def close(self) -> None:
        self._processes.close()

    def keepers(self) -> set[int]:
        """Return the helpers of the sandbox that are children of this process, one for each jail."""
        return set(_children(os.getpid())) - self._others

    def _spawn(self, *words: str) -> BlockingProcess:
        process = self.sandbox.spawn([sys.executable, "-I", "-S", "-c", *words], stdin=subprocess.PIPE)
        return self._processes.enter_context(process)

    def receive(self, senders: int = 1) -> BlockingProcess:
        """Start a receiver and wait until it listens."""
        receiver = self._spawn(RECEIVER, str(self.project), str(senders))
        assert _line(receiver) == "listening"
        return receiver

    def send(self, how: str = "go") -> BlockingProcess:
        """Start a sender that has opened everything; it may ``wait`` before it sends, and ``stay`` afterwards."""
        sender = self._spawn(SENDER, str(self.project), how)
        assert _line(sender) == "opened"
        return sender

    def change_plan(self) -> None:
        """Have a command make what the next plan protects: from now on commands get another jail."""
        assert self.sandbox.run("mkdir -p sub/.git/hooks && touch sub/.git/config").exit_code == 0

    def judge(self, receiver: BlockingProcess) -> None:
        """Have the receiver look, and demand that it sees nothing beyond the walls and has changed nothing."""
        answers = _look(receiver)
        assert answers
        beyond = [(what, how) for what, how in answers if not _is_walled(what, how)]
        assert beyond == []
        assert _state(self.project) == self.before


def _is_walled(question: str, answer: object) -> bool:
    if question.endswith(f"write {HELD}"):
        return answer in OPENED_HELD
    if question.endswith(f"write {HELD}/new"):
        return answer in OPENED_IN_HELD
    return answer in ALLOWED if isinstance(answer, str) else answer == []


def _furnish(project: Path) -> None:
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "secret").write_text(SECRET)
    (project / "vault").mkdir()
    (project / "vault" / "key").write_text(SECRET)


def _state(project: Path) -> dict[str, str]:
    hooks = sorted(path.name for path in (project / ".git" / "hooks").iterdir())
    config = (project / ".git" / "config").read_text()
    return {
        "hooks": " ".join(hooks),
        "config": config,
        "secret": (project / "secret").read_text(),
        "vault": " ".join(sorted(path.name for path in (project / "vault").iterdir())),
        "held": " ".join(str(path.relative_to(project)) for path in project.rglob(f"{HELD}/*")),
        "file": str((project / HELD).is_file()),
    }


def _line(process: BlockingProcess) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def _look(receiver: BlockingProcess) -> list[tuple[str, object]]:
    _go(receiver)
    answers: list[tuple[str, object]] = json.loads(_line(receiver))
    assert receiver.wait(timeout=PATIENCE).exit_code == 0
    return answers


@pytest.fixture
def meeting(ground: Any) -> Iterator[Meeting]:
    """A place to meet."""
    meeting = Meeting(ground)
    yield meeting
    meeting.close()


def test_without_walls_the_same_descriptors_show_everything(ground: Any) -> None:
    """The control."""
    _furnish(ground.project)
    words = [sys.executable, "-I", "-S", "-c"]
    with subprocess.Popen(
        [*words, RECEIVER, str(ground.project), "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == b"listening\n"
        subprocess.run([*words, SENDER, str(ground.project), "go"], check=True, stdout=subprocess.DEVNULL)
        out, _ = receiver.communicate(b"look\n", timeout=PATIENCE)
    answers = dict(json.loads(out.splitlines()[-1]))
    assert answers["directory: read secret"] == SECRET
    assert answers["root: write .git/hooks/pre-commit"] == "written"
    assert answers["root: proc"]


def test_a_sender_that_ends(meeting: Meeting) -> None:
    """The plain case: it ends, and another command is run before the receiver looks."""
    receiver = meeting.receive()
    assert meeting.send().wait(timeout=PATIENCE).exit_code == 0
    assert meeting.sandbox.run("true").exit_code == 0
    assert _line(receiver) == "received"
    meeting.judge(receiver)


def test_more_senders_than_copies_are_kept(meeting: Meeting) -> None:
    """Copies of the mounts are kept for a few commands: of many that end together most are dropped."""
    receiver = meeting.receive(12)
    senders = [meeting.send("stay") for _ in range(12)]
    assert _line(receiver) == "received"
    for sender in senders:
        _go(sender)
    for sender in senders:
        assert sender.wait(timeout=PATIENCE).exit_code == 0
    meeting.judge(receiver)


def test_a_jail_that_a_change_of_plan_replaced(meeting: Meeting) -> None:
    """The receiver lives in the new jail; the old one stays as long as the receiver, and goes then."""
    sender = meeting.send("wait")
    old = meeting.keepers()
    meeting.change_plan()
    receiver = meeting.receive()
    assert meeting.keepers() > old, "there is but one jail"
    _go(sender)
    assert sender.wait(timeout=PATIENCE).exit_code == 0
    assert _line(receiver) == "received"
    meeting.judge(receiver)
    assert meeting.sandbox.run("true").exit_code == 0
    _until(lambda: not old & meeting.keepers())


def test_a_first_process_that_is_killed(meeting: Meeting) -> None:
    """The mount namespace of the sender ends with it, by the quickest way."""
    receiver = meeting.receive()
    sender = meeting.send("stay")
    assert _line(receiver) == "received"
    (mine,) = (pid for pid in _below(os.getpid()) if "stay" in _arguments(pid))
    os.kill(_parent(mine), signal.SIGKILL)
    assert sender.wait(timeout=PATIENCE).signal == signal.SIGKILL
    meeting.judge(receiver)


@pytest.mark.parametrize("kind", ["keeper", "launcher"])
def test_helpers_of_the_senders_jail_that_are_killed(meeting: Meeting, kind: str) -> None:
    """The receiver lives in another jail of the session, whose helpers go on."""
    sender = meeting.send("wait stay")
    (keeper,) = meeting.keepers()
    launcher = next(pid for pid in _children(keeper) if _children(pid))
    meeting.change_plan()
    receiver = meeting.receive()
    _go(sender)
    assert _line(receiver) == "received"
    os.kill({"keeper": keeper, "launcher": launcher}[kind], signal.SIGKILL)
    with pytest.raises(UnavailableError, match="helpers were killed"):
        sender.wait(timeout=PATIENCE)
    _until(lambda: _is_dead(launcher))
    meeting.judge(receiver)


def _go(process: BlockingProcess) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _below(pid: int) -> list[int]:
    return [each for child in _children(pid) for each in (child, *_below(child))]


def _arguments(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
