"""``stockade completion``: completion scripts, made from the commands and their flags."""

from __future__ import annotations

import argparse

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

    Flags = Mapping[str, tuple[str, ...]]


class Options(argparse.Namespace):
    """What the command line parses to."""

    shell: str


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="the shell to complete in")


def run(options: Options, shown: Terminal, _locations: Locations | None) -> int:
    """Print the script."""
    shown.line(SCRIPTS[options.shell](command_flags()).rstrip())
    return 0


def command_flags() -> dict[str, tuple[str, ...]]:
    """Return every command with the flags that it takes."""
    from importlib import import_module

    from stockade.cli.parser import Parser
    from stockade.cli.registry import COMMANDS

    found = {}
    for name, command in COMMANDS.items():
        parser = Parser(prog=name)
        import_module(f"stockade.cli.{command.module}").configure(parser)
        found[name] = parser.flags()
    return found


def bash(flags: Flags) -> str:
    """Return the script for bash: commands first, then flags, else file names."""
    cases = "\n".join(f'    {name}) words="{" ".join(options)}" ;;' for name, options in flags.items())
    return f"""\
_stockade() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(flags)} --help --version" -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) COMPREPLY=($(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _stockade stockade
"""


def zsh(flags: Flags) -> str:
    """Return the script for zsh."""
    from stockade.cli.registry import COMMANDS

    quoted = "\n".join(f"    '{name}:{_plain(COMMANDS[name].summary)}'" for name in flags)
    cases = "\n".join(f"    {name}) compadd -- {' '.join(options)} ;;" for name, options in flags.items())
    return f"""\
#compdef stockade
_stockade() {{
  local -a commands
  commands=(
{quoted}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  if [[ ${{words[CURRENT]}} != -* ]]; then
    _files
    return
  fi
  case ${{words[2]}} in
{cases}
  esac
}}
compdef _stockade stockade
"""


def fish(flags: Flags) -> str:
    """Return the script for fish."""
    from stockade.cli.registry import COMMANDS

    lines = []
    for name, options in flags.items():
        summary = _plain(COMMANDS[name].summary)
        lines.append(f"complete -c stockade -n __fish_use_subcommand -f -a {name} -d '{summary}'")
        for option in options:
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            lines.append(f"complete -c stockade -n '__fish_seen_subcommand_from {name}' {kind}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return a summary without the characters that the shells would read."""
    return text.replace("'", "").replace(":", "")


SCRIPTS: Final[Mapping[str, Callable[[Flags], str]]] = {"bash": bash, "zsh": zsh, "fish": fish}
