"""Skipping permissions as root is refused: nothing would stand between a model and the machine.

``IS_SANDBOX=1`` in the environment says that a container is the wall around all of this, and lifts the refusal.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.errors import StockadeError

if TYPE_CHECKING:
    from collections.abc import Mapping


def require_not_root(user: int, environment: Mapping[str, str]) -> None:
    """Raise if permissions must not be skipped by this user."""
    if user == 0 and environment.get("IS_SANDBOX") != "1":
        message = "permissions cannot be skipped as root"
        raise StockadeError(message, "run as another user, or set IS_SANDBOX=1 in a container that is thrown away")
