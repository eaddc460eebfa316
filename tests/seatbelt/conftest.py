"""Real walls on a real Mac: nothing here is collected elsewhere, so that nothing is ever skipped.

``scripts/test tests/seatbelt`` runs all of it. A failure here outweighs every test of the evaluator.
"""

from __future__ import annotations

import sys

collect_ignore_glob = [] if sys.platform == "darwin" else ["*"]
