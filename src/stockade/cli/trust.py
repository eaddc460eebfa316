"""``stockade trust``: let the project's settings files loosen the sandbox, as they are now."""

from __future__ import annotations

import argparse

from stockade.annotation import TYPE_CHECKING
from stockade.cli.context import here, tilde
from stockade.cli.flags import add_json
from stockade.errors import SettingsError, StockadeError
from stockade.escape import legible

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.problem import Problem
    from stockade.settings.sources import Locations


class Options(argparse.Namespace):
    """What the command line parses to."""

    list: bool
    revoke: bool
    json: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--list", action="store_true", help="show which files are trusted")
    kinds.add_argument("--revoke", action="store_true", help="take the trust in this project's files back")
    add_json(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Trust the project's files, show what is trusted, or take trust back."""
    from stockade.settings import trust

    place = here(locations)
    if options.list:
        return _list(options, shown, place)
    contents = _contents(place)
    if not contents:
        message = f"no settings file of a project is in force in {tilde(place.cwd, place.home)}"
        raise StockadeError(message, "go to the project, or write .stockade/settings.json there")
    for file, content in contents.items():
        if options.revoke:
            trust.untrust(place.home, file)
        else:
            trust.trust(place.home, file, content)
    return _report(options, shown, place, contents)


def _list(options: Options, shown: Terminal, place: Locations) -> int:
    from stockade.settings import trust

    trusted = trust.trusted(place.home)
    if options.json:
        shown.json({file: list(digests) for file, digests in trusted.items()})
        return 0
    for file, digests in trusted.items():
        shown.line(f"{tilde(file, place.home)}  {digests[0][:12]}")
    return 0


def _report(options: Options, shown: Terminal, place: Locations, contents: dict[str, bytes]) -> int:
    if options.json:
        shown.json({"files": list(contents), "trusted": not options.revoke})
        return 0
    for file, content in contents.items():
        name = tilde(file, place.home)
        if options.revoke:
            shown.line(f"no longer trusted: {name}")
            continue
        shown.line(f"trusted, as it is now: {name}")
        for line in content.decode(errors="replace").splitlines():
            shown.line(f"  {legible(line)}")
    return 0


def _contents(place: Locations) -> dict[str, bytes]:
    """Return the project's files that exist. Only what is valid can be trusted."""
    from stockade.settings.content import read_content
    from stockade.settings.decode import decode
    from stockade.settings.sources import sources

    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    for source in sources(place):
        try:
            content = read_content(source.file) if source.project else None
            if content is not None:
                decode(content.data, source.layer, source.file, foreign=source.foreign)
                contents[source.file] = content.data
        except SettingsError as error:
            problems.extend(error.problems)
    if problems:
        raise SettingsError(problems)
    return contents
