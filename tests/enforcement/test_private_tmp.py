"""A session's own ``/tmp``: written by its commands alone, read through to the host's, which never changes.

Each test has a directory of the host's in ``/tmp``, with a file, a secret, a directory and a link; its project lies
elsewhere. What the host has is compared before and after.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stockade import BlockingSandbox, load_policy
from stockade.platforms.runtime_directory import runtime_directory
from stockade.policy.files import Access, Reason, judge
from stockade.policy.places import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 60.0


class Host:
    """What the host has in ``/tmp``."""

    def __init__(self, ground: Any) -> None:
        self.ground = ground
        self.folder = Path(tempfile.mkdtemp(prefix="private-", dir="/tmp"))
        self.folder.chmod(0o755)
        (self.folder / "file").write_text("host\n")
        (self.folder / "secret").write_text("canary\n")
        (self.folder / "folder" / "inner").mkdir(parents=True)
        (self.folder / "folder" / "inner" / "deep").write_text("deep\n")
        (self.folder / "link").symlink_to("file")
        self.before = self.snapshot()

    def snapshot(self) -> object:
        return self.ground.snapshot(self.folder)

    def sandbox(self, **settings: Any) -> Any:
        return self.ground.sandbox(**settings)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def host(ground: Any) -> Iterator[Host]:
    host = Host(ground)
    yield host
    host.close()


def _run(sandbox: Any, line: str, **options: Any) -> Any:
    return sandbox.run(["sh", "-c", line], timeout=PATIENCE, **options)


def _python(sandbox: Any, script: str, *words: str) -> Any:
    return sandbox.run(["python3", "-c", script, *words], timeout=PATIENCE)


def test_what_commands_write_is_shared_by_them_and_nobody_else_sees_it(host: Host) -> None:
    name = f"/tmp/of-a-command-{os.urandom(6).hex()}"
    first, second = host.sandbox(), host.sandbox()
    made = _run(first, f"mkdir {name} && echo one > {name}/file && stat -c '%a %F' /tmp")
    assert (made.exit_code, made.stdout, made.violations) == (0, b"1777 directory\n", ())
    assert _run(first, f"cat {name}/file").stdout == b"one\n"
    assert _run(second, f"cat {name}/file").exit_code != 0
    assert not os.path.lexists(name)


def test_a_new_plan_shows_the_same_contents_to_old_and_new_commands(host: Host) -> None:
    name = f"/tmp/of-a-command-{os.urandom(6).hex()}"
    sandbox = host.sandbox()
    line = f"echo early > {name}; until [ -e {name}.answer ]; do sleep 0.05; done"
    with sandbox.spawn(["sh", "-c", line]) as old:
        _see_the_same(sandbox, host, name)
        assert old.wait(timeout=PATIENCE).exit_code == 0


def _see_the_same(sandbox: Any, host: Host, name: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while _run(sandbox, f"cat {name}").stdout != b"early\n":
        assert time.monotonic() < deadline
    for number in range(3):  # a protected name that appears makes another plan, and another jail
        (host.ground.project / f"r{number}" / ".vscode").mkdir(parents=True)
        done = _run(sandbox, f"cat {name}; echo late > {name}.{number}; touch r{number}/.vscode/x")
        assert done.stdout == b"early\n"
        assert b"Read-only" in done.stderr or b"Permission denied" in done.stderr
    assert _run(sandbox, f"ls {name}*; touch {name}.answer").stdout.split() == [
        os.fsencode(each) for each in (name, f"{name}.0", f"{name}.1", f"{name}.2")
    ]


def test_the_host_can_be_read_and_never_changes(host: Host) -> None:
    line = (
        "cat file link folder/inner/deep && echo mine > file && cat file && rm secret && rm -r folder && mkdir folder"
        " && chmod 600 link && mv file moved && ln moved again && truncate -s 0 again && ls"
    )
    done = _run(host.sandbox(), f"cd {host.folder} && {line}")
    assert done.stdout == b"host\nhost\ndeep\nmine\nagain\nfolder\nlink\nmoved\n", done.stderr
    assert done.violations == ()
    assert host.snapshot() == host.before


#: Each tries to reach the host's own file; whatever it does, that must stay as it was.
TRICKS = {
    "a hard link": "os.link('file', 'twin'); open('twin', 'w').write('x')",
    "a descriptor that was opened for reading": (
        "f = os.open('file', os.O_RDONLY); g = os.open(f'/proc/self/fd/{f}', os.O_RDWR); os.write(g, b'x')"
    ),
    "a mapping from before the copy": (
        "f = os.open('file', os.O_RDONLY); m = mmap.mmap(f, 0, mmap.MAP_SHARED, mmap.PROT_READ)\n"
        "open('file', 'w').write('x'); g = os.open('file', os.O_RDWR); os.ftruncate(g, 4096)\n"
        "n = mmap.mmap(g, 4096); n[:1] = b'y'; n.flush()"
    ),
    "a file without a name": (
        "f = os.open('.', os.O_TMPFILE | os.O_RDWR); os.write(f, b'x')\n"
        "os.link(f'/proc/self/fd/{f}', 'named', follow_symlinks=True); os.replace('named', 'file')"
    ),
    "an exchange": (
        "open('other', 'w').write('x')\nlibc.renameat2(-100, b'other', -100, b'file', 2); open('other', 'w').write('y')"
    ),
    "its mode": "os.chmod('file', 0o777); os.utime('file', (1, 1)); os.utime('folder', (1, 1))",
    "an attribute": "os.setxattr('file', 'user.mark', b'x')",
    "attributes that steer layers": (
        "for name in ('redirect', 'opaque', 'metacopy', 'origin', 'whiteout'):\n"
        "    for target in ('file', 'folder'):\n"
        "        try: os.setxattr(target, 'user.overlay.' + name, b'/secret')\n"
        "        except OSError: pass\n"
        "open('file', 'a').write('x')"
    ),
    "a whiteout": "os.mknod('node', stat.S_IFCHR | 0o600, 0)",
    "a directory that is moved": "os.rename('folder', 'elsewhere')",
    "a pipe and a device": "os.mkfifo('pipe'); os.mknod('null', stat.S_IFCHR | 0o666, os.makedev(1, 3))",
}


@pytest.mark.parametrize("script", TRICKS.values(), ids=TRICKS)
def test_no_trick_changes_the_host(host: Host, script: str) -> None:
    prelude = "import ctypes, mmap, os, stat, sys\nlibc = ctypes.CDLL(None)\nos.chdir(sys.argv[1])\n"
    _python(host.sandbox(), prelude + script, str(host.folder))
    assert host.snapshot() == host.before


def test_the_tricks_change_the_host_where_there_are_no_walls(host: Host) -> None:
    """The control."""
    prelude = "import ctypes, mmap, os, stat, sys\nlibc = ctypes.CDLL(None)\nos.chdir(sys.argv[1])\n"
    words = [sys.executable, "-c", prelude + TRICKS["a hard link"], str(host.folder)]
    subprocess.run(words, check=True, timeout=PATIENCE)
    assert host.snapshot() != host.before


def test_a_device_is_none_and_no_program_gains_rights(host: Host) -> None:
    options = next(
        line.split()[5].split(",")
        for line in _run(host.sandbox(), "cat /proc/self/mountinfo").stdout.decode().splitlines()
        if line.split()[4] == "/tmp"
    )
    assert {"nosuid", "nodev"} <= set(options)


def test_private_directories_of_sessions_stay_hidden(host: Host) -> None:
    other = host.sandbox()
    theirs = _run(other, "echo theirs > /tmp/theirs; echo theirs > $TMPDIR/file; echo $TMPDIR").stdout.decode().strip()
    base, layers = os.path.dirname(theirs), runtime_directory()
    assert Path(theirs, "file").read_text() == "theirs\n"  # the control: it is there
    script = (
        "import os, sys\n"
        "def tried(act, *arguments):\n"
        "    try: return act(*arguments)\n"
        "    except OSError as error: return type(error).__name__\n"
        "theirs, *bases = sys.argv[1:]\n"
        "print(tried(os.listdir, theirs), *(tried(os.listdir, base) for base in bases))\n"
        "moved = [tried(os.rename, base, base + '.moved') for base in bases]\n"
        "print(*moved, *(tried(os.rmdir, base) for base in bases))\n"
        "top = os.open(os.path.dirname(bases[0]), os.O_RDONLY)\n"
        "f = os.open(os.path.basename(bases[0]), os.O_PATH, dir_fd=top)\n"
        "print(tried(os.listdir, f'/proc/self/fd/{f}'), tried(os.open, os.path.basename(theirs), 0, 0o700))\n"
    )
    done = _python(host.sandbox(), script, theirs, base, layers)
    first, second, third = done.stdout.decode().splitlines()
    assert set(first.split()) <= {"PermissionError", "FileNotFoundError"}, done.stdout
    assert set(second.split()) == {"OSError"}, done.stdout  # busy
    assert third.split()[0] == "PermissionError"
    assert _run(other, "cat /tmp/theirs").stdout == b"theirs\n"


@pytest.mark.parametrize("what", ["secret", "folder"])
def test_what_is_denied_stays_hidden(host: Host, what: str) -> None:
    path = host.folder / what
    script = (
        "import os, sys\n"
        "def tried(act, *arguments):\n"
        "    try: return act(*arguments)\n"
        "    except OSError as error: return error.errno\n"
        "path = sys.argv[1]; above, name = os.path.split(path)\n"
        "f = os.open(above, os.O_RDONLY)\n"
        "print(tried(os.open, path, 0), tried(os.listdir, path), tried(os.link, path, path + '2'))\n"
        "print(tried(os.rename, path, path + '2'), tried(os.unlink, path), tried(os.rmdir, path))\n"
        "print(tried(os.rename, above, above + '2'), tried(os.chmod, path, 0o777))\n"
        "p = os.open(path, os.O_PATH); print(tried(os.open, f'/proc/self/fd/{p}', 0))\n"
        "os.symlink(path, above + '/way'); print(tried(os.open, above + '/way', 0))\n"
    )
    done = _python(host.sandbox(filesystem__denyRead=(str(path),)), script, str(path))
    assert done.exit_code == 0, done.stderr
    assert all(int(word) > 0 for word in done.stdout.decode().split()), done.stdout
    assert host.snapshot() == host.before


def test_a_name_that_is_denied_and_missing_cannot_be_made(host: Host) -> None:
    sandbox = host.sandbox(filesystem__denyWrite=(f"{host.folder}/none", f"{host.folder}/new/deep"))
    line = "echo x > none; mkdir none; rm -f none; mkdir -p new/deep; rm -rf new; ls"
    done = _run(sandbox, f"cd {host.folder} && {line}")
    assert not (host.folder / "none").exists()
    assert done.stdout.split() == [b"file", b"folder", b"link", b"new", b"none", b"secret"]
    assert host.snapshot() == host.before
    assert _run(sandbox, f"test -s {host.folder}/none || test -d {host.folder}/new").exit_code != 0


def test_a_rule_that_comes_later_finds_the_place_even_if_a_command_has_put_something_else_there(host: Host) -> None:
    with_rule = host.ground.policy(filesystem__allowWrite=(str(host.folder / "folder"),))
    sandbox = host.sandbox()
    done = _run(sandbox, f"cd {host.folder} && rm -r folder && ln -s /etc folder && ls -d folder")
    assert done.stdout == b"folder\n"
    sandbox.update(with_rule)
    done = _run(sandbox, f"cat {host.folder}/folder/inner/deep && touch {host.folder}/folder/real")
    assert done.stdout == b"deep\n", done.stderr
    assert (host.folder / "folder" / "real").exists()


@pytest.mark.parametrize(
    ("settings", "outcome"),
    [
        pytest.param({"filesystem__privateTmp": False}, "closed", id="switched off"),
        pytest.param({"network__allowAllUnixSockets": True}, "closed", id="all sockets are open"),
        pytest.param({"filesystem__denyWrite": ("/tmp",)}, "closed", id="denied"),
        pytest.param({"filesystem__denyRead": ("/tmp",)}, "hidden", id="hidden"),
        pytest.param({"filesystem__allowWrite": ("/tmp",)}, "real", id="open"),
        pytest.param({}, "private", id="usual"),
    ],
)
def test_rules_about_the_place_itself_win(host: Host, settings: dict[str, Any], outcome: str) -> None:
    name = host.folder / "new"
    sandbox = host.sandbox(**settings)
    done = _run(sandbox, f"echo x > {name}; cat {name}; cat {host.folder}/file")
    expected = {"closed": b"host\n", "hidden": b"", "real": b"x\nhost\n", "private": b"x\nhost\n"}
    assert done.stdout == expected[outcome], done.stderr
    assert name.exists() == (outcome == "real")
    policy = host.ground.policy(**settings)
    verdict = judge(policy.files, Access.WRITE, str(host.folder / "other"), Disk())
    assert verdict.allowed == (outcome in {"real", "private"})
    assert (verdict.reason is Reason.PRIVATE) == (outcome == "private")


def test_a_project_below_is_the_real_one(host: Host) -> None:
    project = host.folder / "project"
    (project / ".git" / "hooks").mkdir(parents=True)
    sandbox = host.sandbox(filesystem__allowWrite=(str(project),), filesystem__denyWrite=(f"{project}/closed",))
    done = _run(
        sandbox, f"cd {project} && echo x > made; echo x > .git/hooks/evil; touch closed; cd .. && mv project p2"
    )
    assert done.exit_code != 0
    assert (project / "made").read_text() == "x\n"
    assert not any((project / ".git" / "hooks").iterdir())
    assert not (project / "closed").exists() or not (project / "closed").is_file()


def test_on_the_way_to_a_project_below_nothing_is_held_and_the_host_has_no_settings_of_a_commands_making(
    host: Host,
) -> None:
    project = host.folder / "project"
    (project / ".stockade").mkdir(parents=True)
    settings = project / ".stockade" / "settings.json"
    settings.write_text("{}")
    with BlockingSandbox(load_policy(project)) as sandbox:
        line = f"ls -A ..; mkdir -p ../.claude && echo x > ../.claude/settings.json; echo x > {settings}"
        done = _run(sandbox, line)
    assert done.stdout.split() == [b"file", b"folder", b"link", b"project", b"secret"]
    assert done.exit_code != 0
    assert settings.read_text() == "{}"
    assert not (host.folder / ".claude").exists()


def test_own_sockets_and_pipes_connect_commands_of_a_session(host: Host) -> None:
    name = f"/tmp/{os.urandom(6).hex()}"
    sandbox = host.sandbox()
    serve = (
        f"import socket; s = socket.socket(socket.AF_UNIX); s.bind('{name}'); s.listen()\n"
        "s.settimeout(50); e, _ = s.accept(); e.send(b'hello')"
    )
    reach = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{name}'); print(s.recv(9))"
    with sandbox.spawn(["python3", "-c", serve]) as server:
        deadline = time.monotonic() + PATIENCE
        while _run(sandbox, f"test -S {name}").exit_code:
            assert time.monotonic() < deadline
        done = _python(sandbox, reach)
        assert (done.stdout, done.violations) == (b"b'hello'\n", ()), done.stderr
        assert server.wait(timeout=PATIENCE).exit_code == 0
    assert _run(sandbox, f"mkfifo {name}.pipe; echo through > {name}.pipe & cat {name}.pipe").stdout == b"through\n"


def _greet(service: socket.socket) -> None:
    service.settimeout(PATIENCE)
    with contextlib.suppress(OSError):
        end, _ = service.accept()
        with end:
            end.send(b"host")


def test_a_command_cannot_pass_its_own_socket_for_a_listed_one_of_the_host(host: Host) -> None:
    """The listed name means the host's file, unless the session itself listens there."""
    path = f"{host.folder}/agent"
    with socket.socket(socket.AF_UNIX) as service, contextlib.ExitStack() as stack:
        service.bind(path)
        service.listen()
        closed = stack.enter_context(socket.socket(socket.AF_UNIX))
        closed.bind(f"{host.folder}/closed")
        closed.listen()
        greeter = threading.Thread(target=_greet, args=(service,))
        greeter.start()
        script = (
            "import os, socket, sys\n"
            "def reach(path, patience=20):\n"
            "    with socket.socket(socket.AF_UNIX) as end:\n"
            "        end.settimeout(patience)\n"
            "        try: end.connect(path); return end.recv(9)\n"
            "        except OSError as error: return type(error).__name__\n"
            "path, closed = sys.argv[1:]\n"
            "print(reach(path), reach(closed))\n"
            "os.rename(path, path + '.old'); os.rename(closed, path); print(reach(path, 1) != b'')\n"
        )
        done = _python(host.sandbox(network__allowUnixSockets=(path,)), script, path, f"{host.folder}/closed")
        assert done.stdout.splitlines()[0] == b"b'host' PermissionError", done.stdout + done.stderr
        greeter.join(PATIENCE)
        closed.settimeout(0.2)
        with pytest.raises(TimeoutError):
            closed.accept()


