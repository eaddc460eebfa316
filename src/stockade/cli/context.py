"""What a command needs to know of the place where it was started: settings, policy, warnings."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.cli import flags
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.cli.flags import PolicyOptions
    from stockade.cli.terminal import Terminal
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.layer import Origin
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

    def origin(self, origin: Origin) -> str:
        """Return who set a value, as people write it."""
        return f"{self.tilde(origin.file)} ({origin.layer})" if origin.file else str(origin.layer)


def here(locations: Locations | None, settings: str | None = None) -> Locations:
    """Return where settings are looked for; tests give their own."""
    from stockade.settings.sources import Locations

    if locations is None:
        return Locations.here(os.environ, settings_file=settings)
    return locations.but(settings_file=settings) if settings else locations


def context(options: PolicyOptions, shown: Terminal, locations: Locations | None) -> Context:
    """Load the settings, compile the policy, and print the warnings."""
    from stockade.policy.effective import effective

    place = here(locations, options.settings)
    if options.ignore_project:
        place = place.but(ignore_project=True)
    found = effective(place, flags=flags.document(options))
    for warning in (*found.warnings, *((found.policy.files.closed,) if found.policy.files.closed else ())):
        shown.warn(warning)
    return Context(place, found.loaded, found.policy)


def tilde(path: str, home: str) -> str:
    """Return a path with ``~`` for the home directory, escaped for the screen."""
    from stockade.escape import escape

    inside = home != "/" and (path == home or path.startswith(home + "/"))
    return escape("~" + path[len(home) :] if inside else path)
