"""``python -m stockade``."""

from __future__ import annotations

from stockade.cli.main import start

start()
