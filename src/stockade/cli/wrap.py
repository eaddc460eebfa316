"""``stockade wrap``: the line that any other program can run instead of a command, to run it behind the walls."""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING
from stockade.cli import flags, running
from stockade.cli.context import context
from stockade.cli.run import chosen

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

TAKES_WORDS = True


class Options(running.RunOptions):
    """What the command line parses to."""

    line: str | None
    words: list[str]


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.usage = f"{parser.prog} [OPTION...] (-c LINE | [--] WORD...)"
    parser.add_argument("-c", dest="line", metavar="LINE", help="a line for the shell")
    flags.add_json(parser)
    running.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Print the line, after checking that the settings are right and the command is one."""
    command = chosen(options.line, options.words)
    running.published(options)
    context(options, shown, locations)
    argv = wrapped(options, command)
    if options.json:
        shown.json({"argv": argv, "line": quoted(argv)})
    else:
        shown.line(quoted(argv))
    return 0


def wrapped(options: Options, command: str | list[str]) -> list[str]:
    """Return the words of a `stockade run` that means the same from anywhere."""
    # -P: started in a stranger's project, Python must not import what lies there.
    argv = [sys.executable, "-P", "-m", "stockade", "run", "-C", os.path.realpath(options.directory or ".")]
    if options.settings:
        argv += ["--settings", os.path.realpath(options.settings)]
    if options.ignore_project:
        argv.append("--ignore-project")
    for name in flags.LISTS:
        items: list[str] = getattr(options, name)
        argv += [f"--{name.replace('_', '-')}={item}" for item in items]
    argv += [f"--publish={pair}" for pair in options.publish]
    for name in ("timeout", "memory", "processes", "open_files", "cpu_seconds", "violations", "observe"):
        value = getattr(options, name)
        argv += [] if value is None else [f"--{name.replace('_', '-')}={value}"]
    return [*argv, "-c", command] if isinstance(command, str) else [*argv, "--", *command]


def quoted(argv: list[str]) -> str:
    """Return the words as a shell would read them back."""
    import shlex

    return shlex.join(argv)
