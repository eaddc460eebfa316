"""Unix sockets by path: what the policy lists and what the session itself listens on is reached, and nothing else.

The host listens on two sockets outside: ``listed``, as an agent for keys would be, and ``closed``, as a daemon that
runs containers would be. Each counts who came.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stockade.errors import UnavailableError
from stockade.violations.violation import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.sandbox.blocking import BlockingSandbox

TRIES = 20_000 if os.environ.get("CI") else 100_000
PRELUDE = """
import ctypes, errno, os, select, signal, socket, sys, threading, time
def reach(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as end:
        end.connect(path)
        return end.recv(9)
def code(act, *arguments):
    try:
        return act(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
"""


class Service:
    """A server of the host that greets whoever comes, and counts."""

    def __init__(self, path: str, kind: int = socket.SOCK_STREAM) -> None:
        self.came = 0
        self.socket = socket.socket(socket.AF_UNIX, kind)
        self.socket.bind(path)
        if not path.startswith("\0"):
            Path(path).chmod(0o777)
        if kind != socket.SOCK_DGRAM:
            self.socket.listen(64)
            threading.Thread(target=self._greet, daemon=True).start()
        else:
            self.socket.setblocking(False)

    def _greet(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                end, _ = self.socket.accept()
                self.came += 1
                with contextlib.suppress(OSError):
                    end.send(b"hello")
                end.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Place:
    """Services of the host, and a sandbox that may reach one of them."""

    def __init__(self, ground: Any) -> None:
        self.ground = ground
        # The address of a socket has room for a hundred characters.
        self.folder = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
        self.listed, self.closed = (Service(f"{self.folder}/{name}") for name in ("listed", "closed"))
        self.mark = f"stockade-{os.urandom(6).hex()}"
        self.abstract = Service(f"\0{self.mark}")
        self.sandbox: BlockingSandbox = ground.sandbox(network__allowUnixSockets=(f"{self.folder}/listed",))

    def python(self, script: str, *words: str, **options: Any) -> Any:
        return self.sandbox.run(["python3", "-c", PRELUDE + script, *words], timeout=100, **options)

    def close(self) -> None:
        for service in (self.listed, self.closed, self.abstract):
            service.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def place(ground: Any) -> Iterator[Place]:
    place = Place(ground)
    yield place
    place.close()


def test_a_listed_socket_is_reached_and_another_is_not(place: Place) -> None:
    done = place.python("print(reach(sys.argv[1]), code(reach, sys.argv[2]))", *_paths(place))
    assert done.stdout == b"b'hello' EACCES\n"
    assert (place.listed.came, place.closed.came) == (1, 0)
    (told,) = done.violations
    assert (told.operation, told.target) == (Operation.UNIX_CONNECT, f"{place.folder}/closed")
    assert told.remedy == f'add "{place.folder}/closed" to sandbox.network.allowUnixSockets'
    allowed = place.ground.sandbox(network__allowUnixSockets=(told.target,))
    done = allowed.run(["python3", "-c", PRELUDE + "print(reach(sys.argv[1]))", told.target], timeout=60)
    assert (done.stdout, done.violations) == (b"b'hello'\n", ())


def _paths(place: Place) -> tuple[str, str]:
    return f"{place.folder}/listed", f"{place.folder}/closed"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("print(code(reach, sys.argv[1]))", id="by its path"),
        pytest.param("os.chdir(os.path.dirname(sys.argv[1])); print(code(reach, 'closed'))", id="by a relative path"),
        pytest.param("os.symlink(sys.argv[1], 'l'); print(code(reach, 'l'))", id="by a link"),
        pytest.param("os.symlink(os.path.dirname(sys.argv[1]), 'd'); print(code(reach, 'd/closed'))", id="by a folder"),
        pytest.param(
            "f = os.open(os.path.dirname(sys.argv[1]), os.O_PATH); print(code(reach, f'/proc/self/fd/{f}/closed'))",
            id="by a descriptor of its folder",
        ),
        pytest.param(
            "f = os.open(sys.argv[1], os.O_PATH); print(code(reach, f'/proc/self/fd/{f}'))", id="by a descriptor of it"
        ),
        pytest.param("print(code(reach, '/proc/self/root' + sys.argv[1]))", id="by the root"),
        pytest.param("print(code(reach, sys.argv[1], socket.SOCK_SEQPACKET))", id="by another kind"),
        pytest.param(
            "e = socket.socket(socket.AF_UNIX); e.setblocking(False); print(code(e.connect, sys.argv[1]))",
            id="without waiting",
        ),
        pytest.param(
            "t = threading.Thread(target=lambda: print(code(reach, sys.argv[1]))); t.start(); t.join()",
            id="by a thread",
        ),
        pytest.param(
            "os.fork() or (print(code(reach, sys.argv[1]), flush=True), os._exit(0)); os.wait()", id="by a child"
        ),
    ],
)
def test_a_closed_socket_is_out_of_reach_by_every_way(place: Place, script: str) -> None:
    done = place.python(script, f"{place.folder}/closed")
    assert done.stdout == b"EACCES\n", done.stderr
    assert place.closed.came == 0
    assert [(each.target, each.times) for each in done.violations] == [(f"{place.folder}/closed", 1)]


def test_a_listed_socket_is_reached_by_a_link_outside(place: Place) -> None:
    (place.folder / "alias").symlink_to("listed")
    assert place.python("print(reach(sys.argv[1]))", f"{place.folder}/alias").stdout == b"b'hello'\n"


def test_abstract_names_are_the_sessions_own(place: Place) -> None:
    script = """
print(code(reach, "\\0" + sys.argv[1]))
server = socket.socket(socket.AF_UNIX); server.bind("\\0" + sys.argv[1]); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("\\0" + sys.argv[1])
server.accept()[0].send(b"inside"); print(client.recv(9))
"""
    done = place.python(script, place.mark)
    assert (done.stdout, place.abstract.came) == (b"ECONNREFUSED\nb'inside'\n", 0)


def test_datagrams_are_refused_and_told(place: Place) -> None:
    service = Service(f"{place.folder}/datagrams", socket.SOCK_DGRAM)
    script = """
print(code(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)))
print(code(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)))
"""
    done = place.python(script)
    assert done.stdout == b"EPERM\nEPERM\n"
    with pytest.raises(BlockingIOError):
        service.socket.recv(1)
    service.close()
    (told,) = done.violations
    assert (told.target, told.remedy) == ("(datagram)", "set sandbox.network.allowAllUnixSockets to true")


def test_all_sockets_may_be_allowed(place: Place) -> None:
    sandbox = place.ground.sandbox(network__allowAllUnixSockets=True)
    done = sandbox.run(["python3", "-c", PRELUDE + "print(reach(sys.argv[1]))", f"{place.folder}/closed"], timeout=60)
    assert (done.stdout, done.violations) == (b"b'hello'\n", ())


def test_tools_talk_to_themselves(place: Place) -> None:
    script = """
