"""What rules to offer for a line, so that the like of it need not be asked for again.

Rules: nothing is offered that would not match the line itself; each simple command gets a pattern of its own. A
pattern is the command with its subcommand and anything after (``git commit:*``). Where the rest decides everything
(an interpreter, a wrapper, what deletes), it is the words of the line; what they hold that no pattern can say, offers
nothing.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.shell_line import parse
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.allowance import allowed_by

if TYPE_CHECKING:
    from stockade.policy.shell_line import SimpleCommand

#: More are no rule that anybody reads.
MOST: Final = 5

# Whoever may run these with any arguments may run anything, or remove anything.
_WHOLE: Final = frozenset(
    word
    for line in (
        "sh bash dash zsh ksh fish eval exec source env sudo doas su xargs parallel find ssh scp rsync curl wget nc",
        "python python3 node deno bun ruby perl php lua awk sed tclsh osascript make docker podman kubectl nohup",
        "rm rmdir mv cp dd chmod chown chgrp ln tee truncate shred kill pkill killall mount umount timeout nice time",
    )
    for word in line.split()
)
#: What follows these names what is run.
_RUNS: Final = frozenset(("run", "exec", "x", "dlx"))
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:.@/")


def suggested_patterns(line: str) -> tuple[str, ...]:
    """Return patterns that together allow a line, or none if nothing sensible would."""
    try:
        commands = parse(line)
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
    if words[0].rpartition("/")[2] in _WHOLE:
        return " ".join(words)
    size = 1
    if len(words) > 1 and not words[1].startswith("-") and words[1].replace("-", "").isalnum():
        size = 3 if words[1] in _RUNS and len(words) > 2 else 2  # noqa: PLR2004 - what is run, by its name
    return f"{' '.join(words[:size])}:*"


def _nothing_offered() -> InvalidTextError:
    return InvalidTextError("no pattern says this")
