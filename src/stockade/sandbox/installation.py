"""Whether Stockade itself lies where its commands may write.

What starts the helpers and the proxy is read from the disk each time: whoever can change it has left the walls with
the next command. Nothing is refused for that, for developers work on Stockade inside of it; ``doctor`` warns.
"""

from __future__ import annotations

import os
import sys

from stockade.annotation import TYPE_CHECKING
from stockade.policy.files import Access, judge
from stockade.policy.places import Disk

if TYPE_CHECKING:
    from stockade.policy.model import SandboxPolicy


def own_places() -> tuple[str, ...]:
    """Return where this package, its interpreter and their libraries are."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = (package, sys.executable, sys.prefix, sys.base_prefix, os.path.dirname(os.__file__))
    return tuple(dict.fromkeys(place for place in places if place))


def writable_places(policy: SandboxPolicy, places: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Return those of our places that commands of a policy may write."""
    disk = Disk()
    given = own_places() if places is None else places
    return tuple(place for place in given if judge(policy.files, Access.WRITE, place, disk).allowed)
