from __future__ import annotations

from importlib import import_module
from pathlib import Path

from stockade.cli.registry import COMMANDS

README = Path(__file__).parents[2] / "README.md"


def test_every_command_has_a_module_that_can_be_configured_and_run() -> None:
    for command in COMMANDS.values():
        module = import_module(f"stockade.cli.{command.module}")
        assert callable(module.configure)
        assert callable(module.run)
        assert isinstance(module.Options, type)


def test_readme_lists_the_commands_as_they_are() -> None:
    text = README.read_text()
    start, end = "<!-- commands: generated -->\n", "<!-- /commands -->"
    table = text[text.index(start) + len(start) : text.index(end)].strip()
    rows = [f"| `stockade {command.name}` | {command.summary} |" for command in COMMANDS.values()]
    assert table == "\n".join(["| command | what it does |", "|---|---|", *rows])
