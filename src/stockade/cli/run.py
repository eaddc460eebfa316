"""``stockade run``: one command behind the walls, whatever ``sandbox.enabled`` says."""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING
from stockade.cli import running

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

#: The first word that is no option of ours, or what stands behind ``--``, is the command's own with all that follows.
TAKES_WORDS = True
#: It is started again and again.
IS_QUICK = True


class Options(running.RunOptions):
    """What the command line parses to."""

    line: str | None
    words: list[str]
    terminal: bool
    no_terminal: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.usage = f"{parser.prog} [OPTION...] (-c LINE | [--] WORD...)"
    parser.add_argument("-c", dest="line", metavar="LINE", help="a line for the shell")
    parser.add_argument(
        "-t", "--terminal", action="store_true", help="give it a terminal of its own, as it gets one on a terminal"
    )
    parser.add_argument(
        "-T", "--no-terminal", action="store_true", help="let it use our streams as they are, even on a terminal"
    )
    running.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Run it; the exit status is the command's, or 128 and the signal that ended it."""
    command = chosen(options.line, options.words)
    pipes = passed(options.words)
    own = on_own_terminal(options)
    if own:
        return running.relayed(options, shown, locations, command, pipes, own)
    return running.attached(options, shown, locations, command, pipes)


def on_own_terminal(options: Options) -> tuple[int, ...]:
    """Return which streams of the command are a terminal of its own: those that are the user's for us.

    On the user's own it could read what is typed to other programs, also in the background: it is in another session,
    so the kernel does not stop it there.
    """
    if options.terminal and options.no_terminal:
        from stockade.cli.parser import UsageError

        message = "-t gives the command a terminal, -T does not"
        raise UsageError(message, "give one of them, or none: on a terminal it gets one by itself")
    if options.terminal or options.no_terminal:
        return (0, 1, 2) if options.terminal else ()
    found = tuple(filter(os.isatty, (0, 1, 2)))
    is_one = len({os.fstat(stream).st_rdev for stream in found}) == 1
    # Only the Linux helpers tell of a command that begins behind its terminal, as in a pipeline.
    return found if is_one and (len(found) == len((0, 1, 2)) or sys.platform == "linux") else ()


def passed(words: list[str]) -> tuple[int, ...]:
    """Return the descriptors that the words name, such as ``/dev/fd/63`` of a shell's ``<(...)``."""
    if not any("/fd/" in word for word in words):
        return ()
    from stockade.cli.named_descriptors import named_pipes

    return named_pipes(words)


def chosen(line: str | None, words: list[str]) -> str | list[str]:
    """Return the line or the words, exactly one of which must be given."""
    if line is not None and line.strip() and not words:
        return line
    if words and words[0] and line is None:
        return words
    from stockade.cli.parser import UsageError  # which takes argparse

    if (line is None) == (not words):
        message = "give one command: either -c 'LINE' or WORD..."
        raise UsageError(message, "for example: stockade run npm test")
    message = "the command has no name" if words else "the command line is empty"
    raise UsageError(message, "for example: stockade run -c 'npm test | tail'")