import multiprocessing as m
from multiprocessing.connection import Client, Listener
def square(n): return n * n
if __name__ == "__main__":
    listener = Listener("l", "AF_UNIX")
    client = []
    t = threading.Thread(target=lambda: client.append(Client("l", "AF_UNIX"))); t.start()
    end = listener.accept(); t.join(); end.send("word"); print(client[0].recv())
    with m.Manager() as manager:
        shared = manager.dict(); shared["a"] = 1; print(dict(shared))
    with m.Pool(2) as pool:
        print(pool.map(square, [1, 2, 3]))
    one, other = socket.socketpair(); one.send(b"x"); print(other.recv(9))
    stale = socket.socket(socket.AF_UNIX); stale.bind("s"); stale.close()
    print(code(reach, "s"), code(reach, "missing"), code(reach, "."))
"""
    (place.ground.project / "tool.py").write_text(PRELUDE + script)
    done = place.sandbox.run("python3 tool.py", timeout=60)
    assert done.stdout == b"word\n{'a': 1}\n[1, 4, 9]\nb'x'\nECONNREFUSED ENOENT ECONNREFUSED\n", done.stderr
    assert done.violations == ()


def test_a_server_of_one_command_is_reached_by_another_also_in_a_new_jail(place: Place) -> None:
    script = """
server = socket.socket(socket.AF_UNIX); server.bind(".s.5432"); server.listen()
print("ready", flush=True)
while True: end, _ = server.accept(); end.send(b"served"); end.close()
"""
    with place.sandbox.spawn(["python3", "-c", PRELUDE + script]) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        first = place.python("print(reach('.s.5432'))")
        place.sandbox.update(place.ground.policy(network__allowUnixSockets=(f"{place.folder}/listed", "/run/x")))
        second = place.python("print(reach('.s.5432'))")
        server.kill()
        server.wait(60)
    assert (first.stdout, second.stdout) == (b"b'served'\n", b"b'served'\n"), second.violations


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")
def test_tmux(place: Place) -> None:
    line = """export TMUX_TMPDIR=$TMPDIR; tmux new-session -d 'sleep 30' && tmux list-sessions -F '#{session_windows}'
