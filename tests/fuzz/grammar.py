"""Lines of shell, made at random: the same for the same seed.

A line comes from a grammar (names, options, payloads in all quotings, joined by operators), or is a line that was
dangerous once with something changed. Most lines stay near what a careful reader accepts, since only such a line tells
anything; the rest is rubble.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from vocabulary import BUILTINS, DUOS, FORMATS, GLOBS, OPTIONS, PAYLOADS, PLAIN, PROGRAMS, SYNTAX, TESTS, VARIABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPERATORS = ("; ", "; ", "; ", " && ", " || ", " | ", " & ", "\n", ";", "&&", "|", "\n\n", " # x\n")
_USUAL = ("test", "printf", "echo", "read", "cd", "ls", "docker", "print", "set", "unset", "getopts")
_PIECES = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|.", re.DOTALL)
#: Only what stays in the world of the fuzzer is ever run: no path from the top, no way up but one step.
_HARMLESS_PATHS = re.compile(r"/dev/null|\$EVIL/|\$\{EVIL\}/|(?<=[\w.])/")
_FORBIDDEN = re.compile(r"k\s*i\s*l|s\s*u\s*s\s*p\s*e|\.\.", re.IGNORECASE)


def is_harmless(line: str) -> bool:
    """Say whether a line may run on this machine, in the world that ``world`` makes."""
    bare = re.sub(r"['\"\\]", "", line)
    return "/" not in _HARMLESS_PATHS.sub("", line) and not _FORBIDDEN.search(bare)


class Grammar:
    """An endless source of lines."""

    def __init__(self, seed: int, known: Sequence[str]) -> None:
        self.random = random.Random(seed)  # noqa: S311 -- data for a test, the same for the same seed
        self.known = tuple(known)

    def line(self) -> str:
        """Return the next line."""
        made = self.random.random()
        if made < 0.45:
            return self.commands()
        if made < 0.6:
            return self.duo()
        if made < 0.9:
            return self.mutant(self.random.choice(self.known))
        return self.rubble()

    def commands(self) -> str:
        count = self.random.choice((1, 1, 1, 1, 2, 2, 3))
        parts = [self.command() for _ in range(count)]
        line = parts[0]
        for part in parts[1:]:
            line += self.random.choice(_OPERATORS) + part
        return line

    def command(self) -> str:
        name = self.random.choice(self.random.choice((BUILTINS, _USUAL, PROGRAMS, PLAIN)))
        words = [self.quoted(name) if self.random.random() < 0.1 else name]
        words += self.arguments(name)
        if self.random.random() < 0.06:
            words.append(self.random.choice((">/dev/null", "2>&1", "</dev/null", "> x", "< c", "# x")))
        return " ".join(words)

    def arguments(self, name: str) -> list[str]:
        count = self.random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
        near = self.random.random() < 0.6
        if name == "test" and near:
            return self.condition()
        if name == "printf" and near:
            made = "".join(self.random.choices(FORMATS, k=self.random.choice((1, 1, 2, 3))))
            return [self.quoted(made), *(self.argument() for _ in range(count))]
        return [self.argument() for _ in range(count)]

    def condition(self) -> list[str]:
        """Return words for test: one operand, two, or anything."""
        words = [self.quoted(self.random.choice(TESTS)) for _ in range(self.random.choice((1, 2, 3, 3, 4, 5)))]
        kind = self.random.random()
        if kind < 0.3:
            return [words[0], self.argument()]
        return [self.argument(), words[0], self.argument()] if kind < 0.5 else words

    def duo(self) -> str:
        first, second = self.random.choice(DUOS)
        operator = self.random.choice(_OPERATORS)
        line = first + operator + second
        while "{p}" in line:
            line = line.replace("{p}", self.argument(), 1)
        return line if self.random.random() < 0.8 else self.mutant(line)

    def argument(self) -> str:
        makers = (self.option, self.payload, self.variable, self.glob, self.split, self.joined, self.plain)
        return self.random.choices(makers, weights=(25, 37, 10, 7, 7, 7, 7))[0]()

    def option(self) -> str:
        return self.random.choice(OPTIONS)

    def payload(self) -> str:
        return self.quoted(self.random.choice(PAYLOADS))

    def glob(self) -> str:
        return self.random.choice(GLOBS)

    def joined(self) -> str:
        """Return an option of one letter, perhaps with its word."""
        return f"-{self.letter()}{self.random.choice(('', '', self.payload()))}"

    def plain(self) -> str:
        return self.random.choice((*PROGRAMS, "run", "test", "ci", "main", "-n", "x", "0", "1", "mark", "d", "c"))

    def letter(self) -> str:
        return self.random.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")

    def variable(self) -> str:
        name = self.random.choice((*VARIABLES, "EVIL", "_", "HOME"))
        return self.random.choice(("${}", "${{{}}}", '"${}"', '"${{{}}}"', "x${}", '"x${}"', "-v${}", "${}x")).format(
            name
        )

    def split(self) -> str:
        """Return a word whose payload stands in several parts, one of them a variable."""
        head = self.random.choice(("a[$", "a[\\$", "$", "a[", "c[1+", ""))
        tail = self.random.choice(("]", "", "]x", "+1]"))
        return self.quoted(head) + self.variable() + (self.quoted(tail) if tail else "")

    def quoted(self, text: str) -> str:
        """Return a text as one word, in any quoting that shells have; rarely with none."""
        kind = self.random.random()
        if kind < 0.5 and "'" not in text:
            return f"'{text}'"
        if kind < 0.7:
            return '"' + re.sub(r'([$`"\\])', r"\\\1", text) + '"'
        if kind < 0.8:
            return re.sub(r"([^\w\n])", r"\\\1", text) or '""'
        if kind < 0.9 and len(text) > 1:
            at = self.random.randrange(1, len(text))
            return self.quoted(text[:at]) + self.quoted(text[at:])
        return text

    def mutant(self, line: str) -> str:
        """Return a line with one or a few things changed."""
        pieces = _PIECES.findall(line) or [line]
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            self.change(pieces)
        return "".join(pieces)

    def change(self, pieces: list[str]) -> None:
        at = self.random.randrange(len(pieces)) if pieces else 0
        kind = self.random.randrange(7)
        if kind == 0:
            pieces.insert(at, self.random.choice(SYNTAX))
        elif kind == 1:
            del pieces[at : at + 1]
        elif kind == 2:
            pieces[at : at + 1] = [self.payload()]
        elif kind == 3:
            pieces[at : at + 1] = [self.random.choice((*_USUAL, *BUILTINS))]
        elif kind == 4:
            pieces[at:at] = [" ", self.argument(), " "]
        elif kind == 5:
            pieces.append(self.random.choice(_OPERATORS) + self.command())
        else:
            pieces[at : at + 1] = [self.quoted("".join(pieces[at : at + 1]).strip("'\""))]

    def rubble(self) -> str:
        start = self.random.choice(("", "ls ", "docker ", "test ", "printf "))
        sources = (SYNTAX, SYNTAX, PAYLOADS, OPTIONS, PROGRAMS, GLOBS)
        count = self.random.randint(1, 7)
        return start + "".join(self.random.choice(self.random.choice(sources)) for _ in range(count))
