"""``stockade check``: every mistake of a settings file, at once."""

from __future__ import annotations

import argparse

from stockade.annotation import TYPE_CHECKING
from stockade.cli.context import here
from stockade.cli.flags import add_json
from stockade.errors import SettingsError
from stockade.settings.problem import Problem

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.decode import Decoded
    from stockade.settings.sources import Locations


class Options(argparse.Namespace):
    """What the command line parses to."""

    files: list[str]
    json: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="settings files; without any, those in force here")
    add_json(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Check the files; 0 if all are right, 1 if any is not."""
    place = here(locations)
    reports = {file: _problems(file, place) for file in options.files or _in_force(place)}
    wrong = [problem for problems, _ in reports.values() for problem in problems]
    if options.json:
        shown.json(
            {
                file: {
                    "valid": not problems,
                    "problems": [{"path": p.path, "message": p.message, "hint": p.hint} for p in problems],
                    "warnings": list(warnings),
                }
                for file, (problems, warnings) in reports.items()
            }
        )
        return 1 if wrong else 0
    from stockade.escape import escape

    for file, (problems, warnings) in reports.items():
        for warning in warnings:
            shown.warn(warning)
        if not problems:
            shown.line(f"{escape(file)}: {shown.paint('valid', 'green')}")
    if not reports:
        shown.line("no settings files are in force here")
    if wrong:
        shown.fail(SettingsError(wrong))
    return 1 if wrong else 0


def _in_force(place: Locations) -> list[str]:
    import os.path

    from stockade.settings.sources import sources

    return [source.file for source in sources(place) if os.path.lexists(source.file)]


def _problems(file: str, place: Locations) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    from stockade.policy.effective import diagnose

    try:
        decoded = _decoded(file)
    except SettingsError as error:
        return error.problems, ()
    diagnosis = diagnose(decoded.document, decoded.problems, cwd=place.cwd, home=place.home)
    return diagnosis.problems, (*decoded.warnings, *diagnosis.notes)


def _decoded(file: str) -> Decoded:
    """Return what a file says, whoever would read it: Claude Code's by its folder, srt's by its shape."""
    import os.path

    from stockade.settings.content import read_content
    from stockade.settings.decode import examine
    from stockade.settings.layer import Layer

    content = read_content(file)
    if content is None:
        raise SettingsError([Problem(file, "$", "does not exist", "Check the name.")])
    foreign = os.path.basename(os.path.dirname(os.path.abspath(file))) == ".claude"
    return examine(content.data, Layer.COMMAND_LINE, file, foreign=foreign, flat=not foreign)
