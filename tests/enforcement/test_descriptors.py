"""No command uses up the descriptors that other commands need, whatever the limit of open files."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

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
