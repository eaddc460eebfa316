"""Denied unix sockets: no command reaches one, whatever is allowed and by whatever detour.

The host listens in two folders: ``still``, in which commands can change nothing, and ``yard``, which they may write.
Each detour is tried by sandboxes that allow all sockets, that list both folders and that allow nothing, each with the
deny; and by one without the deny, which shows that the detour leads there.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.enforcement.test_unix_sockets import PRELUDE as REACHING
from tests.enforcement.test_unix_sockets import RACE, TRIES, Service

from stockade.errors import StockadeError
from stockade.violations.violation import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.sandbox.result import Result

PRELUDE = f"""{REACHING}
import tempfile
path = sys.argv[1]
folder, name = os.path.split(path)
libc = ctypes.CDLL(None, use_errno=True)
def raw(address):
    with socket.socket(socket.AF_UNIX) as end:
        if libc.connect(end.fileno(), b"\\1\\0" + address, 2 + len(address)):
            raise OSError(ctypes.get_errno(), "connect")
        return end.recv(9)
def ready():
    print("ready", flush=True); sys.stdin.readline()
"""


class Place:
    """Two folders with services of the host."""

    def __init__(self, ground: Any) -> None:
        self.ground = ground
        # The address of a socket has room for a hundred characters.
        self.root = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
        self.still, self.yard = self.root / "still", self.root / "yard"
        self.services: list[Service] = []
        for folder in (self.still, self.yard):
            folder.mkdir()

    def serve(self, path: Path, kind: int = socket.SOCK_STREAM) -> Service:
        self.services.append(Service(str(path), kind))
        return self.services[-1]

    def sandbox(self, *denied: Path | str, **settings: Any) -> BlockingSandbox:
        rules = {"network__denyUnixSockets": tuple(map(str, denied))} if denied else {}
        made: BlockingSandbox = self.ground.sandbox(filesystem__allowWrite=(str(self.yard),), **rules, **settings)
        return made

    def all(self, *denied: Path | str) -> BlockingSandbox:
        return self.sandbox(*denied, network__allowAllUnixSockets=True)

    def listed(self, *denied: Path | str) -> BlockingSandbox:
        return self.sandbox(*denied, network__allowUnixSockets=(str(self.still), str(self.yard)))

    def close(self) -> None:
        for service in self.services:
            service.close()
        shutil.rmtree(self.root)


@pytest.fixture
def place(ground: Any) -> Iterator[Place]:
    place = Place(ground)
    yield place
    place.close()


def _python(sandbox: BlockingSandbox, script: str, *words: object) -> Result:
    return sandbox.run(["python3", "-c", PRELUDE + script, *map(str, words)], timeout=60)


def _refused(done: Result) -> list[tuple[str, str]]:
    return [(each.target, each.rule) for each in done.violations if each.operation is Operation.UNIX_CONNECT]


WAYS = [
    pytest.param("code(reach, path)", id="by its path"),
    pytest.param("code(reach, folder + '/../' + os.path.basename(folder) + '/./' + name)", id="by a way around"),
    pytest.param("(os.chdir(folder), code(reach, name))[1]", id="by a relative path"),
    pytest.param("(os.symlink(path, 'l'), code(reach, 'l'))[1]", id="by a link"),
    pytest.param("(os.symlink('l', 'k'), os.symlink(path, 'l'), code(reach, 'k'))[2]", id="by two links"),
    pytest.param("(os.symlink(folder, 'd'), code(reach, 'd/' + name))[1]", id="by a link to its folder"),
    pytest.param("code(reach, '/proc/self/root' + path)", id="by the root"),
    pytest.param("(os.chdir(folder), code(reach, '/proc/self/cwd/' + name))[1]", id="by the working directory"),
    pytest.param("code(reach, f'/proc/self/fd/{os.open(folder, os.O_PATH)}/{name}')", id="by a descriptor"),
    pytest.param(
        "code(reach, f'/proc/self/fd/{os.open(folder, os.O_RDONLY)}/../{os.path.basename(folder)}/{name}')",
        id="by a descriptor and up",
    ),
    pytest.param("code(reach, f'/proc/self/fd/{os.open(path, os.O_PATH)}')", id="by a descriptor of it"),
    pytest.param("(os.fchdir(os.open(folder, os.O_RDONLY)), code(reach, './' + name))[1]", id="by an open directory"),
    pytest.param(
        "code(raw, folder.encode() + b'/' * (108 - len(folder) - len(name)) + name.encode())", id="by 108 bytes"
    ),
    pytest.param("code(raw, path.encode() + b'\\0' + b'x' * 20)", id="with more behind the zero"),
]


class Shared:
    """Sandboxes with a deny and one without, and what is denied, for many detours."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.services = {spot: place.serve(getattr(place, spot) / "closed") for spot in ("still", "yard")}
        denied = (place.still / "closed", place.yard / "closed")
        self.denying = (place.all(*denied), place.listed(*denied), place.sandbox(*denied))
        self.allowing = place.all()


