"""``stockade schema``: the JSON Schema of a settings file."""

from __future__ import annotations

import argparse

from stockade.annotation import TYPE_CHECKING

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations


class Options(argparse.Namespace):
    """Nothing to say."""


def configure(_parser: Parser) -> None:
    """Add no arguments."""


def run(_options: Options, shown: Terminal, _locations: Locations | None) -> int:
    """Print the schema."""
    from stockade.settings.schema import schema

    shown.json(schema())
    return 0
