"""What an inspection has found, and what it need not look at again."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.filesystem.alternates import Alternates
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.filesystem.signature import Signature


class Finding(Value):
    """Something that was set aside: where it was, where it is now, and why; ``failure`` says why it was not.

    ``back`` is the line of a shell that takes it back, where to move it is not enough.
    """

    path: str
    kept: str
    why: str
    failure: str = ""
    back: str = ""


def unseen(why: str) -> Finding:
    """Return the finding that not everything could be looked at."""
    return Finding("", "", "what the command left could not be looked at", why)


class Memo:
    """What earlier looks have found out, each by the signature of the file that it is about."""

    def __init__(self) -> None:
        """Begin with nothing."""
        #: Configs that may stay, with the repositories that they name by path.
        self.harmless: dict[str, tuple[Signature, tuple[str, ...]]] = {}
        #: The gitlinks of a repository's index, by the directory that the index is in.
        self.indexes: dict[str, tuple[Signature, tuple[str, ...]]] = {}
        #: Those of them that were read while a command ran.
        self.hasty: set[str] = set()
        #: What could not be set aside is told once.
        self.told: set[tuple[str, Signature]] = set()
        self.alternates = Alternates()
