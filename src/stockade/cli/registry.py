"""The commands there are. A command's module is imported only when it is chosen.

`stockade --help`, the table in README.md and the shell completions are made from this list.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.value import Value


class Command(Value):
    """One command: its name, its module in this package, and what it does in one line."""

    name: str
    module: str
    summary: str


COMMANDS: Final[dict[str, Command]] = {
    command.name: command
    for command in (
        Command("run", "run", "Run a command behind the walls."),
        Command("shell", "shell", "Open your shell behind the walls."),
        Command("wrap", "wrap", "Print the line that runs a command behind the walls, for other programs to run."),
        Command("status", "status", "Show the settings in force, who set them, and what this machine lacks."),
        Command(
            "doctor", "doctor", "Say whether walls can be built on this machine; if not, why, and the exact remedy."
        ),
        Command(
            "explain",
            "explain",
            "Say whether a path, host or command is allowed, by which rule, and what would change it.",
        ),
        Command("check", "check", "Check settings files and report every mistake in them."),
        Command("list", "list_rules", "List the rules in force, each with the file that it comes from."),
        Command("enable", "enable", "Turn the sandbox on in the local settings."),
        Command("disable", "disable", "Turn the sandbox off in the local settings."),
        Command("allow", "allow", "Let commands write a path (or, with --read, read it again inside a read deny)."),
        Command("deny", "deny", "Forbid commands to write a path (or, with --read, to read it)."),
        Command("allow-domain", "allow_domain", "Let commands reach a host."),
        Command("deny-domain", "deny_domain", "Forbid commands to reach a host."),
        Command("exclude", "exclude", "Let a command run outside the sandbox."),
        Command("guidance", "guidance", "Print what to tell an agent about the sandbox, for its system prompt."),
        Command("trust", "trust", "Let the settings files of this project loosen the sandbox, as they are now."),
        Command("clean", "clean", "Remove what sandboxed package managers have cached for this project, or for all."),
        Command("schema", "schema", "Print the JSON Schema of a settings file, for editors."),
        Command("completion", "completion", "Print the completion script for bash, zsh or fish."),
    )
}
