"""``stockade doctor``: can walls be built on this machine, and if not, why and what to do.

Exit status: 0 if everything can be enforced, 1 if less or nothing can, or if an escape succeeded.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from stockade.cli.flags import add_json
from stockade.escape import escape

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.platforms.linux.diagnosis import Diagnosis, Finding
    from stockade.platforms.linux.facts import Facts
    from stockade.settings.sources import Locations

_MARKS: Final = {
    "ok": ("ok", "green"),
    "weaker": ("weaker", "yellow"),
    "missing": ("missing", "yellow"),
    "blocked": ("blocked", "red"),
}
_WIDTH: Final = max(len(mark) for mark, _ in _MARKS.values())
_SUMMARY: Final = {
    "full": ("Every wall can be built here.", "green"),
    "weaker": ("Walls can be built here with less: see what is marked weaker.", "yellow"),
    "no": ("No walls can be built here, and so nothing is run: see what is marked blocked.", "red"),
}


class Options(argparse.Namespace):
    """What the command line parses to."""

    json: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    add_json(parser)


def run(options: Options, shown: Terminal, _locations: Locations | None) -> int:
    """Look at the machine and say what was found."""
    from stockade.platforms.detect import System, require_supported, this_platform

    platform = require_supported(this_platform())
    if platform.system is not System.LINUX:
        from stockade.errors import UnavailableError

        message = f"walls for {platform.name} are not built yet"
        raise UnavailableError(message, "use Linux, in a virtual machine for instance")
    return _examine(options, shown)


def _examine(options: Options, shown: Terminal) -> int:
    from stockade.platforms.linux.diagnosis import diagnose
    from stockade.platforms.linux.probe import read_facts

    facts = read_facts()
    diagnosis = diagnose(facts)
    if options.json:
        shown.json(_facts(facts, diagnosis))
    else:
        _print(diagnosis, shown)
    return 0 if diagnosis.enforceable.value == "full" else 1


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
