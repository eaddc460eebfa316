r"""A shell line as the simple commands in it, if there is no doubt about what they are.

What stands here decides whether a line may leave the sandbox, so this is no shell parser but a reader of a strict
subset: whatever bash, dash and zsh do not certainly read alike is refused, and a refused line stays inside.

Read: words; ``'..'``, ``".."`` and ``\x`` quoting; ``$NAME``, ``${NAME}`` and ``$(..)``, whose commands join the list;
``&&  ||  ;  |  &`` and newline; comments; ``> file``, ``>> file``, ``< file``, ``2>&1``; a backslash at the end of a
line, after a blank. Refused, among others: subshells, groups, functions, compound commands, here-documents, process
substitution, arithmetic, arrays, braces, backquotes, ``!`` outside single quotes, ``$'..'``, redirections of other
kinds, unquoted characters beyond ASCII (some shells take a byte of them for a blank), control characters.

The line is taken to run non-interactively (``bash -c``); aliases and options from start-up files are the user's own.
Source of truth: POSIX.1-2024 Shell Command Language, and the shells themselves: the differential test runs what is
accepted here in each installed shell. Measured against tree-sitter-bash 0.25: that costs 19 ms to import, accepts
``a;;b`` (an error in bash), and splits words at a carriage return (bash does not).
"""

from __future__ import annotations

from stockade.annotation import NoReturn
from stockade.errors import InvalidTextError
from stockade.value import Value

LONGEST_LINE = 65_536
#: A line of more words is nobody's plain command, and to read it would keep the host waiting.
MOST_WORDS = 2048
DEEPEST_SUBSTITUTION = 8

_BLANK = " \t"
_WORD_END = " \t\n;&|<>()"
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_DIGITS = frozenset("0123456789")
_NAME = _LETTERS | _DIGITS
_PLAIN = _NAME | frozenset("-./,:@%+")
# Each of these makes a pattern, or a path from something shorter, in at least one shell.
_OPEN = frozenset("*?[]~^#")
_OPERATORS = ("&&", "||", ";", "|", "&", "\n")
_WANTS_MORE = frozenset(("&&", "||", "|"))
# Reserved in at least one shell, or followed by what zsh reads in a way of its own (`- a` runs a).
_RESERVED = frozenset(
    word
    for line in (
        "if then else elif fi do done case esac while until for in select function time coproc ! { } [[ ]]",
        "foreach end repeat nocorrect declare export float integer local readonly typeset -",
    )
    for word in line.split()
)


class Word(Value):
    """One word: its decoded text; or, if only the shell will know what it becomes, its spelling."""

    text: str
    literal: bool = True


class SimpleCommand(Value):
    """A command with its arguments, the assignments before it, and the files that it redirects from or to.

    Redirections that touch no file (``2>&1``) and those of ``/dev/null`` are left out. ``words`` is empty if there
    are only assignments.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirects: tuple[Word, ...] = ()

    def __str__(self) -> str:
        """Return the words as people would write them, with anything unprintable escaped."""
        return " ".join(_shown(word) for word in self.assignments + self.words)


def parse(line: str) -> tuple[SimpleCommand, ...]:
    """Return every simple command of a line, those in substitutions before the command that uses them.

    Raise InvalidTextError if there is anything in the line that is not understood with certainty.
    """
    known = _LATEST.get(line)
    if known is None:
        known = _parsed(line)
        # One call is looked at by several rules in turn: the latest line is kept, and no other.
        _LATEST.clear()
        _LATEST[line] = known
    if isinstance(known, InvalidTextError):
        raise InvalidTextError(known.message, known.hint)
    return known


_LATEST: dict[str, tuple[SimpleCommand, ...] | InvalidTextError] = {}


def _parsed(line: str) -> tuple[SimpleCommand, ...] | InvalidTextError:
    try:
        _check(line)
        return tuple(_Reader(line).commands(depth=0))
    except InvalidTextError as error:
        return error


def _check(line: str) -> None:
    if len(line) > LONGEST_LINE:
        _refuse(f"a line longer than {LONGEST_LINE} characters")
    if line.replace("\n", "").replace("\t", "").isprintable():
        return
    for at, char in enumerate(line):
        if _is_control(char):
            _refuse(f"the character {char!a}", at)


def _is_control(char: str) -> bool:
    return (char < " " and char not in "\t\n") or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff"


def _shown(word: Word) -> str:
    if not word.text or (word.literal and not _PLAIN.issuperset(word.text.replace("=", ""))):
        return repr(word.text)
    return word.text if word.text.isprintable() else repr(word.text)


def _refuse(what: str, at: int | None = None) -> NoReturn:
    where = "" if at is None else f", at character {at + 1}"
    message = f"the shell line is not certain to be read right: {what}{where}"
    raise InvalidTextError(message, "use plain commands joined by && || ; | and quote all that is special")


class _Draft:
    """A word that is being read."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.literal = True


