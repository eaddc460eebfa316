"""What a line may run: words of which one names a command, or a text that a shell may read."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.loose_word import UNKNOWN
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.tool.loose_word import LooseWord


class Possibility(Value):
    """Words of which the one at ``start`` may name a command; ``goes_on`` if unknown words may follow the last."""

    words: tuple[LooseWord, ...]
    start: int = 0
    goes_on: bool = False

    def __str__(self) -> str:
        """Return it as it is spelled."""
        return " ".join(word.spelling for word in self.words[self.start :])


class Text(Value):
    """A text that may be read as a shell line."""

    text: str


#: A command of which nothing is known.
ANYTHING: Final = Possibility((UNKNOWN,))