def test_every_socket_of_the_host_is_reached_where_the_policy_opens_all(host: Host) -> None:
    path = f"{host.folder}/any"
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(path)
        service.listen()
        greeter = threading.Thread(target=_greet, args=(service,))
        greeter.start()
        script = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9))"
        done = _python(host.sandbox(network__allowAllUnixSockets=True), script, path)
        greeter.join(PATIENCE)
        assert done.stdout == b"b'host'\n", done.stderr


#: Prints where what commands write in /tmp lies on the host.
UPPER = """sed -n 's,.* /tmp .*upperdir=\\([^\\,]*\\)/upper0.*,\\1,p' /proc/self/mountinfo"""


def test_it_is_gone_with_the_session_whatever_is_in_it(host: Host) -> None:
    sandbox = host.sandbox()
    layers = Path(_run(sandbox, UPPER).stdout.decode().strip())
    line = (
        f"cd {host.folder} && rm -r folder secret && mkdir -p a/b/c/d && chmod 0 a/b/c && touch a/x && chmod 500 a"
        "; mkdir /tmp/many; cd /tmp/many; seq 3000 | xargs touch; ls | wc -l"
    )
    assert _run(sandbox, line).stdout == b"3000\n"
    assert (layers / "upper0" / "many").is_dir()
    assert _run(sandbox, f"ls {layers}").exit_code != 0
    sandbox.close()
    assert not layers.exists()
    assert host.snapshot() == host.before