tmux kill-server"""
    done = place.sandbox.run(line, timeout=60)
    assert done.stdout == b"1\n", done.stderr
    # Some builds of it ask for a datagram socket as well, and do without.
    assert {violation.target for violation in done.violations} <= {"(datagram)"}


def test_connections_of_the_network_are_as_without_a_supervisor(place: Place) -> None:
    script = """
import fcntl
libc = ctypes.CDLL(None, use_errno=True)
def raw(*arguments):
    return 0 if libc.connect(*arguments) == 0 else errno.errorcode[ctypes.get_errno()]
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(); where = server.getsockname()
a = socket.socket(); a.connect(where); print(a.getpeername() == where, code(a.connect, where), a.getblocking())
b = socket.socket(); b.setblocking(False); print(code(b.connect, where)); select.select([], [b], [])
print(b.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), code(b.connect, where) in (None, "EISCONN"))
c = socket.socket(); c.settimeout(5); print(code(c.connect, where))
print(code(socket.socket().connect, ("127.0.0.1", 1)))
print(code(socket.socket(socket.AF_INET6).connect, ("::1", 1)))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print(code(u.connect, where), u.getpeername() == where)
print(raw(u.fileno(), b"\\0" * 16, 16), code(u.getpeername))
d = socket.socket()
nowhere = b"\\2\\0" + b"\\0" * 14
print(raw(d.fileno(), ctypes.c_void_p(8), 16), raw(d.fileno(), nowhere, -1), raw(99, b"", 0), raw(0, nowhere, 16))
print(raw(d.fileno(), b"\\1\\0/x\\0" + b"\\0" * 12, 16))
e = socket.socket(socket.AF_UNIX); print(raw(e.fileno(), b"\\2\\0" + b"\\0" * 14, 16))
full = socket.socket(socket.AF_UNIX); full.bind("full"); full.listen(0)
held = []
while True:
    end = socket.socket(socket.AF_UNIX); end.setblocking(False)
    if code(end.connect, "full") == "EAGAIN": break
    held.append(end)
class Alarm(Exception): pass
def ring(*_): raise Alarm
signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.2)
try: reach("full")
except Alarm: print("interrupted")
timer = threading.Timer(0.3, lambda: [full.accept() for _ in held]); timer.start()
late = socket.socket(socket.AF_UNIX); print(code(late.connect, "full"))
"""
    control = subprocess.run(
        ["python3", "-c", PRELUDE + script], cwd=place.ground.home, capture_output=True, timeout=60, check=False
    )
    inside = place.python(script)
    assert (inside.stdout.decode().splitlines(), inside.stderr) == (
        control.stdout.decode().splitlines(),
        control.stderr,
    )


RACE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un good, bad, address;
static volatile int over;
static const char *what;
static int tcp, unix_end, swapped;

static void *swap(void *unused) {
    for (unsigned turn = 0; !over; turn++) {
        if (!strcmp(what, "address")) memcpy(&address, turn & 1 ? &bad : &good, sizeof address);
        if (!strcmp(what, "descriptor")) dup2(turn & 1 ? unix_end : tcp, swapped);
        if (!strcmp(what, "path")) { unlink("swap"); symlink(turn & 1 ? bad.sun_path : good.sun_path, "swap"); }
        if (!strcmp(what, "rename")) {
            symlink(turn & 1 ? bad.sun_path : good.sun_path, "next"); rename("next", "swap");
        }
    }
    return NULL;
}

int main(int count, char **words) {
    long reached = 0, refused = 0, tries = atol(words[2]);
    what = words[1];
    good.sun_family = bad.sun_family = AF_UNIX;
    strcpy(good.sun_path, words[3]);
    strcpy(bad.sun_path, words[4]);
    address = good;
    pthread_t other;
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    unix_end = socket(AF_UNIX, SOCK_STREAM, 0);
    swapped = dup(tcp);
    pthread_create(&other, NULL, swap, NULL);
    for (long n = 0; n < tries; n++) {
        struct sockaddr_un through = {.sun_family = AF_UNIX, .sun_path = "swap"};
        int end = !strcmp(what, "descriptor") ? swapped : socket(AF_UNIX, SOCK_STREAM, 0);
        struct sockaddr_un *where = !strcmp(what, "address") ? &address : !strcmp(what, "descriptor") ? &bad : &through;
        if (connect(end, (struct sockaddr *)where, sizeof *where) == 0) {
            struct sockaddr_un peer; socklen_t length = sizeof peer;
            memset(&peer, 0, sizeof peer);
            getpeername(end, (struct sockaddr *)&peer, &length);
            if (!strcmp(peer.sun_path, bad.sun_path)) return 7;
            reached++;
        } else {
            refused++;
        }
        if (end != swapped) close(end);
    }
    over = 1;
    pthread_join(other, NULL);
    printf("%ld\n", reached + refused);
    return 0;
}
"""


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("race")
    (folder / "race.c").write_text(RACE)
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", "race", "race.c"], cwd=folder, check=True, timeout=60)
    return folder / "race"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["address", "descriptor", "path", "rename"])
