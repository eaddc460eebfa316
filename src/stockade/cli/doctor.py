"""``stockade doctor``: can walls be built on this machine, and if not, why and what to do.

``--prove`` builds walls and tries to get past them, each attack once outside as the control and once inside.
Exit status: 0 if everything can be enforced, 1 if less or nothing can, or if an attack succeeded.
"""

from __future__ import annotations

import argparse

from stockade.annotation import TYPE_CHECKING, Final
from stockade.cli.flags import add_json
from stockade.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.platforms.linux.diagnosis import Diagnosis, Finding
    from stockade.platforms.linux.facts import Facts
    from stockade.platforms.linux.proof import Arena, Attempt, Runner
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.sources import Locations

_MARKS: Final = {
    "ok": ("ok", "green"),
    "note": ("note", "green"),
    "weaker": ("weaker", "yellow"),
    "missing": ("missing", "yellow"),
    "warning": ("warning", "yellow"),
    "blocked": ("blocked", "red"),
}
_VERDICTS: Final = {"held": ("PASS", "green"), "hole": ("HOLE", "red"), "moot": ("----", "dim")}
_PATIENCE: Final = 20.0
_NOTE: Final = 100
_WIDTH: Final = max(len(mark) for mark, _ in _MARKS.values())
_SUMMARY: Final = {
    "full": ("Every wall can be built here.", "green"),
    "weaker": ("Walls can be built here with less: see what is marked weaker.", "yellow"),
    "no": ("No walls can be built here, and so nothing is run: see what is marked blocked.", "red"),
}


