"""A shell line as the commands in it, read loosely: which word names a command, though not what each word becomes.

``policy.shell_line`` reads what is certain, and is asked what may leave the walls. Here more is read (loops,
conditions, groups, functions, redirections anywhere, here-documents, ``[[``), for rules that deny: it is enough to
know where the name of each command stands, so that an unknown *argument* is no reason to refuse a line.

Rules:

- Whatever bash, zsh and dash do not read alike is given up (``UnclearError``); the line is then searched word by
  word (``rough_line``). Given up are, among others, ``case``, ``coproc``, forms that only zsh knows,
  parentheses that touch a word, ``eval``-like expansions, unquoted characters beyond ASCII.
- Every substitution is read, wherever it stands: in quotes, in here-documents, in subscripts.
- A line that a shell would call wrong may be read as anything: the shell runs nothing of it.

One difference is left: a shell that does not know ``[[`` (dash, where it is the only one) runs what stands behind
``&&`` in it, and an unknown word there is not taken for a command. Text for *another* shell is read with ``strict``,
which gives up there.
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final, NoReturn
from stockade.tool.hidden_code import TABLES
from stockade.tool.loose_word import LooseWord
from stockade.tool.word_reader import UnclearError, WordReader
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.tool.effort import Effort

_STAY: Final = frozenset(("if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"))
_CLOSE: Final = frozenset(("fi", "done", "}"))
_LOOPS: Final = frozenset(("for", "select"))
# Read differently by the shells, or followed by what is; `-` and nocorrect are prefixes in zsh.
_UNCLEAR: Final = frozenset(
    word
    for line in ("case esac coproc repeat nocorrect - foreach end always", "]] in float integer")
    for word in line.split()
)
# What is assigned to these is run by a name.
_CODE: Final = TABLES | {"BASH_ALIASES", "BASH_CMDS"}
_ASSIGNING: Final = frozenset(("export", "readonly", "local", "declare", "typeset"))

_BLANKS: Final = re.compile(r"[ \t]+")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*?\])?\+?=", re.DOTALL)
_SUBSCRIPT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[[^\]]*$")
_POSITION: Final = re.compile(r"[0-9*@#?!$-]+\+?=")
_REDIRECT: Final = re.compile(r"[0-9]*(<<<|<<-|<<|<>|<&|>>|>\||>&|<(?!\()|>(?!\())|(&>>|&>)")
_NUMBERS: Final = re.compile(r"<[0-9]*-[0-9]*>")
_DELIMITER: Final = re.compile(r"""(?:'([\w.-]+)'|"([\w.-]+)"|\\([\w.-]+)|([\w.-]+))(?=[\s;&|<>)]|$)""", re.ASCII)
_PARENTHESES: Final = re.compile(r"\([ \t]*\)")
_FUNCTION: Final = re.compile(r"[ \t]+[A-Za-z_][\w-]*[ \t]*(\([ \t]*\))?\s*(?=\{[ \t\n])", re.ASCII)
# dash would run what stands in ((..)), so nothing may be in it that may become something else.
_ARITHMETIC: Final = re.compile(r"\(\(([A-Za-z0-9_\s+\-<>=!,;%]*)\)\)")
_IN: Final = re.compile(r"in(?=[ \t;\n])")
_END: Final = "\n;&|)"
_TEST_SIGNS: Final = re.compile(r"&&|\|\||[<>()|\n]")


class LooseCommand(Value):
    """The words of a command, and the assignments before it.

    Or, with no words, values that are no part of a command, and a text that is read as it is.
    """

    words: tuple[LooseWord, ...]
    assignments: tuple[LooseWord, ...] = ()
    values: tuple[LooseWord, ...] = ()
    text: str = ""


def read_loosely(line: str, effort: Effort, *, strict: bool = False) -> tuple[LooseCommand, ...]:
    """Return every command of a line; raise UnclearError if it is not clear which these are."""
    reader = _Reader(line, effort, strict=strict)
    reader.commands(closer="")
    return tuple(reader.found)


class _Reader(WordReader):
    """Reads commands from left to right into ``found``; ``pending`` are here-documents whose text is still to come."""

    def __init__(self, line: str, effort: Effort, *, strict: bool, depth: int = 0) -> None:
        super().__init__(line, effort, depth)
        self.strict = strict
        self.found: list[LooseCommand] = []
        self.pending: list[tuple[str, bool, bool]] = []
        self.waiting = False

    def within(self, text: str) -> None:
        """Read the commands of a text that was taken out of the line."""
        reader = _Reader(text, self.effort, strict=self.strict, depth=self.depth + 1)
        reader.check_depth()
        reader.commands(closer="")
        self.found += reader.found

    def substitution(self) -> None:
        """Read the commands up to the closing parenthesis."""
        pending, waiting = self.pending, self.waiting
        self.pending, self.waiting = [], waiting or bool(pending)
        self.depth += 1
        self.check_depth()
        self.commands(closer=")")
        self.depth -= 1
        self.pending, self.waiting = pending, waiting

    def commands(self, closer: str) -> None:
        while True:
            self.gap(lines=True)
            char = self.peek()
            if not char or char == ")":
                break
            self.effort.spend()
            if not self.command():
                self.separator()
        if char != closer or self.pending:
            self.unclear("a list that does not end as it began")
        self.at += len(closer)

    def gap(self, *, lines: bool = False) -> None:
        """Skip blanks, continued lines, comments, and if asked ends of lines."""
        continued = False
        while char := self.peek():
            if found := _BLANKS.match(self.line, self.at):
                self.at = found.end()
            elif char == "\\" and self.peek(1) == "\n":
                self.at += 2
                continued = True
            elif char == "#":
                self.comment(continued=continued)
            elif char == "\n" and lines:
                self.new_line()
                continued = False
            else:
                return

    def comment(self, *, continued: bool) -> None:
        end = self.line.find("\n", self.at)
        end = len(self.line) if end < 0 else end
        # Old versions of bash look for the end of a substitution without knowing comments.
        if (
            continued
            or self.line[end - 1] == "\\"
            or (self.depth and re.search(r"[()'\"`\\]", self.line[self.at : end]))
        ):
            self.unclear("a comment here")
        self.at = end

    def separator(self) -> None:
        """Read what stands between two commands."""
        char = self.peek()
        if not char or char == ")":
            return
        if char == "\n":
            self.new_line()
            return
        two = self.line[self.at : self.at + 2]
        if char not in ";&|" or two in (";;", ";&", ";|", "&!", "&|"):
            self.unclear(f"{two!a} after a command")
        self.at += 2 if two in ("&&", "||", "|&") else 1

    def command(self) -> bool:
        """Read one command; return whether another may follow at once, as after the head of a loop."""
        words: list[LooseWord] = []
        assignments: list[LooseWord] = []
        fresh = True
        while True:
            self.gap()
            if self.redirection(words):
                fresh = False
                continue
            char = self.peek()
            if not char or char in _END:
                break
            if char == "(":
                return self.parenthesis(words, fresh=fresh)
            start, word = self.at, self.word()
            if not words and word.bare and (step := self.keyword(word, fresh=fresh)):
                if step == "stay":
                    continue
                return step == "head"
            if self.assignment(word, start, words):
                assignments.append(word)
                fresh = False
            else:
                words.append(word)
        if words or assignments:
            self.found.append(LooseCommand(tuple(words), tuple(assignments)))
        return False

    def keyword(self, word: LooseWord, *, fresh: bool) -> str:
        """Read on after a reserved word; say what comes: ``stay``, ``head`` of a loop, ``end``, or nothing of that."""
        text = word.shape
        if text in _UNCLEAR:
            self.unclear(f"the word {text}")
        if text not in _STAY and text not in _CLOSE and text not in _LOOPS and text not in ("[[", "function"):
            return ""
        if not fresh:
            self.unclear(f"{text} after a redirection or an assignment")
        if text in _STAY:
            if text == "time":
                self.time_options()
            return "stay"
        if text in _LOOPS:
            self.loop_head()
            return "head"
        if text == "function":
            self.function_head()
            return "head"
        if text == "[[":
            self.test()
        self.after_compound()
        return "end"

    def function_head(self) -> None:
        """Read a name and what may follow it, up to a brace. dash sees words there, and then the same commands."""
        found = _FUNCTION.match(self.line, self.at)
        if not found or self.strict:
            self.unclear("a function of this form")
        self.at = found.end()

    def time_options(self) -> None:
        while True:
            self.gap()
            for option in ("-p", "--"):
                if self.line.startswith(option, self.at) and self.peek(2) in ("", " ", "\t", "\n"):
                    self.at += 2
                    break
            else:
                break
        if self.peek() == "-":
            self.unclear("an option of time")

    def parenthesis(self, words: list[LooseWord], *, fresh: bool) -> bool:
        """Read a subshell, an arithmetic command, or the head of a function."""
        empty = _PARENTHESES.match(self.line, self.at)
        if words:
            if not empty or len(words) > 1 or not fresh or not words[0].literal:
                self.unclear("a parenthesis after a word")
            self.at = empty.end()
            self.gap(lines=True)
            return True
        if empty or not fresh:
            self.unclear("a parenthesis here")
        if self.line.startswith("((", self.at):
            self.arithmetic()
        else:
            self.at += 1
            self.substitution()
        self.after_compound()
        return False

    def arithmetic(self) -> None:
        found = _ARITHMETIC.match(self.line, self.at)
        if not found or self.strict:
            self.unclear("arithmetic")
        for piece in re.split(r"[;<>]", found[1]):
            if texts := piece.split():
                self.found.append(LooseCommand(tuple(LooseWord(text, text) for text in texts)))
        self.at = found.end()

    def after_compound(self) -> None:
        while True:
            self.gap()
            if not self.redirection([]):
                break
        if self.peek() and self.peek() not in _END:
            self.unclear("a word after a compound command")

    def loop_head(self) -> None:
        self.gap()
        if self.line.startswith("((", self.at):
            self.arithmetic()
            self.gap()
            self.at += self.peek() == ";"
            return
        name = self.word()
        if not name.bare or not name.shape.isidentifier():
            self.unclear("a loop without a plain variable")
        self.found.append(LooseCommand((), values=(name,)))
        self.gap(lines=True)
        if found := _IN.match(self.line, self.at):
            self.at = found.end()
            self.loop_words()
        elif self.peek() == ";":
            self.at += 1
        elif not self.line.startswith("do", self.at):
            self.unclear("the head of a loop")

    def loop_words(self) -> None:
        while True:
            self.gap()
            if (char := self.peek()) in (";", "\n"):
                self.separator()
                return
            if not char or char in "&|()<>":
                self.unclear("the words of a loop")
            self.value(self.word())

    def test(self) -> None:
        """Read ``[[ .. ]]``. A shell that does not know it sees commands between the operators."""
        if self.strict:
            self.unclear("[[")
        words: list[LooseWord] = []
        while True:
            self.gap()
            if found := _TEST_SIGNS.match(self.line, self.at):
                if self.line.startswith(("<(", ">("), self.at):
                    words.append(self.word())
                    continue
                self.at = found.end()
                self.test_part(words)
                words = []
                continue
            if not self.peek() or self.peek() in ";&":
                self.unclear("[[ is not closed")
            word = self.word(in_test=True)
            words.append(word)
            if word.bare and word.shape == "]]":
                break
        self.test_part(words)

    def value(self, word: LooseWord) -> LooseWord:
        """Keep a word that is no part of a command: what it holds may be run later."""
        if not word.bare or not word.literal:
            self.found.append(LooseCommand((), values=(word,)))
        return word

    def test_part(self, words: list[LooseWord]) -> None:
        for word in words:
            self.value(word)
        if words and words[0].literal:
            self.found.append(LooseCommand(tuple(words)))

    def assignment(self, word: LooseWord, start: int, words: list[LooseWord]) -> bool:
        """Say whether a word is an assignment before a command; read the words of an array."""
        spelling = self.line[start : self.at]
        found = _ASSIGNMENT.match(spelling)
        if not found:
            if not words and _SUBSCRIPT.match(spelling):
                self.unclear("a subscript that is not closed")
            if not words and _POSITION.match(spelling):
                self.unclear("an assignment to a position, in zsh")
            self.check_brace(word)
            return False
        if found[1] in _CODE:
            self.unclear(f"what is assigned to {found[1]}")
        if found.end() == len(spelling) and self.peek() == "(":
            if words and (not words[0].bare or words[0].shape not in _ASSIGNING):
                self.unclear("an array among arguments")
            self.array()
        return not words

    def check_brace(self, word: LooseWord) -> None:
        # zsh closes a group with a brace wherever it stands alone, and opens one after some conditions.
        if word.bare and word.shape in ("{", "}"):
            self.unclear("a brace among words")

    def array(self) -> None:
        self.at += 1
        while True:
            self.gap(lines=True)
            char = self.peek()
            if char == ")":
                self.at += 1
                return
            if not char or char in ";&|(":
                self.unclear("an array")
            self.value(self.word())

    def redirection(self, words: list[LooseWord]) -> bool:
        """Read a redirection, if there is one."""
        found = _REDIRECT.match(self.line, self.at)
        if not found:
            return False
        self.effort.spend()
        if _NUMBERS.match(self.line, found.start(1)):
            self.unclear("a pattern of numbers, in zsh")
        if self.line[self.at : self.at + 2].isdigit():
            self.unclear("a descriptor that zsh takes for a word")
        operator = found[1] or found[2]
        self.at = found.end()
        if self.peek() in ("|", "!", "&"):
            self.unclear(f"{operator}{self.peek()}")
        self.gap()
        if operator in ("<<", "<<-"):
            self.here_document(strip=operator == "<<-")
        elif not self.peek() or self.peek() in "\n;&|()#":
            self.unclear("a redirection without a file")
        elif self.value(self.word()).spelling == "!":
            self.unclear("a redirection to !")
        if found[2]:
            # dash runs what stands before it in the background, and then the rest.
            self.gap()
            if words and self.peek() and self.peek() not in _END:
                self.unclear("a word after &>")
        return True

    def here_document(self, *, strip: bool) -> None:
        found = _DELIMITER.match(self.line, self.at)
        if not found:
            self.unclear("the end of a here-document")
        self.at = found.end()
        quoted = found[4] is None
        self.pending.append((found[1] or found[2] or found[3] or found[4], quoted, strip))

    def new_line(self) -> None:
        if self.waiting:
            self.unclear("a here-document that begins inside a substitution")
        self.effort.spend()
        self.at += 1
        pending, self.pending = self.pending, []
        for delimiter, quoted, strip in pending:
            text = self.here_text(delimiter, quoted=quoted, strip=strip)
            self.found.append(LooseCommand((), text=text))
            if not quoted:
                reader = _Reader(text, self.effort, strict=self.strict, depth=self.depth + 1)
                reader.expanded_text()
                self.found += reader.found

    def here_text(self, delimiter: str, *, quoted: bool, strip: bool) -> str:
        """Read the text of a here-document, and its end."""
        self.effort.spend()
        indent = r"\t*" if strip else ""
        found = re.compile(f"^{indent}{re.escape(delimiter)}.*$", re.MULTILINE).search(self.line, self.at)
        # Some versions end it where a line only begins like its end.
        if not found or found[0].lstrip("\t" if strip else "") != delimiter:
            self.unclear("the end of a here-document")
        text = self.line[self.at : found.start()]
        self.at = min(found.end() + 1, len(self.line))
        # A continued line may hide or make its end.
        if not quoted and (text.endswith("\\\n") or re.search(f"(?m)^[ \\t]*[{re.escape(delimiter)}]*\\\\$", text)):
            self.unclear("a here-document with continued lines")
        return text

    def unclear(self, what: str) -> NoReturn:
        raise UnclearError(what)
