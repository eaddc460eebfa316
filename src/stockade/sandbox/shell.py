"""Which shell reads a command line."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_KNOWN: Final = frozenset({"bash", "zsh"})


def choose(
    environment: Mapping[str, str],
    find: Callable[[str], str | None] | None = None,
    acceptable: Callable[[str], bool] = bool,
) -> str:
    """Return the shell: ``$SHELL`` if it is bash or zsh, else bash, else sh; ``acceptable`` says which may be used."""
    look = find or (lambda name: _found(name, environment.get("PATH")))
    own = environment.get("SHELL", "")
    if os.path.basename(own) in _KNOWN and own.startswith("/") and os.access(own, os.X_OK) and acceptable(own):
        return own
    for name in ("bash", "sh"):
        found = look(name)
        if found is not None and acceptable(os.path.abspath(found)):
            return os.path.abspath(found)
    message = "there is no shell: neither bash nor sh is on PATH"
    raise UnavailableError(message, "install bash, or give the command as a list of words")


def _found(name: str, path: str | None) -> str | None:
    from stockade.platforms.requirements import find_program  # most people have one of the known shells

    return find_program(name, path)


def argv(command: str | Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words to run: a line goes to the shell, words stay as they are."""
    return (choose(environment), "-c", command) if isinstance(command, str) else tuple(command)
