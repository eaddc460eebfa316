"""Ways out that somebody found by trying: each is made outside as the control, then inside."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.errors import StockadeError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground

ROOT = os.geteuid() == 0
#: Sets the mode that is there already, which needs the same right as another one and does no harm.
SAME_MODE = 'chmod "$(stat -L -c %a {path})" {path}'


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/fd/0"])
def test_the_hosts_devices_keep_their_mode(ground: Ground, path: str) -> None:
    """The nodes in the jail's /dev are the host's own, and so is what stands for "no input"."""
    line = SAME_MODE.format(path=path)
    if ROOT:
        assert subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, check=False).returncode == 0
    done = ground.sandbox().run(line)
    assert (done.exit_code, b"Read-only file system" in done.stderr or not ROOT) == (1, True)


RECONNECT = """
import ctypes, os, socket, sys
ctypes.CDLL(None).connect(0, bytes(16), 16)
peer = socket.socket(fileno=os.dup(0))
peer.connect(("127.0.0.1", int(sys.argv[1])))
peer.send(b"escaped")
"""


def test_a_socket_of_the_host_as_a_stream_is_no_way_to_its_network(ground: Ground) -> None:
    """A socket stays in the network in which it was made, and connect(2) can lead it to another peer."""
    with socket.create_server(("127.0.0.1", 0)) as service, socket.create_server(("127.0.0.1", 0)) as victim:
        words = [sys.executable, "-I", "-S", "-c", RECONNECT, str(victim.getsockname()[1])]
        victim.setblocking(False)
        with socket.create_connection(service.getsockname()) as stream:
            subprocess.run(words, stdin=stream.fileno(), check=True)
            victim.accept()[0].close()
        with socket.create_connection(service.getsockname()) as stream:
            sandbox = ground.sandbox()
            with sandbox.spawn(words, stdin=stream.fileno()) as process, pytest.raises(StockadeError, match="stream"):
                process.wait()
        with pytest.raises(BlockingIOError):
            victim.accept()


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM], ids=["stream", "datagram"])
def test_a_local_socket_without_a_peer_is_no_stream(ground: Ground, kind: int) -> None:
    stream = socket.socket(socket.AF_UNIX, kind)
    with stream, ground.sandbox().spawn("true", stdin=stream.fileno()) as process, pytest.raises(StockadeError):
        process.wait()


def test_a_connected_pair_is_a_stream_like_a_pipe(ground: Ground) -> None:
    mine, theirs = socket.socketpair()
    with mine, theirs, ground.sandbox().spawn("head -c 2 >&0", stdin=theirs.fileno()) as process:
        mine.send(b"ab")
        assert (process.wait().exit_code, mine.recv(10)) == (0, b"ab")


def test_a_directory_as_a_stream_of_a_wrapped_command_is_no_way_out(ground: Ground) -> None:
    (ground.outside / "secret").write_text("secret")
    line = "cat /proc/self/fd/2/secret"
    folder = os.open(ground.outside, os.O_RDONLY)
    try:
        bare = subprocess.run(["sh", "-c", line], stderr=folder, stdout=subprocess.PIPE, check=False)
        assert bare.stdout == b"secret"
        wrapped = ground.sandbox(filesystem__denyRead=(str(ground.outside),)).wrap(line)
        done = subprocess.run(wrapped.argv, stderr=folder, stdout=subprocess.PIPE, check=False)
        assert (done.returncode != 0, done.stdout) == (True, b"")
    finally:
        os.close(folder)


#: Programs that git on the host starts, if it obeys a config that was planted.
SPY = "#!/bin/sh\ntouch {mark}\n"
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = {tree}\n\tfsmonitor = {spy}\n"
PLANT_BARE = """
rm -f .git/HEAD
mkdir -p objects refs && echo 'ref: refs/heads/main' > HEAD && printf '%s' "$CONFIG" > config
"""
PLANT_WORKTREE = 'printf "[core]\n\tfsmonitor = $SPY\n" > "$(git rev-parse --git-dir)/config.worktree"'
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"} | {
    f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


class _Spy:
    """A program outside that leaves a mark when somebody on the host starts it."""

    def __init__(self, ground: Ground) -> None:
        self.mark, self.program = ground.outside / "started", ground.outside / "spy"
        self.program.write_text(SPY.format(mark=self.mark))
        self.program.chmod(0o755)

    def environment(self, tree: Path) -> dict[str, str]:
        return {**GIT, "SPY": str(self.program), "CONFIG": CONFIG.format(tree=tree, spy=self.program)}

    def was_started(self, tree: Path) -> bool:
        """Have the host look at a tree, and tell whether that started the program."""
        subprocess.run(["git", "status"], cwd=tree, env={**os.environ, **GIT}, capture_output=True, check=False)
        started = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return started


def _git(*words: str, cwd: Path) -> None:
    subprocess.run(["git", *words], cwd=cwd, env={**os.environ, **GIT}, capture_output=True, check=True)


@pytest.mark.parametrize("repository", [False, True], ids=["no repository", "a repository that is spoilt first"])
def test_the_project_does_not_become_a_repository_of_the_commands_making(ground: Ground, repository: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Git takes a directory with HEAD, objects and refs for a repository, and obeys the config in it."""
    spy = _Spy(ground)
    control = ground.root / "control"
    control.mkdir()
    for tree in (control, ground.project) if repository else ():
        _git("init", "-q", cwd=tree)
    environment = spy.environment(control)
    subprocess.run(["sh", "-c", PLANT_BARE], cwd=control, env={**os.environ, **environment}, check=True)
    assert spy.was_started(control)
    sandbox = ground.sandbox()
    assert sandbox.run(PLANT_BARE, env=spy.environment(ground.project)).exit_code != 0
    sandbox.close()
    assert not spy.was_started(ground.project)


