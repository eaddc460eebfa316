"""Shared memory, semaphores and message queues of the host are not those inside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.conftest import MakeTrial, Trial

import ctypes

KEY = 0x5354_0000 + os.getpid() % 0x10000
_PRIVATE_MODE = 0o666
_REMOVE = 0

ATTACKS: dict[str, tuple[str, ...]] = {
    "shared memory by key": ("kernel('shmget', KEY, 0, 0)", "ENOENT"),
    "semaphores by key": ("kernel('semget', KEY, 0, 0)", "ENOENT"),
    "a queue by key": ("kernel('msgget', KEY, 0)", "ENOENT"),
    "a message into the queue": (
        "kernel('msgsnd', kernel('msgget', KEY, 0), struct.pack('q', 1) + b'x', 1, 0o4000)",
        "ENOENT",
    ),
    "a POSIX queue": ("kernel('mq_open', f'stockade-{KEY}', os.O_RDWR, 0, 0)", "ENOENT"),
    "a listed segment": (
        (
            "found = [l for l in open('/proc/sysvipc/shm') if str(KEY) in l.split()[:1]]\n"
            "if not found: raise FileNotFoundError(2, '')"
        ),
        "ENOENT",
    ),
}
ATTACKS = {name: (script.replace("KEY", str(KEY)), *rest) for name, (script, *rest) in ATTACKS.items()}


@pytest.fixture(scope="module")
def objects() -> Iterator[None]:
    """One of each on the host."""
    libc = ctypes.CDLL(None, use_errno=True)
    rt = ctypes.CDLL("librt.so.1", use_errno=True)
    create = 0o1000 | _PRIVATE_MODE
    memory, semaphore, queue = libc.shmget(KEY, 4096, create), libc.semget(KEY, 1, create), libc.msgget(KEY, create)
    posix = rt.mq_open(b"/stockade-%d" % KEY, os.O_CREAT | os.O_RDWR, 0o600, None)
    assert min(memory, semaphore, queue, posix) >= 0
    yield
    libc.shmctl(memory, _REMOVE, None)
    libc.semctl(semaphore, 0, _REMOVE)
    libc.msgctl(queue, _REMOVE, None)
    rt.mq_close(posix)
    rt.mq_unlink(b"/stockade-%d" % KEY)


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial, objects: None) -> Trial:
    assert objects is None
    return make_trial(ATTACKS)


@pytest.mark.parametrize("name", ATTACKS)
def test_what_processes_share_on_the_host_is_not_shared_inside(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name])
