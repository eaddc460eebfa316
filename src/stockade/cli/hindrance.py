"""Why nothing can start: the rule of a project's file that hides what every command needs, and how to go on without it.

A stranger's project may deny reading of ``/``, of the system or of its own directory. That is enforced, or refused
where it cannot be; but people who run a command there should learn whose rule it is.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.policy.effective import WITHOUT_PROJECT
from stockade.policy.files import Access, judge
from stockade.policy.places import Disk
from stockade.settings.sources import project_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stockade.errors import StockadeError
    from stockade.policy.model import SandboxPolicy
    from stockade.policy.path_pattern import PathPattern
    from stockade.settings.layer import Sourced

_SHELL_MARKS: Final = " |&;<>$*"
_BUILTINS: Final = frozenset({"alias", "cd", "eval", "exec", "export", "set", "source", "type", "ulimit", "unset", "."})
_NOT_STARTED: Final = "the command could not be started"
#: Without these a program on the way to the command cannot be loaded.
_SYSTEM: Final = ("/", "/bin/sh", "/usr", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/proc", "/dev")


def hint(error: StockadeError, policy: SandboxPolicy, command: str | Sequence[str] | None) -> str:
    """Return the hint of a failure to start something: with the rule of a project that may be why, if there is one."""
    for rule in (*policy.files.read_deny, *policy.files.write_deny):
        if project_of(rule.origin, policy.home) and _named(rule) in error.message:
            return f"{error.hint}. {WITHOUT_PROJECT}"
    if not error.message.startswith(_NOT_STARTED):
        return error.hint
    disk = Disk()
    for place in _needed(policy, command):
        verdict = judge(policy.files, Access.READ, place, disk)
        why = None if verdict.allowed else verdict.rule
        if why is not None and project_of(why.origin, policy.home):
            return f'{_named(why)} denies reading "{escape(place)}". {WITHOUT_PROJECT}'
    if command is not None and not isinstance(command, str) and _is_line(command):
        return f"for a line of the shell: stockade run -c {_quoted(command)}"
    return error.hint


def _is_line(words: Sequence[str]) -> bool:
    """Tell whether words that are no program look like what only a shell understands."""
    first = words[0]
    is_whole = len(words) == 1 and any(mark in first for mark in _SHELL_MARKS)
    is_assignment = first.partition("=")[0].isidentifier() and "=" in first
    return is_whole or is_assignment or first in _BUILTINS


def _quoted(words: Sequence[str]) -> str:
    import shlex

    return escape(shlex.quote(words[0] if len(words) == 1 else " ".join(words)))


def _named(rule: Sourced[PathPattern]) -> str:
    return f'"{escape(rule.value.text)}" of {rule.origin}'


def _needed(policy: SandboxPolicy, command: str | Sequence[str] | None) -> Iterator[str]:
    import shutil

    from stockade.sandbox import shell

    yield policy.cwd
    program = shell.choose(os.environ) if command is None or isinstance(command, str) else command[0]
    found = shutil.which(program)
    if found is not None:
        yield os.path.abspath(found)
    yield from _SYSTEM
