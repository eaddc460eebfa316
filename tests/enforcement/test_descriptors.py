"""No command uses up the descriptors that other commands need, whatever the limit of open files."""

from __future__ import annotations

import os
import subprocess
import sys
from errno import ETOOMANYREFS
from subprocess import PIPE
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground

#: An owner with few open files, five commands with many connections that wait, and one that wants but two.
OWNER = """
import resource, sys
limit, count = int(sys.argv[1]), sys.argv[2]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 256), limit))
from stockade import BlockingSandbox, load_policy

CROWD = '''
import os, socket, sys, threading
name, count = sys.argv[1], int(sys.argv[2])
full = socket.socket(socket.AF_UNIX); full.bind(name); full.listen(0)
held = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for each in held:
    each.setblocking(False)
    try: each.connect(name)
    except BlockingIOError: pass
lock, told = threading.Lock(), []
def wait():
    end = socket.socket(socket.AF_UNIX)
    with lock: told.append(None)
    try: end.connect(name)
    except OSError: pass
    threading.Event().wait()
for _ in range(count): threading.Thread(target=wait, daemon=True).start()
while len(told) < count: pass
print("ready", flush=True)
threading.Event().wait()
'''
INNOCENT = '''
import socket
server = socket.socket(socket.AF_UNIX); server.bind("mine"); server.listen(8)
near = socket.create_server(("127.0.0.1", 0))
for _ in range(500):
    for address, family in (("mine", socket.AF_UNIX), (near.getsockname(), socket.AF_INET)):
        with socket.socket(family) as end: end.connect(address)
        (server if family == socket.AF_UNIX else near).accept()[0].close()
print("served")
'''
with BlockingSandbox(load_policy()) as sandbox:
    crowds = [sandbox.spawn(["python3", "-c", CROWD, f"full{n}", count], stderr=None) for n in range(5)]
    for crowd in crowds:
        assert crowd.stdout.readline() == b"ready\\n"
    done = sandbox.run(["python3", "-c", INNOCENT], timeout=60)
    print(done.output)
    for crowd in crowds:
        crowd.kill()
        crowd.wait(60)
"""


@pytest.mark.parametrize(("limit", "count"), [(256, 200), (1024, 240)])
def test_connections_that_wait_leave_room_for_those_of_others(tmp_path: Path, limit: int, count: int) -> None:
    project = tmp_path / "project"
    project.mkdir()
    words = [sys.executable, "-c", OWNER, str(limit), str(count)]
    done = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False, timeout=200)
    assert (done.returncode, done.stdout) == (0, "served\n\n"), done.stderr


#: Raises its limit as far as it can, sends descriptors that nobody receives until it is refused, and waits.
FILL = """
import array, os, resource, socket, sys
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 253))]
pairs, sent = [], 0
while True:
    one, other = socket.socketpair()
    pairs.append((one, other))
    one.setblocking(False)
    try:
        while True:
            one.sendmsg([b"x"], rights)
            sent += 253
    except BlockingIOError:
        continue
    except OSError as error:
        print(error.errno, sent, hard, flush=True)
        break
sys.stdin.read()
"""
#: Another session of the same user, whose soft limit is far below what is on the way.
OTHER = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from stockade import BlockingSandbox, StockadeError, load_policy
try:
    with BlockingSandbox(load_policy()) as sandbox:
        print(sandbox.run("echo started").output, end="")
except StockadeError as error:
    print(error.message, "|", error.hint)
"""
SEND_ONE = """
import array, resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
one, other = socket.socketpair()
try:
    one.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    print("sent")
except OSError as error:
    print(error.errno)
"""

#: An owner whose limits are low, so that the many descriptors on their way are too many for nobody else here.
FILLED = """
import resource, subprocess, sys
fill, other, send_one = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 4400))
from stockade import BlockingSandbox, load_policy
def run(script):
    return subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True).stdout.strip()
with BlockingSandbox(load_policy()) as sandbox:
    with sandbox.spawn([sys.executable, "-c", fill], stdin=subprocess.PIPE) as command:
        print(command.stdout.readline().decode().strip(), flush=True)
        print(run(send_one), run(other), sandbox.run("echo here").output.strip())
        command.kill()
        command.wait(60)
"""


def test_descriptors_on_their_way_keep_no_other_session_from_starting(ground: Ground) -> None:
    """The kernel lets root's programs of the host send all the same."""
    words = [sys.executable, "-c", FILLED, FILL, OTHER, SEND_ONE]
    done = subprocess.run(words, cwd=ground.project, stdout=PIPE, text=True, check=False, timeout=200)
    filled, rest = done.stdout.splitlines()
    error, sent, hard = map(int, filled.split())
    assert (error, hard < 4400, sent > hard - 253) == (ETOOMANYREFS, True, True)
    assert rest == f"{'sent' if os.geteuid() == 0 else ETOOMANYREFS} started here"
