r"""What tells our own words from a command's: an id that the model knows and no command does.

Whatever a command prints may look like words of ours, and no list of look-alikes is complete. So each session has an id
of random letters. It stands in the tags of every block and in every line that the session adds to an output; the model
is told which one it is. A command never gets it: it is in no environment and in no file.

Rules: a model may still write the id into a command, so that it comes back as output. There it is *hidden*: other words
stand in its place, in whatever disguise it was. Without an id, tags and lines are plain, and only ``forged_tag``
protects them.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final
from stockade.value import Value
from stockade.violations.overstrike import moves, plain, shown, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = "sandbox_violations"
#: No vowels, so that it is no word; none that looks like another.
LETTERS: Final = "23456789bcdfghjkmnpqrstvwxyz"
LENGTH: Final = 12
#: What an output has in place of the id. Its vowel is in no id, so that it makes none of what stands around it.
INSTEAD: Final = "(id)"
_LONGEST: Final = 80
_NO_LETTERS: Final = bytes(code for code in range(128) if not chr(code).isalnum())


class Mark(Value):
    """How words of ours are marked; without an ``id``, not at all. The id is not shown."""

    id: str = ""

    def check(self) -> None:
        """Refuse an id that could be misread."""
        if not set(self.id) <= set(LETTERS) or 0 < len(self.id) < LENGTH:
            message = f"the id of a mark has {LENGTH} or more of the letters {LETTERS}"
            raise ValueError(message)

    def __repr__(self) -> str:
        """Show whether there is one, and no more: a log may be read by a command."""
        return "Mark(...)" if self.id else "Mark()"

    @classmethod
    def fresh(cls) -> Mark:
        """Return one that nobody can guess: of 57 bits."""
        number = int.from_bytes(os.urandom(16), "big")
        letters = []
        for _ in range(LENGTH):
            number, place = divmod(number, len(LETTERS))
            letters.append(LETTERS[place])
        return cls("".join(letters))

    @property
    def opening(self) -> str:
        """The tag before a block of violations."""
        return f'<{NAME} id="{self.id}">' if self.id else f"<{NAME}>"

    @property
    def closing(self) -> str:
        """The tag behind it, with the id too: nothing else closes it."""
        return f'</{NAME} id="{self.id}">' if self.id else f"</{NAME}>"

    def line(self, text: str) -> str:
        """Return a line of ours."""
        return f"[stockade {self.id}: {text}]" if self.id else f"[{text}]"

    def hide(self, text: str) -> str:
        """Return a text from elsewhere in which the id is not to be read."""
        if not self.id:
            return text
        text = self._replaced(text)
        if "&" in text and ((unescaped := _unescaped(text)) is None or self._is_in(unescaped)):
            text = text.replace("&", "\\x26")
        if any(sign in text for sign in "\b\r\x1b\x9b") and set(self.id).issubset(_folded(text)):
            seen = shown(text) if moves(text) else plain(text)
            if seen is None or self._is_in(seen):
                text = spelled(text)
        return self._replaced(text)  # an escape has letters, too

    def _is_in(self, text: str) -> bool:
        return self.id in _folded(text)

    def _replaced(self, text: str) -> str:
        if not self._is_in(text):
            return text
        places = [(place, char) for place, whole in enumerate(text) for char in _folded(whole)]
        letters = "".join(char for _, char in places)
        pieces, done, at = [], 0, 0
        while (at := letters.find(self.id, at)) >= 0:
            pieces += [text[done : places[at][0]], INSTEAD]
            at += len(self.id)
            done = places[at - 1][0] + 1
        return "".join(pieces) + text[done:]


PLAIN: Final = Mark()


def _folded(text: str) -> str:
    """Return the letters and digits of a text, each as plain as it gets."""
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFKD", text)
    return text.lower().encode("ascii", "ignore").translate(None, _NO_LETTERS).decode("ascii")


def _unescaped(text: str) -> str | None:
    """Return a text without entities; ``None`` if it holds a number that Python does not read (above 4,300 digits)."""
    from html import unescape

    try:
        for _ in range(3):
            text = unescape(text)
    except ValueError:
        return None
    return text


def tags(text: str) -> Iterator[tuple[int, int, Mark]]:
    """Yield where each opening tag that is alone on its line begins and ends, with its mark."""
    start = f"<{NAME}"
    at = 0
    while (begin := text.find(start, at)) >= 0:
        at = begin + len(start)
        end = text.find(">\n", at, at + _LONGEST) + 1
        mark = _mark(text[at : end - 1]) if end else None
        if mark is not None and text[begin - 1 : begin] in ("", "\n"):
            yield begin, end, mark


def _mark(inner: str) -> Mark | None:
    """Read what stands in a tag behind its name."""
    found = inner[len(' id="') : -1]
    try:
        mark = Mark(found)
    except ValueError:
        return None
    return mark if mark.opening == f"<{NAME}{inner}>" else None
