"""SIGKILL at random moments, of the owner and of each of its helpers: the command dies and nothing stays.

Two hundred kills in all by default (STOCKADE_KILLS sets another number), spread over the faces of the sandbox and the
moments of its life. The moments are random; STOCKADE_KILLS_SEED repeats those of an earlier run, as far as the machine
does. Every scene has a directory of its own whose name is in the arguments or the environment of each process that
belongs to it, and in the path of each file.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from stockade.platforms.linux.journal import record_name
from stockade.platforms.linux.placeholders import journal_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = Path(__file__).with_name("killed_owner.py")
SEED = int(os.environ.get("STOCKADE_KILLS_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
KILLS = int(os.environ.get("STOCKADE_KILLS", "200"))
#: How the kills are spread, in parts of a hundred.
SHARES: Final = {
    ("owner", "cli"): 15,
    ("owner", "blocking"): 13,
    ("owner", "asyncio"): 13,
    ("helper", "cli"): 15,
    ("helper", "blocking"): 22,
    ("helper", "asyncio"): 22,
}
#: Scenes of one test that go on at the same time.
AT_ONCE = 3
#: Far more than anything here takes; whatever takes longer hangs.
PATIENCE = 40.0
PAUSE = 0.01
#: Lives for a moment, with a child that would outlive it.
LINE = "setsid sleep 1000 & sleep 0.15; echo done"
LONG_LINE = "setsid sleep 1000 & sleep 1; echo done"
HELPERS = ("keeper", "launcher", "first process")
MOMENTS = ("start", "idle", "1", "5", "build", "close")


class Scene:
    """A project, a home and a directory for temporary files, all of which bear the scene's mark."""

    def __init__(self, root: Path, seed: str) -> None:
        self.random = random.Random(f"{SEED} {seed}")  # noqa: S311 - chooses moments
        self.story = [f"STOCKADE_KILLS_SEED={SEED}, scene {seed}"]
        self.mark = f"scene-{os.urandom(8).hex()}"
        self.root = root.resolve() / self.mark
        self.project, self.home, self.temporary = self.root / "project", self.root / "home", self.root / "tmp"
        for folder in (self.project / "sub", self.project / ".git/hooks", self.home, self.temporary):
            folder.mkdir(parents=True)
        self.files = self._files()
        self.started: subprocess.Popen[str] | None = None
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(SOURCE),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def tell(self, text: str) -> None:
        self.story.append(text)

    def told(self, *more: object) -> str:
        return "\n".join([*self.story, *map(str, more)])

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        self.started = subprocess.Popen(
            [sys.executable, *words],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self.started

    def end(self) -> None:
        """End what was started last, which a test that has failed left behind."""
        if self.started is not None and self.started.returncode is None:
            self.started.kill()
            self.started.communicate()

    def command_line(self, line: str = LINE) -> subprocess.Popen[str]:
        return self.start(["-m", "stockade", "run", "-c", line])

    def change_plan(self) -> None:
        """Make a protected file, or remove it: either way the walls must be built anew."""
        file = self.project / "sub/.bashrc"
        if file.exists():
            file.unlink()
        else:
            file.write_text("x")
        self.files ^= {str(file)}

    def processes(self, *, but: int = 0) -> list[str]:
        """Return what is alive of this scene."""
        return [f"{pid}: {words}" for pid, words in _marked(self.mark.encode()) if pid != but]

    def commands(self) -> list[str]:
        """Return what is alive of this scene's commands."""
        return [each for each in self.processes() if "sleep" in each and "python" not in each]

    def leavings(self) -> list[str]:
        """Return all that is left on the host, but processes."""
        found = [
            f"mount: {line}" for line in Path("/proc/self/mountinfo").read_text().splitlines() if self.mark in line
        ]
        found += [f"file: {path}" for path in sorted(self._files() ^ self.files)]
        found += [f"temporary: {path}" for path in self.temporary.glob("stockade-*/*")]
        return found + [f"record: {path}" for path in self._records()]

    def _files(self) -> set[str]:
        with suppress(FileNotFoundError):
            return {str(path) for path in self.project.rglob("*")}
        return self._files()  # one went while it was looked at

    def _records(self) -> Iterator[str]:
        journals = Path(journal_directory())
        own = self._record_names()
        for path in journals.iterdir():
            with suppress(FileNotFoundError):
                if path.name in own or self.mark.encode() in path.read_bytes():
                    yield str(path)

    def _record_names(self) -> set[str]:
        with suppress(FileNotFoundError):
            folders = (self.project, *(path for path in self.project.rglob("*") if path.is_dir()))
            return {record_name(status.st_dev, status.st_ino) for status in map(os.stat, folders)}
        return self._record_names()  # a placeholder went while it was looked at

    def require_end(self, owner: int = 0) -> None:
        """Demand that all processes end by themselves, but for an owner that lives."""
        if not _comes_true(lambda: not self.processes(but=owner)):
            pytest.fail(self.told("still alive:", *self.processes(but=owner)))

    def require_rest(self, owner: int = 0) -> None:
        """Demand that all processes end by themselves; and what files they leave, the next start removes."""
        self.require_end(owner)
        if owner:
            left = self.leavings()
            assert left == [], self.told("the owner lives and has left:", *left)
        elif self.leavings():
            self.tell(f"left to the next start: {self.leavings()}")
            done = self.command_line("true")
            said = done.communicate(timeout=PATIENCE)
            assert (done.returncode, *said) == (0, "", ""), self.told("the next start failed")
            if not _comes_true(lambda: not self.leavings() and not self.processes()):
                pytest.fail(self.told("the next start has left:", *self.leavings(), *self.processes()))


def _marked(mark: bytes) -> Iterator[tuple[int, str]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            for file in ("cmdline", "environ"):
                # Either may be out of reach: the helpers let nobody look at them, and processes end.
                with suppress(OSError):
                    if mark in Path("/proc", name, file).read_bytes():
                        words = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ")
                        yield int(name), words.decode(errors="replace")
                        break


def _comes_true(fact: Callable[[], object]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)
    return True


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split())
    return found


def _below(pid: int) -> list[int]:
    return [each for child in _children(pid) for each in (child, *_below(child))]


def _helpers(owner: int, kind: str) -> list[int]:
    """Return the processes of one kind; by their place, since they are forks of each other."""
    found = [owner]
    for _ in range(HELPERS.index(kind) + 1):
        found = [child for pid in found for child in _children(pid)]
    return found


def _is_dead(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


class Owner:
    """A program with a sandbox of its own."""

    def __init__(self, scene: Scene, face: str, line: str = LINE) -> None:
        self.scene = scene
        self.program = scene.start([str(PROGRAM), face, str(scene.project), line])
        self.pid = self.program.pid

    def say(self, word: str) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write(f"{word}\n")
        self.program.stdin.flush()

    def has_answered(self, seconds: float) -> bool:
        assert self.program.stdout is not None
        return bool(select.select([self.program.stdout], [], [], seconds)[0])

    def hear(self) -> list[str]:
        assert self.has_answered(PATIENCE), self.scene.told("the owner hangs", *self.scene.processes())
        assert self.program.stdout is not None
        answer = self.program.stdout.readline()
        if not answer:
            self.end()
            pytest.fail(self.scene.told("the owner has ended", *self.said))
        said: list[str] = json.loads(answer)
        return said

    def ask(self, word: str) -> list[str]:
        self.say(word)
        return self.hear()

    def end(self) -> int:
        """Wait for its end."""
        self.said = self.program.communicate(timeout=PATIENCE)
        return self.program.returncode

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert self.end() == -signal.SIGKILL, self.scene.told("the owner ended before", *self.said)


def _strike(scene: Scene, owner: int, kind: str, is_over: Callable[[], bool]) -> list[int] | None:
    """Kill one helper of a kind as soon as there is one; return it and what was below, if there was one in time."""
    while not (found := _helpers(owner, kind)):
        if is_over():
            return None
        time.sleep(0.001)
    victim = scene.random.choice(found)
    doomed = [victim, *_below(victim)]
    if kind == "first process" and (launcher := _launcher_of(victim)):
        doomed = [launcher, *_below(launcher)]
    with suppress(ProcessLookupError):
        os.kill(victim, signal.SIGKILL)
        return doomed
    return None


def _launcher_of(process: int) -> int:
    """Return the launcher that ends with a process, if that is its supervisor: they share a pid namespace."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        above = Path(f"/proc/{int(status['PPid'])}/status").read_text()
    except (OSError, ValueError):
        return 0
    numbers = next(line for line in above.splitlines() if line.startswith("NSpid:")).split()[1:]
    return int(status["PPid"]) if len(numbers) == len(status["NSpid"].split()) else 0


def _allowed(ending: str) -> bool:
    """Tell whether a command may end so when a helper is killed: it was too late, or it died, or there are words."""
    return ending in {"0", "signal 9"} or ending.startswith(("StockadeError: ", "UnavailableError: "))


def _spread(root: Path, victim: str, face: str, play: Callable[[Scene, int], None]) -> None:
    """Have scenes played at the same time until the share of kills is done."""
    quota = max(1, KILLS * SHARES[victim, face] // 100)
    scenes = [Scene(root, f"{victim} {face} {number}") for number in range(min(AT_ONCE, quota))]
    shares = {scene: len(range(number, quota, len(scenes))) for number, scene in enumerate(scenes)}
    _at_once(scenes, lambda scene: play(scene, shares[scene]))


def _at_once(scenes: list[Scene], play: Callable[[Scene], None]) -> None:
    with ThreadPoolExecutor(len(scenes)) as pool:
        played = [pool.submit(play, scene) for scene in scenes]
    for scene in scenes:
        scene.end()
    for each in played:
        each.result()


def test_the_shares_are_a_whole() -> None:
    assert sum(SHARES.values()) == 100


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
def test_an_owner_that_is_killed_leaves_nothing(tmp_path: Path, face: str) -> None:
    def play(scene: Scene, kills: int) -> None:
        began = time.monotonic()
        owner = Owner(scene, face)
        owner.hear()
        assert (owner.ask("open"), owner.ask("try")) == ([], ["0"]), scene.told()
        life = time.monotonic() - began
        owner.kill()
        for number in range(1, kills):
            scene.require_rest()
            moment = MOMENTS[number % len(MOMENTS)]
            _kill_owner(scene, face, moment, life)
        scene.require_rest()

    _spread(tmp_path, "owner", face, play)


def _kill_owner(scene: Scene, face: str, moment: str, life: float) -> None:
    owner = Owner(scene, face)
    if moment == "start":
        owner.say("open")
        delay = scene.random.uniform(0, life)
    else:
        owner.hear()
        assert (owner.ask("open"), owner.ask("try")) == ([], ["0"]), scene.told()
        delay = scene.random.uniform(0, 0.02 if moment == "close" else life / 2)
        if moment == "build":
            scene.change_plan()
        if moment != "idle":
            owner.say("try" if moment == "build" else moment)
    scene.tell(f"owner, {moment}, after {delay:.4f}")
    time.sleep(delay)
    owner.kill()


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
def test_an_owner_whose_helper_is_killed_hears_of_it_and_goes_on(tmp_path: Path, face: str) -> None:
    def play(scene: Scene, kills: int) -> None:
        owner = Owner(scene, face)
        owner.hear()
        took = {word: _duration(owner, word) for word in ("open", "try", "1", "5", "close")}
        held = owner.ask("hold")
        assert owner.ask("open") == [], scene.told()
        killed = turn = 0
        while killed < kills:
            turn += 1
            assert turn < 10 * kills, scene.told("there is nobody to kill")
            killed += _kill_helper(owner, turn, took)
        assert owner.ask("close") == [], scene.told()
        scene.require_rest(owner.pid)
        assert owner.ask("hold") == held, scene.told("descriptors or children have stayed")
        assert owner.end() == 0, scene.told(*owner.said)
        scene.require_rest()

    _spread(tmp_path, "helper", face, play)


def _duration(owner: Owner, word: str) -> float:
    began = time.monotonic()
    answer = owner.ask(word)
    assert set(answer) <= {"0"}, owner.scene.told(word, answer)
    return time.monotonic() - began


def _kill_helper(owner: Owner, turn: int, took: dict[str, float]) -> bool:
    """Kill one helper of an owner with an open sandbox, and leave it with an open one; tell whether there was one."""
    scene = owner.scene
    moment, kind = MOMENTS[turn % len(MOMENTS)], scene.random.choice(HELPERS)
    word = {"start": "open", "build": "try", "idle": ""}.get(moment, moment)
    if moment == "start":
        assert owner.ask("close") == [], scene.told()
    if moment == "build":
        scene.change_plan()
    delay = scene.random.uniform(0, took["open" if moment in {"start", "build"} else word or "open"])
    scene.tell(f"{kind}, {moment}, after {delay:.4f}")
    if word:
        owner.say(word)
    time.sleep(delay)
    doomed = _strike(scene, owner.pid, kind, lambda: owner.has_answered(0) or not word)
    endings = owner.hear() if word else []
    scene.tell(f"killed {doomed}: {endings}")
    assert all(map(_allowed, endings)), scene.told()
    assert scene.commands() == [], scene.told("commands have outlived their end:", *scene.commands())
    if doomed and kind != "keeper" and moment in {"start", "build"}:
        # It may be the builder of the walls, which a launcher outlives, or a process that only helps the builder.
        del doomed[1:]
    assert _comes_true(lambda: all(map(_is_dead, doomed or ()))), scene.told("not dead:", *scene.processes())
    if moment == "close":
        scene.require_rest(owner.pid)
    if moment == "close" or (moment == "start" and endings):
        assert owner.ask("open") == [], scene.told("it cannot be opened again")
    again = owner.ask("try")
    assert again == ["0"], scene.told(f"the next command fails: {again}")
    return doomed is not None


@pytest.mark.parametrize("victim", ["owner", "helper"])
def test_a_command_line_that_is_killed_or_robbed_of_a_helper_leaves_nothing(tmp_path: Path, victim: str) -> None:
    def play(scene: Scene, kills: int) -> None:
        life = _life(scene)
        killed = turn = 0
        while killed < kills:
            turn += 1
            assert turn < 10 * kills, scene.told("there is nobody to kill")
            program = scene.command_line()
            kind = scene.random.choice(HELPERS) if victim == "helper" else victim
            delay = scene.random.uniform(0, life)
            scene.tell(f"{kind}, after {delay:.4f}")
            time.sleep(delay)
            killed += _kill_of(scene, program, kind)
            scene.require_rest()

    _spread(tmp_path, victim, "cli", play)


def _life(scene: Scene) -> float:
    """Return how long a command line takes that nobody disturbs."""
    began = time.monotonic()
    program = scene.command_line()
    said = program.communicate(timeout=PATIENCE)
    assert (program.returncode, *said) == (0, "done\n", ""), scene.told()
    life = time.monotonic() - began
    scene.require_rest()
    return life


def _kill_of(scene: Scene, program: subprocess.Popen[str], kind: str) -> bool:
    """Kill a command line, or a helper of it; tell whether that was there."""
    if kind == "owner":
        program.kill()
        program.communicate(timeout=PATIENCE)
        return program.returncode == -signal.SIGKILL
    doomed = _strike(scene, program.pid, kind, lambda: program.poll() is not None)
    out, err = program.communicate(timeout=PATIENCE)
    scene.tell(f"killed {doomed}: {program.returncode} {out!r} {err!r}")
    assert scene.commands() == [], scene.told("commands have outlived their end:", *scene.commands())
    # It went well in spite of all; the command's first process was killed, and so it was; or there are words for it.
    ways = [program.returncode == 0 and (out, err) == ("done\n", "")]
    ways += [program.returncode == 128 + signal.SIGKILL and not err]
    ways += [program.returncode == 125 and err.startswith("stockade: ") and "internal error" not in err]
    assert any(ways), scene.told("it ended in a way that nobody understands")
    return doomed is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_command_line_that_is_asked_to_end_does_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    def play(scene: Scene) -> None:
        life = _life(scene)
        for _ in range(5):
            program = scene.command_line()
            delay = scene.random.uniform(0, life)
            time.sleep(delay)
            program.send_signal(number)
            out, err = program.communicate(timeout=PATIENCE)
            scene.tell(f"{number.name} after {delay:.4f}: {program.returncode} {out!r} {err!r}")
            assert scene.commands() == [], scene.told("commands have outlived their end:", *scene.commands())
            # Before our program is up and when it leaves, the kernel answers with the bare signal, or Python does.
            by_python = number == signal.SIGINT and "KeyboardInterrupt" in err
            assert by_python or (program.returncode in {0, 128 + number, -number} and not err), scene.told()
            scene.require_end()
            assert scene.leavings() == [], scene.told("it has left:", *scene.leavings())

    _at_once([Scene(tmp_path, f"{number.name} {each}") for each in range(AT_ONCE)], play)


@pytest.mark.parametrize("face", ["cli", "blocking", "asyncio"])
def test_who_is_stopped_for_a_while_goes_on_as_if_nothing_had_been(tmp_path: Path, face: str) -> None:
    def play(scene: Scene) -> None:
        victim = victims[scene]
        owner = None if face == "cli" else Owner(scene, face, LONG_LINE)
        if owner is None:
            program = scene.command_line(LONG_LINE)
        else:
            owner.hear()
            assert owner.ask("open") == [], scene.told()
            program = owner.program
            owner.say("5")
        _stop_for_a_while(scene, program, victim)
        if owner is None:
            said = program.communicate(timeout=PATIENCE)
            assert (program.returncode, *said) == (0, "done\n", ""), scene.told()
        else:
            assert owner.hear() == ["0"] * 5, scene.told()
            assert (owner.ask("try"), owner.ask("close")) == (["0"], []), scene.told()
            scene.require_rest(owner.pid)
            assert owner.end() == 0, scene.told(*owner.said)
        scene.require_rest()
        assert len(scene.story) == 2, scene.told("something was left to the next start")

    victims = {Scene(tmp_path, f"stopped {victim} {face}"): victim for victim in ("owner", *HELPERS)}
    _at_once(list(victims), play)


def _stop_for_a_while(scene: Scene, program: subprocess.Popen[str], kind: str) -> None:
    def commands() -> list[int]:
        return [child for pid in _helpers(program.pid, "first process") for child in _children(pid)]

    if not _comes_true(lambda: commands() or program.poll() is not None) or program.returncode is not None:
        pytest.fail(scene.told("there is nobody to stop", program.returncode, *scene.processes()))
    busy = [pid for pid in _helpers(program.pid, "first process") if _children(pid)]
    victim = {"owner": [program.pid], "first process": busy}.get(kind) or _helpers(program.pid, kind)
    os.kill(victim[0], signal.SIGSTOP)
    scene.tell(f"stopped {victim[0]}")
    time.sleep(1)
    os.kill(victim[0], signal.SIGCONT)