@pytest.fixture(scope="module")
def shared(make_ground: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    place = Place(make_ground(tmp_path_factory.mktemp("denied").resolve()))
    yield Shared(place)
    place.close()


@pytest.mark.parametrize("spot", ["still", "yard"])
@pytest.mark.parametrize("script", WAYS)
def test_a_denied_socket_is_out_of_reach_by_every_way(shared: Shared, script: str, spot: str) -> None:
    path, service = getattr(shared.place, spot) / "closed", shared.services[spot]
    before = service.came
    line = f"os.chdir(os.environ['TMPDIR']); os.chdir(tempfile.mkdtemp(dir='.')); print({script})"
    for sandbox in shared.denying:
        done = _python(sandbox, line, path)
        assert done.stdout == b"EACCES\n", done.stderr
        assert _refused(done) == [(str(path), str(path))]
    assert service.came == before
    assert _python(shared.allowing, line, path).stdout == b"b'hello'\n"


MOVES = [
    pytest.param("os.link(path, folder + '/x'); print(code(reach, folder + '/x'))", id="hard link"),
    pytest.param("os.link(path, folder + '/x'); os.unlink(path); print(code(reach, folder + '/x'))", id="only link"),
    pytest.param("os.rename(path, folder + '/x'); print(code(reach, folder + '/x'))", id="rename"),
    pytest.param(
        "up = os.path.dirname(folder); os.rename(folder, up + '/x'); print(code(reach, up + '/x/' + name))",
        id="rename of its folder",
    ),
    pytest.param(
        "up = os.path.dirname(folder); os.rename(folder, up + '/x'); os.mkdir(folder)\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(path); print(code(reach, up + '/x/' + name))",
        id="another one in its place",
    ),
    pytest.param(
        "f = os.open(path, os.O_PATH); os.unlink(path); print(code(reach, f'/proc/self/fd/{f}'))", id="without a name"
    ),
]


@pytest.mark.parametrize("script", MOVES)
@pytest.mark.parametrize("rule", ["closed", "*.sock", "a relative name"])
def test_nobody_moves_a_denied_socket_to_another_name(
    place: Place, script: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = place.yard / "inner"
    path, denied = (inner / "s.sock", inner / rule) if rule == "*.sock" else (inner / "closed", inner / "closed")
    for deny in (True, False):
        for sandbox in (place.all, place.listed):
            shutil.rmtree(place.yard)
            inner.mkdir(parents=True)
            monkeypatch.chdir(inner)
            # A server that was started in that folder may give a name without it.
            service = place.serve(Path(path.name) if rule == "a relative name" else path)
            done = _python(sandbox(denied) if deny else sandbox(), script, path)
            if deny:
                assert (done.stdout, service.came) == (b"EACCES\n", 0), done.stderr
                assert _refused(done)
            elif sandbox == place.all or "unlink" not in script:
                assert done.stdout == b"b'hello'\n", done.stderr


def test_other_sockets_are_reached_as_before(place: Place) -> None:
    for folder in (place.still, place.yard):
        place.serve(folder / "closed")
        place.serve(folder / "open")
    for sandbox in (place.all, place.listed):
        done = _python(
            sandbox(place.still / "closed", place.yard / "closed"),
            "print(*(reach(each) for each in sys.argv[1:]))",
            place.still / "open",
            place.yard / "open",
        )
        assert (done.stdout, done.violations) == (b"b'hello' b'hello'\n", ())


@pytest.mark.parametrize("rule", ["{}", "{}/closed", "{}/clos*", "{}/**/closed", "{}/../*/closed", "{}/[c]lose?"])
def test_a_rule_is_a_pattern_of_places(place: Place, rule: str) -> None:
    service = place.serve(place.still / "closed")
    written = rule.format(place.still).replace(f"{place.still}/..", str(place.root))
    for sandbox in (place.all(written), place.listed(written)):
        done = _python(sandbox, "print(code(reach, path))", place.still / "closed")
        assert (done.stdout, _refused(done)) == (b"EACCES\n", [(f"{place.still}/closed", written)])
    assert service.came == 0


def test_a_rule_on_a_link_is_about_what_it_leads_to(place: Place) -> None:
    service = place.serve(place.still / "closed")
    (place.root / "linked.sock").symlink_to(place.still / "closed")
    for rule in (place.root / "linked.sock", place.root / "*.sock"):
        done = _python(place.all(rule), "print(code(reach, path))", place.still / "closed")
        assert done.stdout == b"EACCES\n"
    assert service.came == 0


def test_a_deny_holds_against_the_commands_own_servers(place: Place) -> None:
    script = """
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
os.link(path, folder + "/other")
for each in (path, folder + "/other"):
    end = socket.socket(socket.AF_UNIX); print(code(end.connect, each))
"""
    for sandbox, said in (
        (place.all(place.yard / "own"), b"EACCES\nEACCES\n"),
        (place.sandbox(place.yard / "own"), b"EACCES\nEACCES\n"),
        (place.sandbox(), b"None\nNone\n"),
    ):
        assert _python(sandbox, script, place.yard / "own").stdout == said
        shutil.rmtree(place.yard)
        place.yard.mkdir()


def test_a_pattern_holds_against_the_commands_own_servers_by_a_link(place: Place) -> None:
    script = """
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
os.symlink(path, folder + "/link"); end = socket.socket(socket.AF_UNIX); print(code(end.connect, folder + "/link"))
"""
    for sandbox, said in ((place.sandbox(place.yard / "o*n"), b"EACCES\n"), (place.sandbox(), b"None\n")):
        assert _python(sandbox, script, place.yard / "own").stdout == said
        shutil.rmtree(place.yard)
        place.yard.mkdir()


def _talk(sandbox: BlockingSandbox, script: str, words: Sequence[object], act: Any) -> bytes:
    """Run a script; when it is ready, let the host act and go on with it."""
    with sandbox.spawn(["python3", "-c", PRELUDE + script, *map(str, words)], stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        act()
        process.stdin.write(b"\n")
        process.stdin.flush()
        said = process.stdout.read()
        process.wait(60)
    assert isinstance(said, bytes)
    return said


@pytest.mark.parametrize("spot", ["still", "yard"])
@pytest.mark.parametrize("rule", ["new/closed", "new/*", "**/closed"])
def test_a_socket_that_comes_later_is_denied(place: Place, spot: str, rule: str) -> None:
    folder = getattr(place, spot)
    path = folder / "new" / "closed"

    def come() -> None:
        path.parent.mkdir()
        place.serve(path)

    assert _talk(place.all(folder / rule), "ready(); print(code(reach, path))", [path], come) == b"EACCES\n"
    shutil.rmtree(path.parent)
    assert _talk(place.all(), "ready(); print(code(reach, path))", [path], come) == b"b'hello'\n"


def test_a_link_that_comes_later_is_followed_as_well(place: Place) -> None:
    service = place.serve(place.still / "real")
    path = place.root / "way" / "real"
    script = "ready(); print(code(reach, path), code(reach, sys.argv[2]))"

    def link() -> None:
        (place.root / "way").symlink_to(place.still)

    words = [path, place.still / "real"]
    assert _talk(place.all(path), script, words, link) == b"EACCES EACCES\n"
    assert service.came == 0
    (place.root / "way").unlink()
    assert _talk(place.all(), script, words, link) == b"b'hello' b'hello'\n"


@pytest.mark.parametrize("how", ["unlink", "rename"])
@pytest.mark.parametrize("spot", ["still", "yard"])
def test_a_socket_that_the_host_replaces_stays_denied_and_so_does_the_old_one(
    place: Place, spot: str, how: str
) -> None:
    folder = getattr(place, spot)
    path = folder / "closed"
    script = """
old = os.open(path, os.O_PATH); ready()
print(code(reach, path), code(reach, f"/proc/self/fd/{old}"))
"""

    def replace() -> None:
        if how == "unlink":
            path.unlink()
            place.serve(path)
        else:
            place.serve(folder / "next")
            (folder / "next").rename(path)

    for sandbox, said in ((place.all(path), b"EACCES EACCES\n"), (place.all(), b"b'hello' b'hello'\n")):
        first = place.serve(path)
        assert _talk(sandbox, script, [path], replace) == said
        assert (first.came == 0) == (said == b"EACCES EACCES\n")
        path.unlink()


def test_another_name_of_the_host_for_the_same_file_is_denied(place: Place) -> None:
    """As by a mount of the host's: rules know the file by what its path leads to, patterns by its server's name."""
    service = place.serve(place.still / "closed")
    other = place.root / "other"
    other.hardlink_to(place.still / "closed")
    for rule in (place.still / "closed", place.still / "clos*", place.still):
        for sandbox in (place.all(rule), place.sandbox(rule, network__allowUnixSockets=(str(other),))):
            done = _python(sandbox, "print(code(reach, path))", other)
            assert (done.stdout, _refused(done)) == (b"EACCES\n", [(f"{place.still}/closed", str(rule))])
    assert service.came == 0
    assert _python(place.all(), "print(code(reach, path))", other).stdout == b"b'hello'\n"


SENDING = """
def sent(act):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end: return act(end)
def sendmmsg(end):
    class Vector(ctypes.Structure): _fields_ = [("base", ctypes.c_char_p), ("length", ctypes.c_size_t)]
    class Header(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("namelen", ctypes.c_uint), ("vector", ctypes.POINTER(Vector)),
            ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
            ("flags", ctypes.c_int), ("sent", ctypes.c_uint)]
    address = b"\\1\\0" + path.encode()
    header = Header(address, len(address), ctypes.pointer(Vector(b"x", 1)), 1, None, 0, 0, 0)
    return libc.sendmmsg(end.fileno(), ctypes.byref(header), 1, 0)
print(code(sent, lambda end: end.sendto(b"x", path)), code(sent, lambda end: end.sendmsg([b"x"], [], 0, path)),
    code(sent, sendmmsg), code(sent, lambda end: (end.connect(path), end.send(b"x"))[1]))
print(code(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b"x", path)))
"""


def test_no_datagram_goes_anywhere_where_a_socket_is_denied(place: Place) -> None:
    path = place.still / "closed"
    service = place.serve(path, socket.SOCK_DGRAM)
    done = _python(place.all(path), SENDING, path)
    assert done.stdout == b"EPERM EPERM EPERM EPERM\nEPERM\n", done.stderr
    with pytest.raises(BlockingIOError):
        service.socket.recv(1)
    (told,) = done.violations
    assert (told.target, told.remedy) == (
        "(datagram)",
        f'remove "{path}" from sandbox.network.denyUnixSockets[0] in settings.json',
    )
    assert _python(place.all(), SENDING, path).stdout == b"1 1 1 1\n1\n"
    assert [service.socket.recv(9) for _ in range(5)] == [b"x"] * 5


def test_abstract_names_are_no_paths(place: Place) -> None:
    mark = f"stockade-{os.urandom(6).hex()}"
    abstract = place.serve(Path(f"\0{mark}"))
    script = """
print(code(reach, "\\0" + path))
server = socket.socket(socket.AF_UNIX); server.bind("\\0" + path); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("\\0" + path)
server.accept()[0].send(b"inside"); print(client.recv(9))
"""
    for sandbox in (place.all(f"@{mark}", "/"), place.all()):
        assert _python(sandbox, script, mark).stdout == b"ECONNREFUSED\nb'inside'\n"
    assert abstract.came == 0


def test_no_command_passes_a_connection_to_another(place: Place) -> None:
    """Both are behind the same rules: who cannot connect has nothing to pass, and a passed socket is no other one."""
    path = place.still / "closed"
    service = place.serve(path)
    receiver = """
server = socket.socket(socket.AF_UNIX); server.bind("meeting"); server.listen()
print("ready", flush=True)
end, _ = server.accept()
_, (given,), _, _ = socket.recv_fds(end, 9, 1)
print(code(socket.socket(fileno=given).connect, path))
"""
    sender = """
end = socket.socket(socket.AF_UNIX); end.connect("meeting")
mine = socket.socket(socket.AF_UNIX); print(code(mine.connect, path)); socket.send_fds(end, [b"x"], [mine.fileno()])
"""
    sandbox = place.all(path)
    with sandbox.spawn(["python3", "-c", PRELUDE + receiver, str(path)]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert _python(sandbox, sender, path).stdout == b"EACCES\n"
        assert process.stdout.read() == b"EACCES\n"
        process.wait(60)
    assert service.came == 0


def test_no_stream_leads_to_a_denied_socket(place: Place) -> None:
    """Whoever starts a command, by a call or as a visitor, hands over no connection that the command could not make."""
    path, script = place.still / "closed", "print(socket.socket(fileno=0).recv(9))"
    place.serve(path)
    place.serve(place.still / "open")
    denying, allowing = place.all(path), place.all()
    for sandbox, name, said in (
        (denying, "closed", f"standard stream: {path}: Permission denied"),
        (denying, "open", ""),
        (allowing, "closed", ""),
    ):
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(f"{place.still}/{name}")
            words = sandbox.wrap(["python3", "-c", PRELUDE + script, "x"]).argv
            done = subprocess.run(words, stdin=end.fileno(), capture_output=True, timeout=60, check=False)
            assert said in done.stderr.decode()
            assert (done.stdout == b"") == bool(said)
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(f"{place.still}/{name}")
            with sandbox.spawn(["python3", "-c", PRELUDE + script, "x"], stdin=end.fileno()) as process:
                assert process.stdout is not None
                assert process.stdout.read() == (b"" if said else b"b'hello'\n")
                if said:
                    with pytest.raises(StockadeError, match="Permission denied"):
                        process.wait(60)
                else:
                    process.wait(60)


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("race")
    (folder / "race.c").write_text(RACE)
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", "race", "race.c"], cwd=folder, check=True, timeout=60)
    return folder / "race"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("what", ["address", "descriptor", "path", "rename"])
def test_no_denied_socket_is_reached_by_what_is_swapped_between_look_and_use(
    place: Place, race: Path, what: str
) -> None:
    good, bad = place.still / "open", place.still / "closed"
    reached, closed = place.serve(good), place.serve(bad)
    shutil.copy(race, place.ground.project / "race")
    tries = TRIES // 20
    done = place.all(bad).run(["./race", what, str(tries), str(good), str(bad)], timeout=250)
    assert (done.exit_code, done.stdout) == (0, f"{tries}\n".encode())
    assert closed.came == 0
    assert what == "descriptor" or reached.came > 0


MOVING = """
stop = time.monotonic() + 2
def move():
    while time.monotonic() < stop: os.rename(path, folder + "/x"); os.rename(folder + "/x", path)
threading.Thread(target=move).start()
found = set()
while time.monotonic() < stop: found |= {code(reach, each) for each in (path, folder + "/x")}
print(sorted(map(str, found - {"ENOENT"})))
"""


def test_a_socket_that_is_moved_while_it_is_looked_at_is_not_reached(place: Place) -> None:
    path = place.yard / "closed"
    service = place.serve(path)
    done = _python(place.all(path), MOVING, path)
    assert (done.stdout, service.came) == (b"['EACCES']\n", 0), done.stderr
    assert b"hello" in _python(place.all(), MOVING, path).stdout


def test_what_is_told_names_the_rule_its_file_and_who_can_lift_it(place: Place) -> None:
    path = place.still / "closed"
    place.serve(path)
    (told,) = _python(place.all(path), "code(reach, path)", path).violations
    assert told.text() == (
        f'connect to the socket "{path}": a rule denies this unix socket by "{path}" of settings.json (user)'
        f' at $.sandbox.network.denyUnixSockets[0]; remove "{path}" from sandbox.network.denyUnixSockets[0]'
        " in settings.json"
    )


def test_a_deny_that_comes_while_a_session_runs_holds_for_the_next_command(place: Place) -> None:
    path = place.still / "closed"
    place.serve(path)
    sandbox = place.all()
    assert _python(sandbox, "print(code(reach, path))", path).stdout == b"b'hello'\n"
    sandbox.update(
        place.ground.policy(network__allowAllUnixSockets=True, network__denyUnixSockets=(str(path),)),
    )
    assert _python(sandbox, "print(code(reach, path))", path).stdout == b"EACCES\n"
