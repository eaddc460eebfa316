"""``stockade trust``: let the project's settings files loosen the sandbox, exactly as they were shown.

Each file is read once. What was read is shown, asked about and trusted, whatever the file holds by then: a program that
changes it meanwhile gains nothing. Where nobody sits at a terminal, consent is given beforehand: to the content of a
hash, or (``--yes``) to whatever is read and printed.
"""

from __future__ import annotations

import argparse
import sys

from stockade.annotation import TYPE_CHECKING
from stockade.cli.context import here, tilde
from stockade.cli.flags import add_json
from stockade.errors import SettingsError, StockadeError
from stockade.escape import escape, legible
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.document import Document
    from stockade.settings.problem import Problem
    from stockade.settings.sources import Locations


class Options(argparse.Namespace):
    """What the command line parses to."""

    list: bool
    revoke: bool
    yes: bool
    sha256: Sequence[str]
    json: bool


class Shown(Value):
    """One file as it was read, and the names of the settings in it that loosen."""

    file: str
    content: bytes
    loosens: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the content, as ``sha256sum`` prints it."""
        import hashlib

        return hashlib.sha256(self.content).hexdigest()


def configure(parser: Parser) -> None:
    """Add the arguments."""
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--list", action="store_true", help="show which files are trusted")
    kinds.add_argument("--revoke", action="store_true", help="take the trust in this project's files back")
    kinds.add_argument("-y", "--yes", action="store_true", help="do not ask; trust what is read and printed")
    kinds.add_argument(
        "--sha256",
        action="append",
        default=[],
        metavar="HEX",
        help="do not ask; trust the files with this content alone (may be given again for each further file)",
    )
    add_json(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Trust the project's files, show what is trusted, or take trust back."""
    place = here(locations)
    if options.list:
        return _list(options, shown, place)
    files = _files(place)
    if not files:
        message = f"no settings file of a project is in force in {tilde(place.cwd, place.home)}"
        raise StockadeError(message, "go to the project, or write .stockade/settings.json there")
    if options.revoke:
        return _revoke(options, shown, place, files)
    if not options.json:
        _show(shown, place, files)
    agreed = _agreed(options, shown, files)
    _trust(shown, place, agreed)
    if options.json:
        names = [one.file for one in agreed]
        shown.json({"files": names, "trusted": bool(agreed), "shown": [_facts(one) for one in files]})
    for one in () if options.json else agreed:
        shown.line(f"trusted, as shown: {tilde(one.file, place.home)}")
    if agreed:
        return 0
    message = "nothing was trusted"
    if options.json or not _is_attended(shown):
        digests = " ".join(f"--sha256 {one.digest}" for one in files)
        message = f"{message}: there is no terminal to ask on"
        raise StockadeError(message, f"read what is printed; then, to trust exactly that: stockade trust {digests}")
    raise StockadeError(message, "answer y to trust the files as shown")


def _list(options: Options, shown: Terminal, place: Locations) -> int:
    from stockade.settings import trust

    trusted = trust.trusted(place.home)
    if options.json:
        shown.json({file: list(digests) for file, digests in trusted.items()})
        return 0
    for file, digests in trusted.items():
        shown.line(f"{tilde(file, place.home)}  {digests[0][:12]}")
    return 0


def _revoke(options: Options, shown: Terminal, place: Locations, files: Sequence[Shown]) -> int:
    from stockade.settings import trust

    for one in files:
        trust.untrust(place.home, one.file)
    if options.json:
        shown.json({"files": [one.file for one in files], "trusted": False})
        return 0
    for one in files:
        shown.line(f"no longer trusted: {tilde(one.file, place.home)}")
    return 0


def _show(shown: Terminal, place: Locations, files: Sequence[Shown]) -> None:
    for one in files:
        shown.line(f"{tilde(one.file, place.home)}:")
        for line in one.content.decode(errors="replace").splitlines():
            shown.line(f"  {legible(line)}")
        # Behind the content: whatever scrolls off, this is what somebody sees last.
        shown.line(f"sha256 {one.digest}; loosens: {', '.join(one.loosens) or 'nothing'}")


def _agreed(options: Options, shown: Terminal, files: Sequence[Shown]) -> tuple[Shown, ...]:
    """Return the files that somebody agreed to trust."""
    if options.yes:
        return tuple(files)
    if options.sha256:
        wanted = {text.lower() for text in options.sha256}
        if strangers := wanted - {one.digest for one in files}:
            message = f"no settings file of this project has the sha256 {escape(min(strangers))}"
            raise StockadeError(message, "look at the files again: they are not what you have seen")
        return tuple(one for one in files if one.digest in wanted)
    if options.json or not _is_attended(shown):
        return ()
    what = "this file" if len(files) == 1 else f"these {len(files)} files"
    return tuple(files) if _yes(shown, f"Trust {what} as shown? [y/N] ") else ()


def _is_attended(shown: Terminal) -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and shown.out.isatty()


def _yes(shown: Terminal, question: str) -> bool:
    import termios

    # What was typed before the question was there is no answer to it.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    shown.out.write(question)
    shown.flush()
    try:
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        shown.line()
        return False


def _trust(shown: Terminal, place: Locations, files: Sequence[Shown]) -> None:
    from stockade.settings import trust
    from stockade.settings.content import read_content

    for one in files:
        trust.trust(place.home, one.file, one.content)
        try:
            now = read_content(one.file)
        except SettingsError:
            now = None
        name = tilde(one.file, place.home)
        if now is None or now.data != one.content:
            shown.warn(f"{name} has changed since it was read; what it holds now is not trusted")


def _facts(one: Shown) -> dict[str, object]:
    text = one.content.decode(errors="replace")
    return {"file": one.file, "sha256": one.digest, "loosens": list(one.loosens), "content": text}


def _files(place: Locations) -> tuple[Shown, ...]:
    """Return the project's files that exist. Only what is valid can be trusted."""
    from stockade.settings.content import read_content
    from stockade.settings.decode import decode
    from stockade.settings.sources import sources

    files: list[Shown] = []
    problems: list[Problem] = []
    for source in sources(place):
        try:
            content = read_content(source.file) if source.project and not source.above else None
            if content is not None:
                decoded = decode(content.data, source.layer, source.file, foreign=source.foreign)
                files.append(Shown(source.file, content.data, _loose(decoded.document)))
        except SettingsError as error:
            problems.extend(error.problems)
    if problems:
        raise SettingsError(problems)
    return tuple(files)


def _loose(document: Document) -> tuple[str, ...]:
    """Return what in a document would loosen anything, whatever holds now: other files may change after this one."""
    from stockade.settings.catalog import CATALOG
    from stockade.settings.looseness import is_loose
    from stockade.settings.merge import EMPTY

    return tuple(name for name, value in document.values.items() if is_loose(CATALOG[name], value, EMPTY))
