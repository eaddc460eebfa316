"""Whose home HOME is: the user database knows a user's home, a variable says what somebody put into it.

Few runs need to know, and a database may be across a network: it is asked only where the answer matters.
"""

from __future__ import annotations

import os

from stockade.escape import escape
from stockade.settings.ancestors import database_home

__all__ = ["borrowed", "database_home", "is_users_home"]


def is_users_home(home: str) -> bool:
    """Tell whether a directory is this user's home; for a user without an entry every home is."""
    known = database_home()
    return not known or home == known or os.path.realpath(home) == os.path.realpath(known)


def borrowed(home: str, file: str) -> str:
    """Return a warning if HOME was set to a directory of a project, of which ``file`` is a settings file."""
    if is_users_home(home):
        return ""
    return (
        f"HOME is {escape(home)}, in a project ({escape(file)}), and not your home in the user database: "
        "settings in that HOME count as your own, without trust; set HOME to your home directory"
    )
