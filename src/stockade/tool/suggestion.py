"""What rules to offer for a line, so that the like of it need not be asked for again.

Rules: nothing is offered that would not match the line itself; each simple command gets a pattern of its own. A
pattern is the command with its subcommand and anything after (``git commit:*``), or an interpreter with its script. As
no pattern says where a line ends, nothing is offered where what comes after decides everything (a wrapper, what deletes
or runs others, options before a subcommand). Every pattern ends with ``:*``, so that who is asked sees it. For a line
that would leave the walls nothing is offered that runs the project's own code: commands inside may write that.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.shell_line import parse
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.allowance import allowed_by
from stockade.tool.may_match import WRAPPERS
from stockade.tool.project_code import INTERPRETERS, is_interpreter, is_runner, plain_name

if TYPE_CHECKING:
    from stockade.policy.shell_line import SimpleCommand

#: More are no rule that anybody reads.
MOST: Final = 5

# Whoever may run these with any further arguments may run anything, or change anything.
_NEVER: Final = (WRAPPERS - INTERPRETERS) | frozenset(
    word
    for line in (
        "scp rsync curl wget nc ncat socat awk gawk mawk nawk sed tar zip make gmake docker podman kubectl ld.so",
        "rm rmdir mv cp dd chmod chown chgrp ln tee truncate shred kill pkill killall mount umount install",
        "gdb lldb vi vim nvim emacs ed ex less more man",
    )
    for word in line.split()
)
#: Their options can change what a subcommand does, and hide which it is.
_WITH_SUBCOMMANDS: Final = frozenset(
    word
    for line in (
        "git hg svn gh npm pnpm yarn npx pip uv poetry pipx conda cargo rustup go gem bundle mvn gradle dotnet",
        "docker-compose helm terraform aws gcloud az apt apt-get dnf brew systemctl journalctl",
    )
    for word in line.split()
)
#: What follows these names what is run.
_RUNS: Final = frozenset(("run", "exec", "x", "dlx"))
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:.@/")


def suggested_patterns(line: str, *, outside: bool = False) -> tuple[str, ...]:
    """Return patterns that together allow a line, or none if nothing sensible would.

    ``outside``: the line would leave the walls, and so would every other that a pattern covers.
    """
    try:
        commands = parse(line)
        if outside and any(is_runner(command.words[0].text) for command in commands if command.words):
            raise _nothing_offered()
        patterns = tuple(dict.fromkeys(_pattern(command) for command in commands))
        parsed = tuple(Sourced(CommandPattern.parse(pattern), Origin(Layer.LOCAL)) for pattern in patterns)
    except InvalidTextError:
        return ()
    if not commands or len(patterns) > MOST or not allowed_by(parsed, line).covered:
        return ()
    return patterns


def _pattern(command: SimpleCommand) -> str:
    if command.assignments or not all(word.literal for word in command.words):
        raise _nothing_offered()
    words = [word.text for word in command.words]
    if not all(words) or not all(_PLAIN.issuperset(word) for word in words[:3]):
        raise _nothing_offered()
    return f"{' '.join(_kept(words))}:*"


def _kept(words: list[str]) -> list[str]:
    """Return the first words, those that say what a command does whatever comes after."""
    names = {words[0].rpartition("/")[2], plain_name(words[0])}
    has_argument = len(words) > 1 and not words[1].startswith("-")
    has_script = is_interpreter(words[0])
    if not names.isdisjoint(_NEVER) or words[1:2] == ["eval"]:
        raise _nothing_offered()
    if not has_argument and (has_script or not names.isdisjoint(_WITH_SUBCOMMANDS)):
        raise _nothing_offered()
    if not has_argument or not (has_script or words[1].replace("-", "").isalnum()):
        return words[:1]
    runs = words[1] in _RUNS and len(words) > 2  # noqa: PLR2004 - what is run, by its name
    return [*words[:2], *_kept(words[2:])] if runs else words[:2]


def _nothing_offered() -> InvalidTextError:
    return InvalidTextError("no pattern says this")
