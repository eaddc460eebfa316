"""What a command needs to know of the place where it was started: settings, policy, warnings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stockade.cli import flags
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.cli.flags import PolicyOptions
    from stockade.cli.terminal import Terminal
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.load import Loaded
    from stockade.settings.sources import Locations


class Context(Value):
    """Settings and policy as they are in force for one call."""

    locations: Locations
    loaded: Loaded
    policy: SandboxPolicy

    def tilde(self, path: str) -> str:
        """Return a path as people write it, with ``~`` for the home directory, escaped for the screen."""
        return tilde(path, self.locations.home)


def here(locations: Locations | None, settings: str | None = None) -> Locations:
    """Return where settings are looked for; tests give their own."""
    from stockade.settings.sources import Locations

    if locations is None:
        return Locations.here(os.environ, _working_directory(), settings)
    return locations.but(settings_file=settings) if settings else locations


def context(options: PolicyOptions, shown: Terminal, locations: Locations | None) -> Context:
    """Load the settings, compile the policy, and print the warnings."""
    from stockade.policy.compile import compile_policy
    from stockade.settings.load import load

    place = here(locations, options.settings)
    loaded = load(place, flags=flags.document(options))
    for warning in loaded.warnings:
        shown.warn(warning)
    policy = compile_policy(loaded.settings, cwd=place.cwd, home=place.home, guarded=loaded.files)
    return Context(place, loaded, policy)


def tilde(path: str, home: str) -> str:
    """Return a path with ``~`` for the home directory, escaped for the screen."""
    from stockade.escape import escape

    inside = home != "/" and (path == home or path.startswith(home + "/"))
    return escape("~" + path[len(home) :] if inside else path)


def _working_directory() -> str:
    from stockade.errors import StockadeError

    try:
        return os.getcwd()
    except OSError as error:
        message = "the working directory does not exist any more"
        raise StockadeError(message, "change to a directory that exists") from error