def test_a_worktree_gets_no_config_of_the_commands_making(ground: Ground) -> None:
    """Where worktrees have configs of their own, git obeys one as soon as it is there."""
    spy = _Spy(ground)
    main = ground.root / "main"
    main.mkdir()
    _git("init", "-q", cwd=main)
    _git("config", "extensions.worktreeConfig", "true", cwd=main)
    _git("commit", "-q", "--allow-empty", "-m", "x", cwd=main)
    _git("worktree", "add", "-q", str(ground.root / "control"), cwd=main)
    ground.project.rmdir()
    _git("worktree", "add", "-q", str(ground.project), cwd=main)
    environment = spy.environment(ground.project)
    words = ["sh", "-c", PLANT_WORKTREE]
    subprocess.run(words, cwd=ground.root / "control", env={**os.environ, **environment}, check=True)
    assert spy.was_started(ground.root / "control")
    sandbox = ground.sandbox()
    assert sandbox.run("git commit -q --allow-empty -m y", env=environment).ok
    assert sandbox.run(words, env=environment).exit_code != 0
    sandbox.close()
    assert not spy.was_started(ground.project)


@pytest.mark.parametrize("name", ["commondir", "config.worktree", "hooks"])
def test_what_a_submodule_does_not_have_is_not_made(ground: Ground, name: str) -> None:
    store = ground.project / ".git" / "modules" / "lib"
    _git("init", "-q", cwd=ground.project)
    store.mkdir(parents=True)
    _git("init", "-q", "--bare", "--template=", ".", cwd=store)
    line = f"mkdir {store}/{name}.new && mv -T {store}/{name}.new {store}/{name}"
    assert ground.bare(f"{line} && rmdir {store}/{name}").returncode == 0
    sandbox = ground.sandbox()
    assert sandbox.run(line).exit_code != 0
    assert sandbox.run(f"git --git-dir={store} symbolic-ref HEAD refs/heads/other", env=GIT).ok
    sandbox.close()
    assert not (store / name).exists()


@pytest.mark.parametrize("way", ["removed and made again", "taken away and given back"])
def test_a_file_of_the_same_number_is_closed_again_for_the_next_command(ground: Ground, way: str) -> None:
    """The wall goes with the name that it lay on, even if the number of the file is the same afterwards."""
    secret, start_up = ground.outside / "secret", ground.project / ".bashrc"
    for file in (secret, start_up):
        file.write_text("first")
    sandbox = ground.sandbox(filesystem__denyRead=(str(secret),))
    line = f"cat {secret}; echo bad > .bashrc"
    assert (sandbox.run(line).stdout, start_up.read_text()) == (b"", "first")
    for file in (secret, start_up):
        other = file.with_name("other")
        os.link(file, other)
        file.unlink()
        if way == "taken away and given back":
            other.rename(file)
        else:
            other.unlink()
            file.write_text("second")
    before = start_up.read_text()
    assert (sandbox.run(line).stdout, start_up.read_text()) == (b"", before)


@pytest.mark.parametrize("name", ["kernel/shmmax", "fs/mqueue/queues_max", "kernel/hostname", "net/ipv4/ip_forward"])
def test_no_setting_of_the_kernel_is_written_not_even_of_the_sessions_own_namespaces(ground: Ground, name: str) -> None:
    """Settings of an ipc namespace belong to the user who made it, so that ownership alone would allow it."""
    sandbox = ground.sandbox()
    for _ in range(2):  # the second command meets what the first one left
        done = sandbox.run(f"cat /proc/sys/{name} && echo 1 > /proc/sys/{name}")
        assert (done.exit_code, b"Read-only file system" in done.stderr or b"denied" in done.stderr) == (1, True)
