"""What runs because of a value: a shell takes some values for code, and so do programs.

- A word that a shell takes for a number or a variable is run where it has a substitution in its subscript, wherever it
  came from: an argument, a loop, an array, a here-document (``[[ $i -eq 0 ]]`` with ``i='a[$(x)]'``).
- Some variables are expanded (``PS4``), name a file of code (``BASH_ENV``), or are a table of code (``BASH_CMDS``,
  ``functions`` of zsh), whichever command sets them.
- Some are what programs run (``GIT_PAGER``, ``core.pager``, ``alias.x=!x``).

A value that another command makes, or several values together, are not followed into arithmetic (``y=$(cat f);
echo $((y))``): each count of a loop would be refused.
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.loose_word import ANY, LooseWord
from stockade.tool.possibility import ANYTHING, Possibility, Text
from stockade.tool.shell_input import may_be_input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.tool.effort import Effort

#: What begins a substitution.
CODE: Final = re.compile(r"\$\(|`|\$\{[\s|]")
#: Tables of code in zsh; what is assigned to them is run by a name. These are words of everyday, too.
TABLES: Final = frozenset(
    (
        *("aliases", "galiases", "saliases", "dis_aliases", "dis_galiases", "dis_saliases", "functions"),
        *("dis_functions", "commands", "builtins", "dis_builtins", "options"),
    )
)
#: Variables of which a shell makes commands: they are code wherever they are named.
VARIABLES: Final = ("BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "PS4", "PROMPT_COMMAND", "READNULLCMD", "NULLCMD")
_NAMES: Final = "|".join((*VARIABLES, "histchars", "HISTCHARS"))
_VARIABLE: Final = re.compile(rf"(?<![\w$])(?:(?:{_NAMES})(?!\w)|BASH_FUNC_)", re.ASCII)
# A dollar sign or a backquote as printf and echo are given it, and ANSI quotes.
_ENCODED: Final = re.compile(r"\\(0*44(?![0-7])|0*140|x24|x60|[uU]0*24|[uU]0*60)")
# git takes settings from them, and so aliases.
_GIT: Final = re.compile(r"GIT_CONFIG_(PARAMETERS|KEY_\d+|VALUE_\d+)=")
_FILES: Final = frozenset(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG", "ENV", "ZDOTDIR"))
_ANY_TABLE: Final = "|".join(sorted(TABLES))
_TABLE: Final = re.compile(rf"^(?:{_ANY_TABLE})\[", re.ASCII)
_TABLE_IN_BRACES: Final = re.compile(rf"\$\{{(?:{_ANY_TABLE})(?!\w)", re.ASCII)
#: Variables whose value programs run, by how they end.
_RUN_BY_PROGRAMS: Final = ("PAGER", "EDITOR", "VISUAL", "COMMAND", "BROWSER", "ASKPASS", "_SSH", "_DIFF", "OPEN", "CMD")
_MARKS: Final = re.compile(r"(?P<subscript>\w\[)|(?P<open>\[)|(?P<close>\])|(?P<code>\$\(|`|\$\{[\s|])")
# The first part of a subscript, whose code is put behind it later.
_OPEN_SUBSCRIPT: Final = re.compile(rf"[\w{ANY}]\[")
_QUOTES: Final = re.compile(r"\\\n|['\"\\]")
# These set one with an option.
_PRINTERS: Final = frozenset(("print", "printf"))
# Commands that set a variable whose name is a word of theirs.
_SETTERS: Final = frozenset(
    (
        *("set", "read", "typeset", "declare", "local", "export", "readonly", "private", "zparseopts", "zstyle"),
        *("getopts", "vared", "sysread", "stat", "zstat", "mapfile", "readarray", "strftime", "zformat", "zregexparse"),
    )
)


def hidden_in_word(word: LooseWord, *, for_shells: bool = True) -> Iterator[Possibility | Text]:
    """Yield what runs because of a word of a command, or an assignment before one; ``for_shells`` if shells may run."""
    name, equals, value = word.shape.partition("=")
    name = name.removesuffix("+")
    assigned = bool(equals) and name.replace(".", "_").replace("-", "_").replace(ANY, "_").isidentifier()
    if word.shape == word.spelling and not equals and "[" not in word.shape and not _VARIABLE.search(word.shape):
        return
    texts = (word.shape, _QUOTES.sub("", word.spelling))
    if (
        any(_VARIABLE.search(text) or _TABLE.search(text) for text in texts)
        or (_TABLE_IN_BRACES.search(texts[1]) and "=" in texts[1])
        or _ENCODED.search(word.spelling)
        or _GIT.match(word.shape)
        or (CODE.search(word.shape) and (assigned or "[" in word.shape))
        or (assigned and _OPEN_SUBSCRIPT.search(value.rpartition("]")[2]))
        or (assigned and name in _FILES and (word.literal or for_shells) and may_be_input(LooseWord(name, value)))
    ):
        yield ANYTHING
    elif assigned and (value.startswith("!") or name.upper().endswith(_RUN_BY_PROGRAMS)):
        yield Text(value.lstrip("!")) if word.literal else ANYTHING


def hidden_in_value(word: LooseWord) -> Iterator[Possibility]:
    """Yield what may run because of a word that is no part of a command: of a loop, an array, a test, a redirection."""
    if CODE.search(word.shape) or _VARIABLE.search(word.shape) or _ENCODED.search(word.spelling):
        yield ANYTHING


def hidden_in_text(text: str) -> Iterator[Possibility]:
    """Yield what may run because of the text of a here-document: a substitution inside a subscript."""
    if not CODE.search(text):
        return
    levels: list[bool] = []
    subscripts = 0
    for found in _MARKS.finditer(text):
        if found["code"]:
            if subscripts:
                yield ANYTHING
                return
        elif found["close"]:
            subscripts -= bool(levels and levels.pop())
        else:
            levels.append(bool(found["subscript"]))
            subscripts += levels[-1]


def hidden_in_words(words: tuple[LooseWord, ...], start: int, effort: Effort) -> Iterator[Possibility]:
    """Yield what may run because of a command that sets a variable: ``set -A functions f 'x'``."""
    kind, following = words[start].name, words[start + 1 : start + 2]
    if kind not in _SETTERS and not (kind in _PRINTERS and following and following[0].shape.startswith("-")):
        return
    effort.spend(len(words) - start)
    names = (re.split(rf"[\[={ANY}]", word.shape, maxsplit=1)[0] for word in words[start + 1 :])
    if any(name in TABLES for name in names):
        yield ANYTHING