def test_nothing_that_is_swapped_between_look_and_use_is_reached(place: Place, race: Path, what: str) -> None:
    shutil.copy(race, place.ground.project / "race")
    tries = TRIES // 4
    done = place.sandbox.run(["./race", what, str(tries), *_paths(place)], timeout=250)
    assert (done.exit_code, done.stdout) == (0, f"{tries}\n".encode())
    assert place.closed.came == 0
    assert {each.target for each in done.violations if each.operation is Operation.UNIX_CONNECT} <= {_paths(place)[1]}


FULL = """
import fcntl
full = socket.socket(socket.AF_UNIX); full.bind("full"); full.listen(0)
held = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for each in held:
    each.setblocking(False); code(each.connect, "full")
"""
FLIP = """
end = socket.socket(socket.AF_UNIX); end.setblocking(False)
if os.fork() == 0:
    while True: fcntl.fcntl(end, fcntl.F_SETFL, os.O_RDWR)
print("ready", flush=True)
while True: code(end.connect, "full")
"""
CROWD = """
for _ in range(200): threading.Thread(target=lambda: code(reach, "full")).start()
print("ready", flush=True)
"""
LONG_WAYS = """
here = os.path.realpath(".")
for number in range(38): os.symlink("../" * 1300 + here[1:] + f"/way{number + 1}", f"way{number}")
print("ready", flush=True)
os.fork(), os.fork()
while True: code(os.open, "way0/x", os.O_CREAT | os.O_WRONLY); code(reach, "way0/x")
"""


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(LONG_WAYS, id="by links that lead through 50,000 names"),
        pytest.param(FLIP, id="by a socket that is made to wait while the supervisor has it"),
        pytest.param(CROWD, id="by many who wait"),
    ],
)
def test_no_command_holds_up_another(place: Place, attack: str) -> None:
    with place.sandbox.spawn(["python3", "-c", PRELUDE + FULL + attack]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        work = "for n in range(200): os.mkdir(str(n)); code(reach, 'missing')\nprint('done')"
        done = place.sandbox.run(["python3", "-c", PRELUDE + work], timeout=20)
        process.kill()
        process.wait(60)
    assert done.stdout == b"done\n", done


def test_what_is_no_socket_is_not_kept_open_by_the_supervisor(place: Place) -> None:
    """A copy of a command's stream that stayed would keep its owner reading for ever."""
    script = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print({libc.connect(1, b"\\1\\0x", 3) for _ in range(20)}, ctypes.get_errno() == 88, flush=True)
"""
    with place.sandbox.spawn(["python3", "-c", script]) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"{-1} True\n"
        process.wait(60)


def test_when_the_supervisor_is_killed_the_command_ends_with_words_and_reaches_nothing(place: Place) -> None:
    script = """
print("ready", flush=True)
while True:
    code(reach, sys.argv[1]); code(os.mkdir, "/new"); time.sleep(0.01)
"""
    with place.sandbox.spawn(["python3", "-c", PRELUDE + script, f"{place.folder}/closed"]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        supervisors = _supervisors()
        assert supervisors
        for pid in supervisors:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(UnavailableError, match="helpers were killed"):
            process.wait(60).ok  # noqa: B018 - to ask is what raises
    assert place.closed.came == 0
    assert place.sandbox.run("true", timeout=60).ok


def _supervisors() -> list[int]:
    """Return the supervisors below this process: those beside the first process of a jail's pid namespace."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            ours = _descends(int(status.parent.name))
        except (OSError, ValueError):
            continue
        numbers = lines.get("NSpid", "").split()
        if ours and len(numbers) == len(_own_numbers()) + 1 and numbers[-1] != "1":
            found.append(int(status.parent.name))
    return found


def _own_numbers() -> list[str]:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(line for line in status if line.startswith("NSpid:")).split()[1:]


def _descends(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False
