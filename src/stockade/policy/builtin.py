r"""Builtins of shells: which of them are plain, so that a pattern may cover them.

A pattern that allows or excludes is a promise about a program. A builtin is no program: many assign a variable or
evaluate a text, and then the next plain word means something else. ``printf -v PATH /evil; ls`` runs ``/evil/ls``,
``test -v 'a[$(x)]'`` runs ``x``, and ``read PATH`` takes its evil from a pipe. So this module lists what is plain, and
no pattern covers any other builtin, whatever its words are.

Plain are builtins that print, look or leave, called in a way in which bash, dash and zsh neither assign nor evaluate:

- ``:  true  false  echo  pwd  cd  kill  times``, with any words but a subscript;
- ``type  which  whence  where``, with words that are literal;
- ``exit``, with a number, and ``wait`` alone (zsh evaluates the word behind ``exit`` as arithmetic);
- ``test``, with literal words, operators that look at strings and files, and whole numbers beside the others (``-v``
  evaluates a subscript in bash, ``-eq`` and ``-t`` any word in zsh); no line with ``[`` is read with certainty;
- ``printf``, with a literal format that holds no number (``%d`` evaluates its word in zsh) and no escape by number.

A word with a subscript is never plain: each shell has builtins that evaluate what stands in it.

Source of truth: ``compgen -b`` of bash 5.3, ``${(k)builtins}`` of zsh 5.9, dash(1). A test compares the list with the
shells that are installed. Modules of zsh that nothing loads by itself, and whose builtins have the names of programs
(``zsh/files``, ``zsh/cap``, ``zsh/clone``), are left out.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stockade.policy.shell_line import SimpleCommand, Word


def _names(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


#: Every name that some shell reads as a builtin, or as a word before a command.
BUILTINS: Final = _names(
    # POSIX, and bash 5.3
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo",
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile newgrp popd",
    "printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset",
    "ulimit umask unalias unset wait",
    # zsh 5.9, with the modules that it loads by itself
    "- autoload bindkey bye chdir compadd comparguments compcall compctl compdescribe compfiles compgroups compquote",
    "compset comptags comptry compvalues disable echotc echoti emulate float functions getln integer limit log",
    "nocorrect noglob print private pushln r rehash sched setopt ttyctl unfunction unhash unlimit unsetopt vared",
    "whence where which zcompile zformat zle zmodload zparseopts zregexparse zstyle",
    # zsh 5.9, where start-up files have loaded more
    "strftime syserror sysopen sysread sysseek syswrite zcurses zdelattr zftp zgdbmpath zgetattr zlistattr zprof zpty",
    "zselect zsetattr zsocket zstat zsystem ztcp ztie zuntie",
)
_MOVING: Final = _names("cd chdir pushd popd")
_ANY_WORDS: Final = _names(": true false echo pwd cd kill times")
_LITERAL_WORDS: Final = _names("type which whence where")
_TESTS: Final = _names("-b -c -d -e -f -g -h -k -L -n -p -r -s -S -u -w -x -z -O -G -N -a -o -nt -ot -ef = == != ! ( )")
_COMPARISONS: Final = _names("-eq -ne -lt -le -gt -ge")
_DIGITS: Final = frozenset("0123456789")
_NAME_END: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_])}")
#: What may stand between the ``%`` and the letter of a conversion, and the letters that convert no number.
_FLAGS: Final = frozenset("-+ #.0123456789")
_TEXTUAL: Final = frozenset("sbqc%")
_ESCAPES: Final = frozenset('abefnrtv\\"')


def is_builtin(name: str) -> bool:
    """Say whether some shell runs a name by itself; ``%1`` is a job that it brings back."""
    return name in BUILTINS or name.startswith("%")


def changes_directory(commands: Iterable[SimpleCommand]) -> bool:
    """Say whether a builtin among commands goes to another directory, so that a relative path means another file."""
    return any(command.words[0].text in _MOVING for command in commands if command.words)


def why_not_plain(command: SimpleCommand) -> str:
    """Say why no pattern may cover a command that is a builtin; empty for a plain one, and for a program."""
    if not command.words or not command.words[0].literal or not is_builtin(command.words[0].text):
        return ""
    name, words = command.words[0].text, command.words[1:]
    if any(map(has_subscript, words)):
        return f"`{name}` is given a subscript, which a shell may evaluate"
    if name in _ANY_WORDS or _is_plain(name, words):
        return ""
    return f"`{name}` is a builtin of the shell that can assign or evaluate when it is called like this"


def has_subscript(word: Word) -> bool:
    """Say whether a word may name an element of an array; of a word that is not literal only the spelling is known."""
    if not word.literal:
        return "[" in word.text
    text = word.text
    return any(char == "[" and text[at - 1] in _NAME_END for at, char in enumerate(text) if at)


def _is_plain(name: str, words: Sequence[Word]) -> bool:
    texts = [word.text for word in words]
    literal = all(word.literal for word in words)
    if name in _LITERAL_WORDS:
        return literal
    if name == "exit":
        return literal and len(texts) <= 1 and all(map(_is_number, texts))
    if name == "wait":
        return not texts
    if name == "test":
        return literal and _is_plain_test(texts)
    return name == "printf" and _is_plain_printf(words)


def _is_plain_test(texts: list[str]) -> bool:
    if any(text.startswith("-") and text not in _TESTS and text not in _COMPARISONS for text in texts):
        return False
    if _COMPARISONS.isdisjoint(texts):
        return True
    return all(text in _TESTS or text in _COMPARISONS or _is_number(text) for text in texts)


def _is_plain_printf(words: Sequence[Word]) -> bool:
    if not words or not words[0].literal or words[0].text.startswith("-"):
        return False
    text, at = words[0].text, 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\":
            if text[at : at + 1] not in _ESCAPES:
                return False
            at += 1
        elif char == "%":
            while text[at : at + 1] in _FLAGS:
                at += 1
            if text[at : at + 1] not in _TEXTUAL:
                return False
            at += 1
    return True


def _is_number(text: str) -> bool:
    return bool(text) and _DIGITS.issuperset(text)
