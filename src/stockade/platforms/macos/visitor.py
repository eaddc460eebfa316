"""A program that anybody of this user may run to run one command inside: it reads the order, and becomes the command.

The order lies in a file that only this user can read and that no command behind the walls can: it holds what lets the
command use the session's proxies, which must not stand in arguments for all to see.
"""

from __future__ import annotations

import json
import sys

from stockade.platforms.macos.start import become

_USAGE = 2
_FAILED = 125


def visit(arguments: list[str]) -> int:
    """Become the command of an order; return a status if that fails."""
    if len(arguments) != 1:
        sys.stderr.write("stockade: give the file of an order\n")
        return _USAGE
    try:
        with open(arguments[0], encoding="utf-8") as file:
            order = json.load(file)
        become(order)
    except FileNotFoundError:
        sys.stderr.write("stockade: the session that this command was wrapped by is closed\n")
    except (OSError, ValueError) as problem:
        sys.stderr.write(f"stockade: cannot start the command: {problem}\n")
    return _FAILED
