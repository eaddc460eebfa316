"""``stockade run``: one command behind the walls, whatever ``sandbox.enabled`` says."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.cli import running

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

#: What stands behind ``--`` is the command's own and is never read as options of ours.
TAKES_WORDS = True
#: It is started again and again.
IS_QUICK = True


class Options(running.RunOptions):
    """What the command line parses to."""

    line: str | None
    words: list[str]
    terminal: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.usage = f"{parser.prog} [OPTION...] (-c LINE | -- WORD...)"
    parser.stray_hint = f"put -- before the command: {parser.prog} -- ..."
    parser.add_argument("-c", dest="line", metavar="LINE", help="a line for the shell")
    parser.add_argument("-t", "--terminal", action="store_true", help="give it a terminal of its own")
    running.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Run it; the exit status is the command's, or 128 and the signal that ended it."""
    command = chosen(options.line, options.words)
    if options.terminal:
        from stockade.cli.relay import relayed

        return relayed(options, shown, locations, command)
    return running.attached(options, shown, locations, command)


def chosen(line: str | None, words: list[str]) -> str | list[str]:
    """Return the line or the words, exactly one of which must be given."""
    if line is not None and line.strip() and not words:
        return line
    if words and line is None:
        return words
    from stockade.cli.parser import UsageError  # which takes argparse

    if (line is None) == (not words):
        message = "give one command: either -c 'LINE' or -- WORD..."
        raise UsageError(message, "for example: stockade run -- npm test")
    message = "the command line is empty"
    raise UsageError(message, "for example: stockade run -c 'npm test | tail'")
