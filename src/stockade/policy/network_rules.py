"""The rules on domains, as every part that only carries them needs them.

What they mean is in ``decision`` and ``domain_pattern``; a run without any loads neither.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.domain_pattern import DomainPattern
    from stockade.settings.layer import Sourced


class NetworkRules(Value):
    """The rules on domains, with who set them."""

    allowed: tuple[Sourced[DomainPattern], ...] = ()
    denied: tuple[Sourced[DomainPattern], ...] = ()