def test_it_is_gone_after_its_owner_was_killed(host: Host) -> None:
    script = (
        "import sys\n"
        "from stockade.sandbox.blocking import BlockingSandbox\n"
        "from stockade.policy.compile import compile_policy\n"
        "from stockade.settings.merge import merge\n"
        "policy = compile_policy(merge([]), cwd=sys.argv[1], home='/nonexistent')\n"
        "sandbox = BlockingSandbox(policy).__enter__()\n"
        "done = sandbox.run(['sh', '-c', 'mkdir -p /tmp/a/b; echo x > /tmp/a/b/c; ' + sys.argv[2]])\n"
        "print(done.stdout.decode(), end='', flush=True); sys.stdin.read()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", script, str(host.ground.project), UPPER]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as owner:
        assert owner.stdout is not None
        layers = Path(owner.stdout.readline().decode().strip())
        assert (layers / "upper0" / "a" / "b" / "c").read_text() == "x\n"
        os.kill(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while layers.exists():
        assert time.monotonic() < deadline, "the layers are still there"
        time.sleep(0.05)


def test_the_plan_says_so(host: Host) -> None:
    from stockade.filesystem.scan import plan_now

    plan = plan_now(host.ground.policy().files)
    assert [(str(mount.operation.value), mount.path) for mount in plan.mounts if mount.path == "/tmp"] == [
        ("private", "/tmp")
    ]
