"""The words that start a program through bubblewrap, so that it lives under bubblewrap's security profile.

Nothing is confined by this: the program sees the whole host, keeps its process ids and its user, and has one user
namespace above it in which it holds no capability. What it gains is the label of the profile, if that is handed on.

Rules: pure; only options that bubblewrap 0.4 (2020) has and that mean the same up to 0.11. ``--dev-bind``, not
``--bind``, which would shut the devices; no ``--unshare-pid``, for the owner's process must stay in sight; no
``--die-with-parent``, for that is the death of a thread, and the helpers have to clean up after their owner.
Source of truth: bwrap(1), apparmor.d(5).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Where a distribution puts it; a bwrap in PATH could be anybody's, and no profile would be attached to it.
PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")


def through(bwrap: str, words: Sequence[str]) -> list[str]:
    """Return the words that start a program through bubblewrap; its open descriptors reach the program."""
    return [bwrap, "--unshare-user", "--dev-bind", "/", "/", "--", *words]
