"""Programs that run what an option says: ``tar -I``, ``split --filter``, ``git rebase --exec``.

Known are options whose value is a command. What a program of another language says is not looked into: awk's
``system()``, sed's ``e``, the recipes of make, ``python -c``. Neither are files of settings that such programs read.

Source of truth: the manuals of GNU coreutils 9, tar 1.34, OpenSSH 9, rsync 3.2, gcc 12, git 2.39.
"""

from __future__ import annotations

import re

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.loose_word import LooseWord, plain
from stockade.tool.possibility import ANYTHING, Possibility, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.tool.effort import Effort

#: Options with a command as their value, by the program.
_OPTIONS: Final = {
    "split": ("--filter",),
    "sort": ("--compress-program",),
    "tar": (
        *("-I", "-F", "--use-compress-program", "--checkpoint-action", "--to-command", "--info-script"),
        *("--new-volume-script", "--rmt-command", "--rsh-command"),
    ),
    "scp": ("-S", "-o"),
    "sftp": ("-S", "-o", "-D"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "gcc": ("-wrapper",),
    "g++": ("-wrapper",),
    "cc": ("-wrapper",),
    "clone": ("-u", "--upload-pack"),
    "fetch": ("--upload-pack",),
    "pull": ("--upload-pack",),
    "fetch-pack": ("--upload-pack", "--exec"),
    "ls-remote": ("--upload-pack", "--exec"),
    "push": ("--receive-pack", "--exec"),
    "send-pack": ("--receive-pack", "--exec"),
    "archive": ("--exec",),
    "rebase": ("-x", "--exec"),
    "difftool": ("-x", "--extcmd"),
    "grep": ("-O", "--open-files-in-pager"),
    "filter-branch": (
        *("--env-filter", "--tree-filter", "--index-filter", "--parent-filter", "--msg-filter"),
        *("--commit-filter", "--tag-name-filter", "--setup"),
    ),
    "send-email": ("--to-cmd", "--cc-cmd", "--header-cmd", "--sendmail-cmd", "--smtp-server"),
    "submodule": (),
    "bisect": (),
}
_ALSO: Final = {"gtar": "tar", "bsdtar": "tar", "gsplit": "split", "gsort": "sort"}
#: Programs, besides git, that are known here.
PROGRAMS: Final = frozenset(("split", "sort", "tar", "scp", "sftp", "rsync", "gcc", "g++", "cc", "socat", *_ALSO))
_GIT_VALUED: Final = frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"))
# Settings of git that name a command, by their last part.
_GIT_COMMANDS: Final = re.compile(
    r"(alias|pager)\..*|.*(pager|editor|command|fsmonitor|external|driver|clean|smudge|process|helper|program|gitproxy"
    r"|hook|hookspath|uploadpack|receivepack|difffilter|cmd|textconv|askpass|path)",
    re.IGNORECASE | re.DOTALL,
)
_SIMPLE: Final = re.compile(r"[\w./-]*", re.ASCII)


def run_by_options(kind: str, words: tuple[LooseWord, ...], effort: Effort) -> Iterator[Possibility | Text]:
    """Yield what a program runs because of its options."""
    effort.spend(len(words) // 2)
    kind = _ALSO.get(kind, kind)
    if kind == "socat":
        for word in words[1:]:
            found = re.match(r"(?i)(exec|system|shell):", word.shape)
            yield from _command(word, word.shape[found.end() :].partition(",")[0]) if found else ()
        return
    yield from _values(_OPTIONS[kind], words)
    if kind == "tar" and words[2:] and re.match(r"[A-Za-z]*[IF]", words[1].shape):
        # Letters without a dash have their values behind them, in order.
        for word in words[2:]:
            yield from _command(word, word.shape)


def _values(options: tuple[str, ...], words: tuple[LooseWord, ...]) -> Iterator[Possibility | Text]:
    letters = {option[1] for option in options if len(option) == 2}  # noqa: PLR2004 - a dash and a letter
    for at in range(1, len(words)):
        word, following = words[at], words[at + 1 : at + 2]
        text = word.shape
        if not text.startswith("-"):
            continue
        stem, equals, value = text.partition("=")
        # A long option may be cut short.
        if text.startswith("--") and len(stem) > 2 and any(option.startswith(stem) for option in options):  # noqa: PLR2004
            yield from _command(word, value) if equals else _next(following)
        elif text in options:
            yield from _next(following)
        elif not text.startswith("--"):
            for place, letter in enumerate(text[1:], 1):
                if letter in letters:
                    yield from _command(word, text[place + 1 :]) if text[place + 1 :] else _next(following)
                    break


def _next(following: tuple[LooseWord, ...]) -> Iterator[Possibility | Text]:
    for word in following:
        yield from _command(word, word.shape)


def _command(word: LooseWord, text: str) -> Iterator[Possibility | Text]:
    """Yield what a value says: `rm x`, `exec=rm x` of tar, `ProxyCommand=rm x` of ssh, `rm,x` of gcc."""
    if not word.literal:
        yield ANYTHING
        return
    key, equals, value = text.partition("=")
    yield Text(text)
    if equals and key.isalpha():
        yield Text(value)
    if "," in text:
        yield Text(text.replace(",", " "))
    if key[:5].lower() == "proxy" and not equals:
        yield Text(text.partition(" ")[2])


def run_by_git(words: tuple[LooseWord, ...], effort: Effort) -> Iterator[Possibility | Text]:
    """Yield what git runs: by its options, settings and subcommands, among them its own under another name."""
    effort.spend(len(words) // 2)
    at = 1
    while at < len(words) and words[at].shape.startswith("-"):
        at += 2 if words[at].shape in _GIT_VALUED else 1
    for place in range(1, len(words)):
        yield from _settings(words, place, at)
        if words[place].shape.startswith("ext::"):
            yield from _command(words[place], words[place].shape[5:])
    if at < len(words) and words[at].literal:
        yield from _subcommand(words[at].shape, words[at:])


def _settings(words: tuple[LooseWord, ...], place: int, at: int) -> Iterator[Possibility | Text]:
    """Yield what a word sets, where the subcommand stands ``at`` a place."""
    word, before = words[place], words[place - 1].shape
    if before in ("-c", "--config"):
        yield from _setting(word, *word.shape.partition("=")[::2], words[at + 1 :])
    elif before == "--config-env" or word.shape.startswith(("--config-env=", "-calias.", "--config=alias.")):
        yield ANYTHING
    elif at < place < len(words) - 1 and words[at].may_be("config") and "." in word.shape:
        yield from _setting(words[place + 1], word.shape, words[place + 1].shape, ())


def _setting(word: LooseWord, key: str, value: str, rest: tuple[LooseWord, ...]) -> Iterator[Possibility | Text]:
    """Yield what a setting makes git run; an alias is a command of git unless it begins with ``!``."""
    if not word.literal:
        if _GIT_COMMANDS.fullmatch(key) or not _SIMPLE.fullmatch(key):
            yield ANYTHING
    elif key.lower().startswith("alias.") and not value.startswith("!"):
        yield Possibility((plain("git"), *map(plain, value.split()), *rest), 0, goes_on=True)
    elif _GIT_COMMANDS.fullmatch(key) and value:
        yield Text(value.lstrip("!"))


def _subcommand(name: str, words: tuple[LooseWord, ...]) -> Iterator[Possibility | Text]:
    if name in _OPTIONS and name not in PROGRAMS:
        yield from _values(_OPTIONS[name], words)
    marker = {"submodule": "foreach", "bisect": "run"}.get(name)
    if marker is None:
        return
    for at in range(1, len(words) - 1):
        if words[at].may_be(marker):
            rest = words[at + 1 :]
            while len(rest) > 1 and rest[0].shape.startswith("-"):
                rest = rest[1:]
            # A single word is a text; more are given to a shell as they are.
            if all(word.literal for word in rest):
                yield Text(" ".join(word.shape if len(rest) == 1 else _quoted(word.shape) for word in rest))
            else:
                yield Possibility(rest)
                if not rest[0].literal or len(rest) == 1:
                    yield ANYTHING
            return


def _quoted(text: str) -> str:
    return text if _SIMPLE.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"
