"""The command line of a checkout. Arguments: the directory to import from, then those of the command line."""

from __future__ import annotations

import sys

sys.path.insert(0, sys.argv.pop(1))

from stockade.cli.main import start

start()
