"""The command line's door: find the command, import it, run it, and answer for its failures.

Exit status: what the command returns; 125 and one line ``stockade: ...`` for our own failures; 130 after Ctrl-C.
"""

from __future__ import annotations

import gc
import os
import sys

from stockade.annotation import TYPE_CHECKING, Any, NoReturn
from stockade.cli.registry import COMMANDS
from stockade.cli.terminal import FAILURE, leave_output, terminal
from stockade.errors import StockadeError, shortage
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stockade.cli.options import Reader
    from stockade.cli.registry import Command
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations


def start() -> NoReturn:
    """Run the command line of this process and leave at once: taking an interpreter apart takes milliseconds."""
    gc.disable()  # a short life makes little rubbish, and looking for it takes milliseconds
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed streams are None
            stream.flush()
    os._exit(status)


def main(arguments: Sequence[str] | None = None, locations: Locations | None = None) -> int:
    """Run one command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from stockade.platforms.standard_streams import hold_standard_streams

        hold_standard_streams()
    shown = terminal()
    try:
        status = _dispatch(words, shown, locations)
        shown.flush()
    except StockadeError as error:
        shown.fail(error)
        return FAILURE
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to say, not even at exit.
        leave_output()
        return FAILURE
    except Exception as error:
        if os.environ.get("STOCKADE_DEBUG"):
            raise
        from stockade.escape import escape

        bug = StockadeError(
            f"internal error: {type(error).__name__}: {escape(str(error))}",
            "this is a bug in Stockade: please report it with what the command prints under STOCKADE_DEBUG=1",
        )
        shown.fail(shortage(error) or bug)
        return FAILURE
    return status


def _dispatch(words: list[str], shown: Terminal, locations: Locations | None) -> int:
    first = words[0] if words else "--help"
    if first in {"--version", "-V"}:
        from stockade import __version__

        shown.line(f"stockade {__version__}")
        return 0
    if first in {"--help", "-h", "help"}:
        return _help(words[1:], shown, locations)
    if first not in COMMANDS:
        _unknown(first)
    return _run(first, words[1:], shown, locations)


def _run(name: str, words: list[str], shown: Terminal, locations: Locations | None) -> int:
    command = COMMANDS[name]
    module = _imported(f"stockade.cli.{command.module}")
    reader = _reader(name, module)
    words, own = reader.split(words) if reader and getattr(module, "TAKES_WORDS", False) else (words, [])
    options = module.Options(words=own)
    if reader is None or not reader.read(words, options):
        _read(command, module, words, options)
    status: int = module.run(options, shown, locations)
    return status


def _imported(name: str) -> Any:
    """Return a module by its name, as ``importlib`` does, which costs as much to import as the module."""
    __import__(name)
    return sys.modules[name]


def _reader(name: str, module: Any) -> Reader | None:
    """Return what reads plain command lines, and knows where a command begins, for those commands that need it."""
    if not (getattr(module, "IS_QUICK", False) or getattr(module, "TAKES_WORDS", False)):
        return None
    from stockade.cli.options import Reader

    reader = Reader(f"stockade {name}")
    module.configure(reader)
    return reader


def _read(command: Command, module: Any, words: list[str], options: Any) -> None:
    from stockade.cli.parser import Parser

    parser = Parser(prog=f"stockade {command.name}", description=command.summary)
    module.configure(parser)
    parser.read(words, options)


def _help(words: list[str], shown: Terminal, locations: Locations | None) -> int:
    if words and words[0] in COMMANDS:
        return _run(words[0], ["--help"], shown, locations)
    width = max(map(len, COMMANDS))
    shown.line("usage: stockade COMMAND [OPTION...]")
    shown.line()
    shown.line("Run shell commands that nobody has read first behind operating-system walls.")
    shown.line()
    for command in COMMANDS.values():
        shown.line(f"  {shown.paint(command.name.ljust(width), 'bold')}  {command.summary}")
    shown.line()
    shown.line("`stockade COMMAND --help` tells more. `stockade --version` prints the version.")
    return 0


def _unknown(word: str) -> None:
    from stockade.cli.parser import UsageError, nearest
    from stockade.escape import escape

    near = nearest(word, (*COMMANDS, "--version", "--help"))
    kind = "option" if word.startswith("-") else "command"
    message = f"unknown {kind}: {escape(word)}"
    raise UsageError(message, f"did you mean {near}?" if near else "see `stockade --help`")