class _Reader:
    """Reads from left to right; ``found`` collects the commands of substitutions until their command is complete."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.depth = 0
        self.words = 0
        self.found: list[SimpleCommand] = []

    def peek(self, ahead: int = 0) -> str:
        return self.line[self.at + ahead : self.at + ahead + 1]

    def refuse(self, what: str) -> NoReturn:
        _refuse(what, min(self.at, len(self.line)))

    def commands(self, depth: int) -> list[SimpleCommand]:
        """Read a list of commands up to the end, or up to the parenthesis that closes a substitution."""
        outer, self.depth, operator = self.depth, depth, ""
        commands: list[SimpleCommand] = []
        while not self.list_ends():
            command = self.command()
            commands += [*self.found, command]
            self.found = []
            operator = self.operator()
        if operator in _WANTS_MORE:
            self.refuse("nothing follows the last operator")
        self.depth = outer
        return commands

    def list_ends(self) -> bool:
        self.skip_blanks()
        while self.peek() == "\n":
            self.at += 1
            self.skip_blanks()
        if not self.peek() and self.depth:
            self.refuse("a substitution is not closed")
        return not self.peek() or (self.peek() == ")" and self.depth > 0)

    def operator(self) -> str:
        """Read what stands between two commands; an empty text at the end of the list."""
        if not self.peek() or (self.peek() == ")" and self.depth):
            return ""
        for operator in _OPERATORS:
            if self.line.startswith(operator, self.at):
                self.at += len(operator)
                return operator
        return self.refuse("a parenthesis")

    def skip_blanks(self) -> None:
        while char := self.peek():
            if char in _BLANK:
                self.at += 1
            elif char == "\\" and self.peek(1) == "\n" and self.after_blank():
                self.at += 2
                if self.peek() == "#":
                    self.refuse("a # after a continued line")
            elif char == "#":
                self.skip_comment()
            else:
                return

    def after_blank(self) -> bool:
        return self.at == 0 or self.line[self.at - 1] in " \t\n"

    def skip_comment(self) -> None:
        if self.depth or not self.after_blank():
            self.refuse("a # here")
        end = self.line.find("\n", self.at)
        self.at = len(self.line) if end < 0 else end
        if self.line[self.at - 1] == "\\":
            self.refuse("a comment that ends with a backslash")

    def command(self) -> SimpleCommand:
        words: list[Word] = []
        assignments: list[Word] = []
        redirects: list[Word] = []
        while (char := self.peek()) and char not in "\n;&|)":
            if char in "<>" or (char in _DIGITS and self.peek(1) in ("<", ">")):
                if not words:
                    self.refuse("a redirection before the command")
                redirects += self.redirect()
            elif words:
                words.append(self.word())
            else:
                word, is_assignment = self.command_word()
                (assignments if is_assignment else words).append(word)
            self.skip_blanks()
        if not words and not assignments:
            self.refuse("a command is missing")
        return SimpleCommand(tuple(words), tuple(assignments), tuple(redirects))

    def command_word(self) -> tuple[Word, bool]:
        """Read an assignment, or the word that names the command; say whether it is an assignment."""
        start = self.at
        word = self.word()
        spelling = self.line[start : self.at]
        if "[" in spelling:
            self.refuse("a [ in the name of a command")
        if word.literal and word.text in _RESERVED:
            self.refuse(f"the reserved word {word.text}")
        name, equals, _ = spelling.partition("=")
        if equals and (name[:1] not in _LETTERS or not _NAME.issuperset(name)):
            self.refuse("a = in the name of a command")
        return word, bool(equals)

    def redirect(self) -> list[Word]:
        """Read a redirection; return its file, unless it is none or ``/dev/null``."""
        if self.peek() in _DIGITS:
            self.at += 1
        if self.line.startswith(">&", self.at):
            return self.duplicate()
        self.at += 2 if self.line.startswith(">>", self.at) else 1
        while self.peek() and self.peek() in _BLANK:
            self.at += 1
        if not self.peek() or self.peek() in "#" + _WORD_END:
            self.refuse("a redirection of this kind, or one without a file")
        word = self.word()
        return [] if word == Word("/dev/null") else [word]

    def duplicate(self) -> list[Word]:
        self.at += 2
        if self.peek() not in _DIGITS or (self.peek(1) and self.peek(1) not in " \t\n;&|)"):
            self.refuse("a redirection of this kind")
        self.at += 1
        return []

    def word(self) -> Word:
        start, draft = self.at, _Draft()
        self.words += 1
        if self.words > MOST_WORDS:
            self.refuse(f"more than {MOST_WORDS} words")
        while (char := self.peek()) and char not in _WORD_END:
            self.piece(char, draft, at_start=self.at == start)
        if char and char in "<>(":
            self.refuse(f"a {char} that touches a word")
        if self.at == start:
            self.refuse(f"a {char} here")
        return Word("".join(draft.text)) if draft.literal else Word(self.line[start : self.at], literal=False)

    def piece(self, char: str, draft: _Draft, *, at_start: bool) -> None:
        if char in _PLAIN:
            self.take_plain(draft)
        elif char in _OPEN or char == "=":
            self.take_open(char, draft, at_start=at_start)
        elif char == "'":
            self.single_quoted(draft)
        elif char == '"':
            self.double_quoted(draft)
        elif char == "\\":
            self.escaped(draft)
        elif char == "$":
            self.expansion(draft)
        else:
            self.refuse(f"an unquoted {char!a}")

    def take(self, draft: _Draft) -> None:
        draft.text.append(self.line[self.at])
        self.at += 1

    def take_plain(self, draft: _Draft) -> None:
        line, end = self.line, self.at + 1
        while end < len(line) and line[end] in _PLAIN:
            end += 1
        draft.text.append(line[self.at : end])
        self.at = end

    def take_open(self, char: str, draft: _Draft, *, at_start: bool) -> None:
        # Old versions of bash look for the end of a substitution without reading its words.
        if char == "#" and self.depth:
            self.refuse("a # in a substitution")
        # zsh puts the path of a command in place of =command.
        if char != "=" or at_start or self.line[self.at - 1] in "=:":
            draft.literal = False
        self.take(draft)

    def single_quoted(self, draft: _Draft) -> None:
        end = self.line.find("'", self.at + 1)
        if end < 0:
            self.refuse("a single quote is not closed")
        draft.text.append(self.line[self.at + 1 : end])
        self.at = end + 1
        # With an option of zsh, '' stands for a quote inside quotes.
        if self.peek() == "'":
            self.refuse("two single quotes in a row")

    def escaped(self, draft: _Draft) -> None:
        if not " " <= self.peek(1) <= "~" or self.peek(1) == "!":
            self.refuse("a backslash here")
        self.at += 1
        self.take(draft)

    def double_quoted(self, draft: _Draft) -> None:
        self.at += 1
        while (char := self.peek()) != '"':
            if not char:
                self.refuse("a double quote is not closed")
            if char in "`!":
                self.refuse(f"a {char} in double quotes")
            if char == "$":
                self.expansion(draft)
            elif char == "\\":
                self.escaped_in_quotes(draft)
            else:
                self.take(draft)
        self.at += 1

    def escaped_in_quotes(self, draft: _Draft) -> None:
        # In some East Asian encodings a backslash can be the second half of a character.
        if self.peek(1) in ("", "!") or not self.line[self.at - 1].isascii():
            self.refuse("a backslash here")
        if self.peek(1) == "\n":
            if not self.after_blank():
                self.refuse("a line continued inside a word")
            self.at += 2
            return
        if self.peek(1) in '$`"\\':
            self.at += 1
        else:
            self.take(draft)
        self.take(draft)

    def expansion(self, draft: _Draft) -> None:
        draft.literal = False
        if self.peek(1) == "(":
            self.substitution()
            return
        braced = self.peek(1) == "{"
        self.at += 2 if braced else 1
        if self.peek() not in _LETTERS:
            self.refuse("a $ that begins no plain variable")
        while self.peek() in _NAME:
            self.at += 1
        if braced:
            if self.peek() != "}":
                self.refuse("an expansion other than ${NAME}")
            self.at += 1
        # zsh reads a subscript, or a modifier, without braces too.
        if self.peek() == "[" or (self.peek() == ":" and not braced and self.peek(1) not in ("", "/", '"', "$")):
            self.refuse("a [ or : after a variable")

    def substitution(self) -> None:
        if self.depth >= DEEPEST_SUBSTITUTION:
            self.refuse("substitutions nested too deep")
        self.at += 2
        if self.peek() == "(":
            self.refuse("arithmetic")
        saved, self.found = self.found, []
        commands = self.commands(self.depth + 1)
        if not commands:
            self.refuse("an empty substitution")
        self.at += 1
        self.found = saved + commands
