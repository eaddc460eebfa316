"""The words of a shell line, read loosely: quotes are taken off, every substitution is read, the rest has a shape.

Used by ``loose_line``, which knows where words stand. What bash, zsh and dash do not read alike is given up.
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final, NoReturn
from stockade.tool.loose_word import ANY, ONE, LooseWord

if TYPE_CHECKING:
    from stockade.tool.effort import Effort


_DEEPEST: Final = 16
_ENDS: Final = " \t\n;&|<>()"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_\-./,:@%+!=]+")
_WHOLE: Final = re.compile(r"[A-Za-z0-9_\-./,:@%+!][A-Za-z0-9_\-./,:@%+!=]*(?=[ \t\n;&|]|\Z)")
_QUOTED: Final = re.compile(r'[^"\\$`]+')
_HERE: Final = re.compile(r"[^\\$`]+")
_IN_BRACES: Final = re.compile(r"[^\\$`'\"{}()\n<>]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]", re.ASCII)
_BACKQUOTED: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_SIMPLE_ANSI: Final = re.compile(r"\$'((?:[^'\\]|\\[nt\\])*)'")
_ANSI: Final = re.compile(r"\$'(?:[^'\\]|\\[^'c])*'", re.DOTALL)
_IN_ARITHMETIC: Final = re.compile(r"[^()'\"`\\$#]+")
# What stands between brackets, within one part of a path; the signs are noncharacters, as those of a shape.
_OPEN: Final = "\ufdd2"
_CLOSE: Final = "\ufdd3"
_BRACKETS: Final = re.compile(f"{_OPEN}[^/]*{_CLOSE}|{_OPEN}[^/]*|{_CLOSE}")
_LITERAL_CODE: Final = re.compile(r"\$\(|`|\$\{[\s|]")
# bash runs a value as code by ${x@P}.
_RUNS: Final = re.compile(r"@(\\\n)*[P\\]")
_LETTERS: Final = {"n": "\n", "t": "\t", "\\": "\\"}


class UnclearError(Exception):
    """It is not clear how a line is read."""


class _Draft:
    """A word that is being read."""

    def __init__(self) -> None:
        self.shape: list[str] = []
        self.is_split = False
        self.is_glob = False
        self.bare = True
        self.braces = 0
        self.broken = False
        self.continued = False

    def open(self, *, is_split: bool = False) -> None:
        self.shape.append(ANY)
        self.is_split = self.is_split or is_split

    def glob(self, shape: str) -> None:
        self.shape.append(shape)
        self.is_glob = True


class WordReader:
    """Reads words from left to right; its caller reads the commands in substitutions."""

    def __init__(self, line: str, effort: Effort, depth: int) -> None:
        self.line = line
        self.at = 0
        self.effort = effort
        self.depth = depth

    def substitution(self) -> None:
        """Read the commands up to the closing parenthesis."""
        raise NotImplementedError

    def within(self, text: str) -> None:
        """Read the commands of a text that was taken out of the line."""
        raise NotImplementedError

    def unclear(self, what: str) -> NoReturn:
        """Give up."""
        raise UnclearError(what)

    def peek(self, ahead: int = 0) -> str:
        """Return the character that comes, or one behind it; nothing at the end."""
        return self.line[self.at + ahead : self.at + ahead + 1]

    def check_depth(self) -> None:
        """Give up what is nested deeper than anybody writes."""
        if self.depth > _DEEPEST:
            self.unclear("substitutions nested too deep")

    def word(self, *, in_test: bool = False) -> LooseWord:
        """Read a word; in ``[[`` the signs of a pattern are words of their own."""
        self.effort.spend()
        if found := _WHOLE.match(self.line, self.at):
            # Most words are of this kind.
            self.at = found.end()
            return LooseWord(found[0], found[0], False, False, True)
        start, draft = self.at, _Draft()
        if self.peek() == "#" and not in_test:
            self.unclear("a # here")
        while char := self.peek():
            if found := _PLAIN.match(self.line, self.at):
                self.plain(found[0], draft, at_start=self.at == start)
            elif char in "<>" and self.peek(1) == "(":
                self.at += 2
                self.substitution()
                draft.open()
                draft.bare = False
            elif char in _ENDS:
                break
            else:
                self.piece(char, draft)
        spelling = self.line[start : self.at]
        if not spelling:
            self.unclear("a word is missing")
        if draft.bare and spelling in ("[", "]", "{", "}", "[[", "]]"):
            return LooseWord(spelling, spelling, bare=True)
        # Joined lines may make a keyword.
        if draft.braces or draft.broken or draft.continued:
            self.unclear("a brace that has no other, or a line continued inside a word")
        return LooseWord(spelling, self.closed("".join(draft.shape)), draft.is_split, draft.is_glob, draft.bare)

    def closed(self, shape: str) -> str:
        """Return a shape in which anything may stand for what is between brackets."""
        if _OPEN not in shape and _CLOSE not in shape:
            return shape
        # A subscript is arithmetic, which runs what is in the subscripts of its values.
        if any(_LITERAL_CODE.search(found[0]) for found in _BRACKETS.finditer(shape)):
            self.unclear("code between brackets")
        return _BRACKETS.sub(ANY, shape)

    def plain(self, text: str, draft: _Draft, *, at_start: bool) -> None:
        """Read characters that mean themselves."""
        self.at += len(text)
        if at_start and text.startswith("="):
            # zsh puts the path of a command in place of =command.
            draft.open()
            text = text[1:]
        draft.shape.append(text)

    def piece(self, char: str, draft: _Draft) -> None:
        """Read what means more than itself."""
        self.effort.spend()
        if char in "*?[]":
            self.at += 1
            draft.glob({"?": ONE, "*": ANY, "[": _OPEN, "]": _CLOSE}[char])
        elif char in "~^#":
            self.at += 1
            draft.open()
        elif char in "{}":
            self.brace(char, draft)
        elif char == "$":
            self.expansion(draft)
        else:
            draft.bare = False
            self.quoted_piece(char, draft)

    def quoted_piece(self, char: str, draft: _Draft) -> None:
        """Read something quoted, or something in backquotes."""
        if char == "'":
            self.single_quoted(draft)
        elif char == '"':
            self.double_quoted(draft)
        elif char == "\\":
            self.escaped(draft)
        elif char == "`":
            self.backquoted(draft)
        else:
            self.unclear(f"an unquoted {char!a}")

    def brace(self, char: str, draft: _Draft) -> None:
        """Read a brace that may make many words."""
        if self.line.startswith("{}", self.at):
            draft.shape.append("{}")
            self.at += 2
            return
        self.at += 1
        draft.open(is_split=True)
        draft.broken = draft.broken or (char == "}" and not draft.braces)
        draft.braces += 1 if char == "{" else -1

    def single_quoted(self, draft: _Draft) -> None:
        """Read single quotes."""
        end = self.line.find("'", self.at + 1)
        # With an option of zsh, '' stands for a quote inside quotes.
        if end < 0 or (self.line.startswith("''", end) and end > self.at + 1):
            self.unclear("a single quote")
        draft.shape.append(self.line[self.at + 1 : end])
        self.at = end + 1

    def escaped(self, draft: _Draft) -> None:
        """Read a backslash outside quotes."""
        char = self.peek(1)
        if not char.isascii() or not char or (char < " " and char != "\n"):
            self.unclear("a backslash here")
        draft.shape.append("" if char == "\n" else char)
        draft.continued = draft.continued or char == "\n"
        self.at += 2

    def double_quoted(self, draft: _Draft) -> None:
        """Read double quotes."""
        self.at += 1
        while (char := self.peek()) != '"':
            if not char:
                self.unclear("a double quote is not closed")
            self.inside_quotes(_QUOTED, draft)
        self.at += 1

    def expanded_text(self) -> None:
        """Read a text in which the shell expands, but splits nothing: that of a here-document."""
        self.check_depth()
        draft = _Draft()
        while self.peek():
            self.inside_quotes(_HERE, draft)

    def inside_quotes(self, plain: re.Pattern[str], draft: _Draft) -> None:
        """Read what comes inside double quotes, or in a here-document."""
        if found := plain.match(self.line, self.at):
            draft.shape.append(found[0])
            self.at = found.end()
            return
        self.effort.spend()
        char = self.peek()
        if char == "$":
            self.expansion(draft, in_quotes=True)
        elif char == "`":
            self.backquoted(draft, in_quotes=True)
        else:
            self.escaped_in_quotes(draft)

    def escaped_in_quotes(self, draft: _Draft) -> None:
        """Read a backslash inside double quotes."""
        # In some East Asian encodings a backslash can be the second half of a character.
        if not self.line[self.at - 1 : self.at].isascii():
            self.unclear("a backslash here")
        char = self.peek(1)
        draft.shape.append("" if char == "\n" else char if char and char in '$`"\\' else "\\" + char)
        self.at += 2

    def backquoted(self, draft: _Draft, *, in_quotes: bool = False) -> None:
        """Read an old substitution."""
        self.effort.spend()
        found = _BACKQUOTED.match(self.line, self.at)
        if not found or (in_quotes and '"' in found[1]):
            self.unclear("backquotes")
        self.at = found.end()
        self.within(re.sub(r"\\([$`\\])", r"\1", found[1]))
        draft.open(is_split=not in_quotes)
        draft.bare = False

    def expansion(self, draft: _Draft, *, in_quotes: bool = False) -> None:
        """Read what begins with a dollar sign."""
        self.effort.spend()
        self.depth += 1
        self.check_depth()
        draft.bare = False
        char = self.peek(1)
        if char == "(":
            self.dollar_parenthesis()
            draft.open(is_split=not in_quotes)
        elif char == "{":
            draft.open(is_split=self.braced(in_quotes=in_quotes) or not in_quotes)
        elif char in ("'", '"') and not in_quotes:
            self.dollar_quoted(char, draft)
        elif char == "[":
            self.unclear("$[")
        else:
            self.variable(draft, in_quotes=in_quotes)
        self.depth -= 1

    def variable(self, draft: _Draft, *, in_quotes: bool) -> None:
        """Read a variable without braces."""
        self.at += 1
        if self.peek() == "\\" and self.peek(1) == "\n":
            self.unclear("a $ before a continued line")
        found = _NAME.match(self.line, self.at)
        self.at = found.end() if found else self.at
        # In zsh $=x is split even in quotes, and "$x[@]" are many words.
        many = found and (found[0] == "@" or self.peek() == "[")
        if not found and self.peek() and self.peek() in "=~^+:":
            many = True
        draft.open(is_split=bool(many) or not in_quotes)

    def dollar_parenthesis(self) -> None:
        """Read a substitution, or arithmetic."""
        if self.line.startswith("$((", self.at):
            self.arithmetic_expansion()
            return
        self.at += 2
        self.substitution()

    def arithmetic_expansion(self) -> None:
        """Read up to two parentheses that close it together: otherwise it may be a subshell in a substitution."""
        self.at += 3
        level, ignored = 0, _Draft()
        while level or not self.line.startswith("))", self.at):
            char = self.peek()
            if found := _IN_ARITHMETIC.match(self.line, self.at):
                self.at = found.end()
            elif char == "$":
                self.expansion(ignored, in_quotes=True)
            elif char == "(" or (char == ")" and level):
                level += 1 if char == "(" else -1
                self.at += 1
            else:
                self.unclear("arithmetic")
        self.at += 2

    def dollar_quoted(self, quote: str, draft: _Draft) -> None:
        """Read quotes behind a dollar sign."""
        if quote == '"':
            self.at += 1
            draft.open()
            self.double_quoted(draft)
        elif found := _SIMPLE_ANSI.match(self.line, self.at):
            draft.shape.append(re.sub(r"\\(.)", lambda match: _LETTERS[match[1]], found[1]))
            self.at = found.end()
        elif found := _ANSI.match(self.line, self.at):
            draft.open()
            self.at = found.end()
        else:
            self.unclear("a $'")

    def braced(self, *, in_quotes: bool) -> bool:
        """Read ``${..}``; say whether it may be many words even in quotes."""
        self.at += 2
        start = self.at
        ignored = _Draft()
        while (char := self.peek()) != "}":
            if found := _IN_BRACES.match(self.line, self.at):
                self.at = found.end()
            elif char == "$":
                self.expansion(ignored, in_quotes=in_quotes)
            elif char and char in "\\'\"`" and not in_quotes:
                self.quoted_piece(char, ignored)
            else:
                self.unclear("an expansion in braces")
        content = self.line[start : self.at]
        self.at += 1
        # zsh has flags, and splits ${=x} even in quotes; bash 5.3 runs the commands of ${ x; } and ${| x; }. What is
        # assigned there may be run later.
        if not content or content[0] in " \t|" or _RUNS.search(content) or _LITERAL_CODE.search("".join(ignored.shape)):
            self.unclear("an expansion in braces")
        return "@" in content or content[0] in "=~^+!" or ignored.is_split
