"""What the commands that change settings have in common: where they write, and what they say after."""

from __future__ import annotations

import argparse

from stockade.annotation import TYPE_CHECKING
from stockade.cli.context import here, tilde
from stockade.cli.flags import add_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.edit import Edit
    from stockade.settings.sources import Locations


class EditOptions(argparse.Namespace):
    """What every such command takes."""

    home: bool
    json: bool


def configure(parser: Parser) -> None:
    """Add the flags of commands that change settings."""
    parser.add_argument(
        "--home", action="store_true", help="change ~/.stockade/settings.local.json, for all projects of yours"
    )
    add_json(parser)


def change(options: EditOptions, shown: Terminal, locations: Locations | None, edits: Sequence[Edit], done: str) -> int:
    """Write the edits into the local settings and say what was done."""
    from stockade.policy.effective import effective
    from stockade.settings.local_file import apply

    place = here(locations)
    lock = effective(place).loaded.lock
    written = apply(place, edits, lock=lock, home_wide=options.home)
    if options.json:
        shown.json({"file": written.file, "changed": written.changed})
        return 0
    file = tilde(written.file, place.home)
    shown.line(f"{done} ({file})" if written.changed else f"nothing to change: {file} says so already")
    return 0


def warn_if(shown: Terminal, place: Locations, refusal: Callable[[SandboxPolicy], str | None]) -> None:
    """Warn when what was just allowed is refused all the same, by another rule."""
    from stockade.policy.effective import effective

    reason = refusal(effective(place).policy)
    if reason is not None:
        shown.warn(f"still refused: {reason}")
