"""``python -m stockade``."""

from __future__ import annotations

import sys

from stockade.cli.main import main

sys.exit(main())
