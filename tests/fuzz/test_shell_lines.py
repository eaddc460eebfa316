"""Nothing that the reader calls plain and covered starts another program: tried with bash, dash and zsh themselves.

The lines of the corpus run first, then new ones: two thousand in a plain run of the tests, many more with ``CI`` set,
always the same. ``STOCKADE_FUZZ_LINES`` and ``STOCKADE_FUZZ_SEED`` set both; ``scripts/fuzz`` searches on.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from corpus import entries
from grammar import Grammar, is_harmless
from promise import breaches, is_covered, is_read, stays
from search import Finding, Search
from shells import Line, Outcome
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.shell_line import parse
from vocabulary import PATTERNS
from world import MOVED, Deed, World

if TYPE_CHECKING:
    from collections.abc import Generator

CI = bool(os.environ.get("CI"))
PARTS = 4 if CI else 1
LINES = int(os.environ.get("STOCKADE_FUZZ_LINES", "12000" if CI else "2000"))
SEED = int(os.environ.get("STOCKADE_FUZZ_SEED", "11"))
ENTRIES = entries()
KNOWN = tuple(entry.line for entry in ENTRIES)
_PATTERNS = tuple(map(CommandPattern.parse, PATTERNS))

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-ins find themselves in /proc"),
    # In CI a search that did not run must not pass for one that found nothing.
    pytest.mark.skipif(not CI and shutil.which("gcc") is None, reason="gcc builds the stand-ins, and is not installed"),
]


@pytest.fixture(scope="module")
def world() -> Generator[World]:
    made = World()
    yield made
    made.close()


def careless(line: str) -> bool:
    """Say of every line that is read, and whose commands have patterns, that it is covered."""
    commands = parse(line) if is_read(line) else ()
    return bool(commands) and all(
        not command.redirects and any(pattern.matches(command) for pattern in _PATTERNS) for command in commands
    )


def test_each_shell_is_here(world: World) -> None:
    if not CI and len(Search(world).shells) < 3:
        pytest.skip("not all of bash, dash and zsh are installed: only those that are were tried")
    assert [shell.name for shell in Search(world).shells] == ["bash", "dash", "zsh"]


def test_known_lines_keep_the_promise(world: World) -> None:
    assert list(map(str, Search(world).replay(KNOWN))) == []


@pytest.mark.parametrize("part", range(PARTS))
def test_new_lines_keep_the_promise(world: World, part: int) -> None:
    search, found = Search(world), list[Finding]()
    for batch in search.lines(SEED + part, KNOWN, lambda made: made < LINES // PARTS):
        found += search.run(batch)
    assert list(map(str, map(search.minimise, found[:5]))) == [], f"seed {SEED + part}"
    assert search.covered >= LINES // PARTS // 40, "a search tells nothing if no line is covered"


def test_the_shells_do_the_harm_that_is_known(world: World) -> None:
    """The oracle has eyes: what is in the corpus is seen, whatever the reader says of it."""
    search = Search(world)
    for shell in search.shells:
        lines = [Line(entry.line, not entry.moves, entry.moves) for entry in ENTRIES if shell.name in entry.shells]
        seen = search.blamed(lines, shell.run_all(lines, traced=False))
        # What a shell does by itself is seen when a line runs alone.
        rest = [line for number, line in enumerate(lines) if number not in seen]
        unseen = [line.text for line in rest if not search.against(line, shell.run_all([line]))]
        # Another version of a shell may have mended one thing or another.
        assert len(lines) > 20
        assert len(unseen) * 4 <= len(lines), unseen


def test_the_search_finds_the_holes_of_a_careless_reader(world: World) -> None:
    """From lines that are harmless: without the corpus, too."""
    search = Search(world, careless)
    batch = next(iter(search.lines(3, ("ls", "docker ps; ls x"), lambda made: made < 1000)))
    for shell in search.shells:
        blamed = search.blamed(batch, shell.run_all(batch, traced=False))
        found = [finding for number in sorted(blamed)[:3] for finding in search.confirm(shell, batch[number])]
        assert found
        assert [finding.line for finding in found if is_covered(finding.line)] == []


def test_a_finding_is_shortened(world: World) -> None:
    search = Search(world, careless)
    long = Line("ls 'x y' $Z; docker ps && eval mark 2>&1; ls")
    (found,) = search.confirm(search.shells[0], long)
    assert search.minimise(found).line == "eval mark"
    assert search.confirm(search.shells[0], Line("ls x; docker")) == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        pytest.param("ls x; docker 'p q' | git push main", [], id="programs that are named"),
        pytest.param("A=1 npm ci", [], id="a named assignment"),
        pytest.param("ls > x", ["changed x"], id="a file that is written"),
        pytest.param("ls >> c", ["opened c to write"], id="a file that is opened"),
        pytest.param("ls; mark", ["ran 'mark': no pattern names it"], id="a program that is not named"),
        pytest.param("eval mark", ["ran 'mark': no command of the line says so"], id="a program that is not there"),
        pytest.param("PATH=$EVIL; ls", ["ran 'ls': it is /evil/ls", "PATH is another"], id="another directory"),
        pytest.param("HOME=x ls", ["ran 'ls': with another HOME"], id="another environment"),
        pytest.param("npm run tests", ["ran 'npm' 'run' 'tests': no pattern names it"], id="another word"),
        pytest.param("alias ls=docker", ["there is an alias"], id="an alias"),
        pytest.param("cd d", [MOVED], id="another place"),
    ],
)
def test_what_is_said_against_a_line(world: World, line: str, what: list[str]) -> None:
    search = Search(world)
    bash = search.shells[0]
    said = search.against(Line(line, stays=True), bash.run_all([Line(line, stays=True)]))
    assert [text for text in what if text not in said] == []
    assert bool(said) == bool(what)


def test_a_program_from_elsewhere_is_seen(world: World) -> None:
    search = Search(world)
    true = shutil.which("true")
    for shell in search.shells:
        outcome = shell.run(f"{true}; ls")
        assert [deed.words for deed in outcome.deeds] == [("ls",)]
        if shutil.which("strace"):
            assert outcome.strange == (f"started {true}",)


def test_the_line_of_a_batch_that_did_it_is_found(world: World) -> None:
    search = Search(world, careless)
    lines = [Line(f"ls {number}") for number in range(7)]
    lines[3:3] = [Line("ls 3 > x"), Line("eval mark")]
    for shell in search.shells:
        assert search.suspects(shell, lines) == lines[3:5]


def test_what_runs_late_is_seen(world: World) -> None:
    search = Search(world)
    for shell in search.shells:
        assert [deed.words for deed in shell.run("ls 1 & ls 2 &").deeds] != []
        assert len(shell.run_all([Line("ls 1 & ls 2 &")]).deeds) == 2


def test_a_line_that_does_not_end_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shells.PATIENCE", 0.5)
    shell = Search(world).shells[0]
    assert "did not end" in shell.run("while :; do :; done").strange
    assert shell.run("ls").strange == ()


def test_the_same_seed_makes_the_same_lines() -> None:
    def lines(seed: int) -> list[str]:
        grammar = Grammar(seed, KNOWN)
        return [grammar.line() for _ in range(200)]

    assert lines(1) == lines(1)
    assert lines(1) != lines(2)


@pytest.mark.parametrize(
    ("line", "harmless"),
    [
        pytest.param("ls > x; cd d && d/tool >/dev/null", True, id="below the working directory"),
        pytest.param("hash -p $EVIL/ls ls; ls ${EVIL}/x", True, id="the other directory of this world"),
        pytest.param("ls /etc", False, id="a path from the top"),
        pytest.param("ls '/'etc", False, id="a quoted one"),
        pytest.param("cd ..", False, id="up"),
        pytest.param("cd '.'.", False, id="up in pieces"),
        pytest.param("k'il'l 1", False, id="a signal"),
    ],
)
def test_only_what_stays_in_its_world_is_run(line: str, harmless: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert is_harmless(line) == harmless


def test_every_line_of_the_corpus_is_harmless_and_stands_there_once() -> None:
    assert [line for line in KNOWN if not is_harmless(line)] == []
    assert sorted(set(KNOWN)) == sorted(KNOWN)
    assert all(entry.why for entry in ENTRIES)


def test_a_line_that_only_moves_is_no_more_than_that(world: World) -> None:
    deed = Deed("0", f"{world.programs}/mark", ("mark",), world.environment)
    assert breaches(Line("mark", covered=False, stays=True), [deed], world) == []
    assert breaches(Line("mark"), [deed], world) != []


def test_the_reader_is_asked() -> None:
    assert is_covered("ls x; docker")
    assert not is_covered("ls x; mark")
    assert stays("ls x")
    assert not stays("cd d")
    assert Outcome((), ()) == ((), ())
