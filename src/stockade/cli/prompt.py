"""The user's own shell, with a prompt that says where it is.

Most people set their prompt in a start-up file, and many have it made anew before each line. So the shell first reads
what it always reads, and then puts the mark in front, before every prompt that has none. It can read its history,
but does not try to write it where it cannot.

``STOCKADE_PROMPT`` is another mark; an empty one leaves the prompt alone. The files lie in the session's temporary
directory. Source of truth: bash(1), zshmisc(1), zshall(1) on start-up files, fish(1), dash(1).
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.cli.running import Order
from stockade.sandbox import shell

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARK: Final = "(stockade) "
#: Shells that people use by hand; lines are read by fewer of them, see ``sandbox.shell``.
_BY_HAND: Final = frozenset({"bash", "dash", "fish", "ksh", "mksh", "sh", "yash", "zsh"})
_FOLDER: Final = "shell"

_BASH: Final = """\
[ -r ~/.bashrc ] && . ~/.bashrc
__stockade_mark={mark}
__stockade_prompt() {{
  case ${{PS1-}} in *"$__stockade_mark"*) ;; *) PS1=$__stockade_mark${{PS1-}} ;; esac
  [ -w "${{HISTFILE-/}}" ] || unset HISTFILE
}}
case $(declare -p PROMPT_COMMAND 2>/dev/null) in
  "declare -a"*) PROMPT_COMMAND+=(__stockade_prompt) ;;
  *) PROMPT_COMMAND=${{PROMPT_COMMAND:+$PROMPT_COMMAND$'\\n'}}__stockade_prompt ;;
esac
"""
_ZSHENV: Final = """\
ZDOTDIR={home}
[[ ! -r $ZDOTDIR/.zshenv ]] || . $ZDOTDIR/.zshenv
__stockade_home=$ZDOTDIR
ZDOTDIR={folder}
"""
_ZSHRC: Final = """\
ZDOTDIR=$__stockade_home
unset __stockade_home
[[ ! -r $ZDOTDIR/.zshrc ]] || . $ZDOTDIR/.zshrc
__stockade_mark={mark}
__stockade_prompt() {{ [[ $PS1 == *"$__stockade_mark"* ]] || PS1=$__stockade_mark$PS1; }}
precmd_functions+=(__stockade_prompt)
[[ -w ${{HISTFILE-/}} ]] || SAVEHIST=0
"""
_FISH: Final = """\
functions -q fish_prompt; and functions -c fish_prompt __stockade_prompt
or function __stockade_prompt; printf '> '; end
function __stockade_status; return $argv[1]; end
function fish_prompt
    set -l last $status
    printf '%s' {mark}
    __stockade_status $last
    __stockade_prompt
end
"""


def user_shell(environment: Mapping[str, str], temporary: str, *, prompt: bool) -> Order:
    """Return how to run the user's shell, with a prompt that says where it is if anybody sees one."""
    program = _program(environment)
    mark = environment.get("STOCKADE_PROMPT", _MARK)
    if not (prompt and mark):
        return Order((program,))
    from shlex import quote

    folder = os.path.join(temporary, _FOLDER)
    name = os.path.basename(program)
    if name == "bash":
        _write(folder, "bashrc", _BASH.format(mark=quote(mark)))
        return Order((program, "--rcfile", os.path.join(folder, "bashrc")))
    if name == "zsh":
        home = environment.get("ZDOTDIR") or environment.get("HOME") or os.path.expanduser("~")
        _write(folder, ".zshenv", _ZSHENV.format(home=quote(home), folder=quote(folder)))
        _write(folder, ".zshrc", _ZSHRC.format(mark=quote(mark)))
        return Order((program,), {"ZDOTDIR": folder})
    if name == "fish":
        escaped = mark.replace("\\", "\\\\").replace("'", "\\'")
        return Order((program, "--init-command", _FISH.format(mark=f"'{escaped}'")))
    usual = "# " if os.geteuid() == 0 else "$ "
    return Order((program,), {"PS1": mark + environment.get("PS1", usual)})


def _program(environment: Mapping[str, str]) -> str:
    own = environment.get("SHELL", "")
    if os.path.basename(own) in _BY_HAND and os.path.isabs(own) and os.access(own, os.X_OK):
        return own
    return shell.choose(environment)


def _write(folder: str, name: str, text: str) -> None:
    """Write a start-up file, before any command of the session runs that could be in the way."""
    os.makedirs(folder, 0o700, exist_ok=True)
    with open(os.path.join(folder, name), "x", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
