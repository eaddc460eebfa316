"""A browser is large, and no part of what every run of the tests needs: scripts/test-browser has it and says which."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("STOCKADE_TEST_BROWSER") else ["*"]
