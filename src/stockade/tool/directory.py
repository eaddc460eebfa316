"""The working directory that is kept from one call to the next.

A shell is started for each call; on leaving it reports where it is, in a file of the session's temporary directory.
Rules:

- Nothing is reported where the line cannot have moved.
- Only a call that ends elsewhere than it began moves the directory; background jobs never do.
- The file is written by a command that nobody has read: it is opened without following links, read up to a bound, and
  believed only if it names a directory, as ``pwd -P`` would, that the policy lets be read. So to lie in it gains
  nothing that ``cd`` would not, not even to learn what there is in a hidden place.
- To be in a directory opens nothing: writable places are those of the policy, which knows the session's directory
  only.
- One that is outside the session's roots is kept, and said. One that is gone, or in which nothing can be started, is
  replaced by the session's, and said.

Source of truth: POSIX.1-2024 trap, pwd -P; the same in bash, dash and zsh (the tests run each that is installed).
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.builtin import changes_directory, why_not_plain
from stockade.policy.path_pattern import is_at_or_below
from stockade.policy.shell_line import parse
from stockade.suppress import suppress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.policy.model import SandboxPolicy

_LONGEST: Final = 4096
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def shell_words(shell: str, line: str, report: str) -> tuple[str, ...]:
    """Return the words that run a line in a shell, which reports its last directory in a file if that may change."""
    if not may_move(line):
        # A shell that has nothing to do at its end becomes its last command, which saves a process.
        return shell, "-c", line
    # The line finds no arguments and no name but the shell's, and a wrong line cannot break what stands around it.
    quoted = "'" + report.replace("'", "'\\''") + "'"
    script = f'trap "pwd -P >|{_in_double_quotes(quoted)} 2>/dev/null" EXIT; __line=$1; shift; eval "$__line"'
    return shell, "-c", script, os.path.basename(shell), line


def may_move(line: str) -> bool:
    """Say whether a line may end in another directory than it begins in."""
    try:
        commands = parse(line)
    except InvalidTextError:
        return True
    named = [command for command in commands if command.words]
    # A builtin that evaluates (`eval`, `trap`, `mapfile -C`) may hold a line that moves. Functions and aliases stand in
    # no line that is understood.
    return changes_directory(named) or any(not one.words[0].literal or why_not_plain(one) for one in named)


def _in_double_quotes(text: str) -> str:
    for special in '\\"$`':
        text = text.replace(special, f"\\{special}")
    return text


def read_report(report: str) -> str | None:
    """Return the directory that a shell has reported, if there is one, and remove the report."""
    try:
        descriptor = os.open(report, _FLAGS)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data = os.read(descriptor, _LONGEST + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
        with suppress(OSError):
            os.unlink(report)
    path = os.fsdecode(data.removesuffix(b"\n"))
    is_whole = path.startswith("/") and len(data) <= _LONGEST
    return path if is_whole and _is_directory(path) and os.path.realpath(path) == path else None


class WorkingDirectory:
    """Where the next call begins."""

    def __init__(self, path: str) -> None:
        """Begin in a directory."""
        self.path = path

    def begin(self, policy: SandboxPolicy) -> tuple[str, tuple[str, ...]]:
        """Return where a call begins, and notes about it."""
        if _is_directory(self.path):
            return self.path, ()
        gone, self.path = self.path, policy.cwd
        return self.path, (f"the working directory {escape(gone)} is gone; back to {escape(policy.cwd)}",)

    def end(self, began: str, ended: str | None, policy: SandboxPolicy, temporary: str) -> tuple[str, ...]:
        """Move to where a call has ended; return notes about it."""
        if ended is None or ended == began or not _may_read(ended, policy):
            return ()
        self.path = ended
        if any(is_at_or_below(ended, root) for root in roots(policy, temporary)):
            return ()
        return (f"the working directory is now {escape(ended)}, outside the writable places of this session",)

    def leave(self, policy: SandboxPolicy) -> tuple[str, ...]:
        """Go back to the session's directory, as nothing can be started in this one; return notes about it."""
        if self.path == policy.cwd:
            return ()
        self.path = policy.cwd
        return (f"the working directory is {escape(policy.cwd)} again",)


def place_on_disk(path: str) -> str:
    """Return a directory without links, as it is now."""
    return os.path.realpath(path)


def _may_read(path: str, policy: SandboxPolicy) -> bool:
    from stockade.policy.files import Access, judge
    from stockade.policy.places import Disk

    return not policy.files.read_deny or judge(policy.files, Access.READ, path, Disk()).allowed


def roots(policy: SandboxPolicy, temporary: str = "") -> tuple[str, ...]:
    """Return the places that a session may write, without patterns, as they are on disk."""
    allowed = (rule.value.path for rule in policy.files.write_allow if not rule.value.is_glob)
    return tuple(dict.fromkeys(_real((policy.cwd, *allowed, *((temporary,) if temporary else ())))))


def _real(paths: Iterable[str]) -> Iterable[str]:
    return map(os.path.realpath, paths)


def _is_directory(path: str) -> bool:
    return "\0" not in path and os.path.isdir(path)
