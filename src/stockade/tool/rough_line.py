"""A line that nobody has understood, as every run of words in it that may be a command.

Quotes mean nothing here: each word may begin a command, each word that the shell may change may be any that fits it,
and what stands behind a ``=`` may be a word too (``functions[f]='rm x'``).
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.loose_word import ANY, ONE, UNKNOWN, LooseWord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.tool.effort import Effort

# A backquote ends a command, and what touches it may become anything.
_BREAKS: Final = str.maketrans(dict.fromkeys(";&|()<>\r", "\n") | dict.fromkeys("'\"\\", "") | {"`": "$\n$"})
_OPEN: Final = frozenset("$*?[]{}~^#" + ANY + ONE)
# In zsh a parenthesis makes a pattern where it touches a word: /bin/(r)m, env (r)m. In ksh and bash /bin/@(rm).
_GROUP: Final = re.compile(r"[^\s;&|()<>$=`](?:\\\n)*\((?!\s*\))|\)(?:\\\n)*[^\s;&|()<>`]")
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_TAKES_WORDS: Final = re.compile(r"\$|\{(?!\})|(?<!\{)\}")
_BRACKETS: Final = re.compile(r"\[.*\]|\[.*|^[^\[]*\]", re.DOTALL)


def rough_commands(line: str, effort: Effort) -> Iterator[tuple[LooseWord, ...]]:
    """Yield runs of words; each word of a run may begin a command."""
    if _GROUP.search(line):
        yield (UNKNOWN,)
    text = line.replace("\\\n", "")
    yield from _runs(text, effort)
    if not line.isascii():
        # Some shells take a byte of such a character for a blank.
        yield from _runs(_BEYOND_ASCII.sub(" ", text), effort)


def _runs(text: str, effort: Effort) -> Iterator[tuple[LooseWord, ...]]:
    for piece in text.translate(_BREAKS).split("\n"):
        texts = piece.split()
        effort.spend(2 * len(texts) + 1)
        if not texts:
            continue
        yield tuple(map(_word, texts))
        for at, word in enumerate(texts):
            _, equals, value = word.partition("=")
            if equals and value:
                effort.spend(len(texts) - at)
                yield (_word(value), *map(_word, texts[at + 1 :]))


def _word(text: str) -> LooseWord:
    if _OPEN.isdisjoint(text) and not text.startswith("="):
        return LooseWord(text, text, False, False, False)
    if _TAKES_WORDS.search(text):
        return LooseWord(text, ANY, is_split=True)
    if text.startswith("=") or not {"~", "^", "#"}.isdisjoint(text):
        return LooseWord(text, ANY)
    shape = _BRACKETS.sub(ANY, text).replace("*", ANY).replace("?", ONE)
    return LooseWord(text, shape, is_glob=shape != text)