class Options(argparse.Namespace):
    """What the command line parses to."""

    json: bool
    prove: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("--prove", action="store_true", help="build walls and try to get past them, live")
    add_json(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Look at the machine and say what was found."""
    from stockade.platforms.detect import System, require_supported, this_platform

    platform = require_supported(this_platform())
    if platform.system is System.MACOS:
        from stockade.cli.doctor_macos import run_macos

        return run_macos(options, shown, locations)
    return _examine(options, shown, locations)


def _examine(options: Options, shown: Terminal, locations: Locations | None) -> int:
    from stockade.platforms.linux.diagnosis import Diagnosis, diagnose
    from stockade.platforms.linux.probe import read_facts

    facts = read_facts()
    diagnosis = Diagnosis((*diagnose(facts).findings, *_warnings(locations)))
    if not options.json:
        _print(diagnosis, shown)
    attempts = _prove(diagnosis.enforceable.value, options, shown) if options.prove else []
    if options.json:
        shown.json(_facts(facts, diagnosis) | _proof(attempts))
    broken = any(attempt.verdict.value == "hole" for attempt in attempts)
    return 1 if broken or diagnosis.enforceable.value != "full" else 0


def _warnings(locations: Locations | None) -> Iterator[Finding]:
    """Yield what is wrong here, if not with the machine."""
    from stockade.cli.context import here
    from stockade.errors import StockadeError
    from stockade.filesystem.hard_link import leads_out
    from stockade.platforms.linux.diagnosis import Finding, Level
    from stockade.policy.effective import effective

    try:
        policy = effective(here(locations)).policy
    except StockadeError as error:
        yield Finding(Level.WARNING, "settings", error.message, "stockade check")
        return
    for why, hint in bare_repositories(policy):
        yield Finding(Level.NOTE, "git", why, hint)
    yield from _own_places(policy)
    for why, hint in uncounted_entries(policy):
        yield Finding(Level.NOTE, "PATH", why, hint)
    linked = leads_out(policy.cwd)
    if linked:
        what = f"{len(linked)} files in {policy.cwd} have other names outside it, such as {linked[0]}"
        hint = "whoever changes such a file in place changes it there too; copy what matters, for example by cp"
        yield Finding(Level.WARNING, "hard links", what, hint)


def _own_places(policy: SandboxPolicy) -> Iterator[Finding]:
    """Yield where Stockade itself lies in a writable place, which is read-only to commands or, by a setting, is not."""
    from stockade.platforms.linux.diagnosis import Finding, Level
    from stockade.policy.files import own_protections, survey
    from stockade.policy.installation import SETTING, own_places
    from stockade.policy.path_pattern import is_at_or_below
    from stockade.policy.places import Disk

    rules = policy.files
    ground = survey(rules.but(own=own_places(policy.cwd)), Disk(), search=False)
    places = [protection.place for protection in own_protections(ground)]
    elsewhere = "install Stockade outside this place, with pipx for example"
    for place in places:
        if any(other != place and is_at_or_below(place, other) for other in places):
            continue
        if rules.own:
            why = "read-only to commands, because Stockade itself runs from it"
            yield Finding(Level.NOTE, place, why, f"{elsewhere}, if commands must write it")
        else:
            why = f"commands may write it, and so change what builds their walls: {SETTING} is set"
            yield Finding(Level.WARNING, place, why, f"remove the setting, or {elsewhere}")


def uncounted_entries(policy: SandboxPolicy) -> Iterator[tuple[str, str]]:
    """Yield why an entry of PATH does not count for what runs outside the walls, and what to do about it."""
    import os

    from stockade.tool.program import Lookup

    for entry in Lookup(policy.files, os.environ, policy.cwd).dropped:
        cause = "commands inside can write it" if entry.startswith("/") else "it is relative"
        why = f"{entry or 'its empty entry'} does not count for what runs outside the walls: {cause}"
        hint = (
            "install programs that must run outside in another place, or add this one to sandbox.filesystem.denyWrite"
        )
        yield why, hint


def bare_repositories(policy: SandboxPolicy) -> Iterator[tuple[str, str]]:
    """Yield what a setting of git would spare the user, if it is not set."""
    from stockade.policy.file_remedy import EXPLICIT
    from stockade.policy.git_repository import takes_bare
    from stockade.policy.places import Disk

    if takes_bare(policy.files.search.homes, Disk()):
        why = "takes any directory for a repository that looks like one, so that no command can make refs in a project"
        yield why, f"run: {EXPLICIT}"


def _prove(enforceable: str, options: Options, shown: Terminal) -> list[Attempt]:
    """Make every attack and tell of each as it ends."""
    if enforceable == "no":
        return []
    from stockade.platforms.linux.proof import prove

    if not options.json:
        shown.line()
    attempts = []
    for attempt in prove(_walled(weaker=enforceable == "weaker")):
        attempts.append(attempt)
        if not options.json:
            _print_attempt(attempt, shown)
    if not options.json:
        _print_sum(attempts, shown)
    return attempts


def _walled(*, weaker: bool) -> Runner:
    """Return what runs words behind walls around the project of an arena."""
    from stockade.policy.compile import compile_policy
    from stockade.sandbox.blocking import BlockingSandbox
    from stockade.settings.catalog import DENY_READ, WEAKER_NESTED
    from stockade.settings.document import Document
    from stockade.settings.layer import Layer
    from stockade.settings.merge import merge

    def run_inside(arena: Arena, words: list[str]) -> tuple[int, str]:
        values = {DENY_READ.name: (f"{arena.project}/denied",), WEAKER_NESTED.name: weaker}
        policy = compile_policy(merge([Document(Layer.COMMAND_LINE, "", values)]), cwd=arena.project, home=arena.folder)
        with BlockingSandbox(policy) as sandbox:
            result = sandbox.run(words, timeout=_PATIENCE)
        return result.status, result.output + result.errors

    return run_inside


def _proof(attempts: list[Attempt]) -> dict[str, object]:
    told = [{"name": one.name, "verdict": one.verdict.value, "note": one.note} for one in attempts]
    return {"proof": told} if told else {}


def _facts(facts: Facts, diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "enforceable": diagnosis.enforceable.value,
        "findings": [
            {"level": one.level.value, "what": one.what, "why": one.why, "remedy": one.remedy}
            for one in diagnosis.findings
        ],
        "facts": _plain(facts),
    }


def _plain(value: object) -> object:
    """Return a value as JSON has it."""
    from stockade.value import Value

    return {name: _plain(field) for name, field in vars(value).items()} if isinstance(value, Value) else value


def _print(diagnosis: Diagnosis, shown: Terminal) -> None:
    for finding in diagnosis.findings:
        _print_finding(finding, shown)
    shown.line()
    text, style = _SUMMARY[diagnosis.enforceable.value]
    shown.line(shown.paint(text, style))


def _print_finding(finding: Finding, shown: Terminal) -> None:
    mark, style = _MARKS[finding.level.value]
    padding = " " * (_WIDTH - len(mark))
    shown.line(f"{shown.paint(mark, style)}{padding}  {escape(finding.what)}: {escape(finding.why, 400)}")
    for line in finding.remedy.splitlines():
        shown.line(f"{' ' * _WIDTH}    {line}")


def _print_attempt(attempt: Attempt, shown: Terminal) -> None:
    mark, style = _VERDICTS[attempt.verdict.value]
    note = f" ({escape(attempt.note, _NOTE)})" if attempt.note else ""
    shown.line(f"{shown.paint(mark, style)}  {attempt.name}{shown.paint(note, 'dim')}")


def _print_sum(attempts: list[Attempt], shown: Terminal) -> None:
    counts = {verdict: sum(one.verdict.value == verdict for one in attempts) for verdict in _VERDICTS}
    shown.line()
    text = f"{len(attempts)} attacks: {counts['held']} held, {counts['hole']} got through, {counts['moot']} moot."
    shown.line(shown.paint(text, "red" if counts["hole"] else "green"))
