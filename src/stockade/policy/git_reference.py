"""What a config of git names and git on the host runs or obeys: hooks elsewhere, further configs, programs.

A command that writes ``.husky/pre-commit`` needs no ``.git/hooks`` where ``core.hooksPath`` is ``.husky``. So what a
config names is protected like the config itself, whether it exists or not. The rules:

- ``core.hooksPath``, ``init.templateDir``: the directory. A relative path is relative to the work tree.
- ``include.path``, ``includeIf.*.path``: the file, and all that it names in turn, up to ten files deep as in git. A
  condition is taken to hold. A relative path is relative to the file that has it.
- Settings that hold a command (``COMMANDS``): the file that the first word names, if that word holds a slash. What
  else is in the line, such as the script of an interpreter, is the user's own content.
- Other files (``core.attributesFile``, ``core.excludesFile``, ``commit.template``) are data: they run nothing that the
  config does not name.

Where a setting stands twice, both count. A config that git refuses names nothing, for git does nothing with it.
Source of truth: git-config(1), githooks(5), gitattributes(5).
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.places import follow
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stockade.policy.git_config import GitSetting
    from stockade.policy.places import Places

#: Settings that hold a command, by section; behind a dot those with a subsection.
COMMANDS: Final = {
    "core": ("fsmonitor", "sshcommand", "editor", "pager", "askpass", "gitproxy", "alternaterefscommand"),
    "sequence": ("editor",),
    "interactive": ("difffilter",),
    "diff": ("external", ".command", ".textconv"),
    "difftool": (".cmd", ".path"),
    "merge": (".driver",),
    "mergetool": (".cmd", ".path"),
    "filter": (".clean", ".smudge", ".process"),
    "gpg": ("program", ".program", ".defaultkeycommand"),
    "credential": ("helper", ".helper"),
    "uploadpack": ("packobjectshook",),
    "remote": (".uploadpack", ".receivepack"),
    "submodule": (".update",),
    "trailer": (".cmd", ".command"),
    "browser": (".cmd", ".path"),
    "man": (".cmd", ".path"),
}
#: Sections in which every setting holds a command.
_ALL_COMMANDS: Final = ("alias", "pager")
_DIRECTORIES: Final = ("core.hookspath", "init.templatedir")
#: No config names anything unless one of these is in it: sections and keys cannot be spelled in another way. Keys that
#: are common words are looked for by their section.
_COMMON: Final = ("submodule", "difftool", "mergetool", "browser", "man", "trailer", *_ALL_COMMANDS)
_WORDS: Final = (
    *(b"hookspath", b"templatedir", b"[include"),
    *(f"[{section}".encode() for section in _COMMON),
    *{key.strip(".").encode() for section, keys in COMMANDS.items() if section not in _COMMON for key in keys},
)
_DEEPEST: Final = 10  # MAX_INCLUDE_DEPTH in git's config.c
_RUNS: Final = "git on the host runs what is in it"
_OBEYS: Final = "git on the host obeys it and can be made to run programs by it"
_RUN: Final = "git on the host runs it"


class GitReference(Value):
    """A path that a config names, not yet followed; ``is_config`` if it is a config in turn."""

    name: str
    path: str
    why: str
    is_config: bool = False


def references(config: str, place: str, tops: tuple[str, ...], home: str, places: Places) -> Iterator[GitReference]:
    """Yield what the config at a path, which leads to a place, names for a repository with these work trees."""
    todo = [(config, place, 0)]
    seen: set[str] = set()
    while todo:
        path, place, depth = todo.pop()
        if place in seen:
            continue
        seen.add(place)
        for setting in settings_of(places.config(place), _WORDS):
            for found in _named(setting, path, tops, home):
                yield found
                if found.is_config and depth < _DEEPEST:
                    todo.append((found.path, follow(found.path, places).place, depth + 1))


def settings_of(content: bytes | None, words: Iterable[bytes]) -> tuple[GitSetting, ...]:
    """Return the settings of a config if one of these words is in it; to read most configs would be in vain."""
    if content is None:
        return ()
    folded = content.lower()
    if not any(word in folded for word in words):
        return ()
    from stockade.policy.git_config import read

    try:
        return read(content)
    except InvalidTextError:
        return ()


def _named(setting: GitSetting, config: str, tops: tuple[str, ...], home: str) -> Iterator[GitReference]:
    value = (setting.value or "").removeprefix(":(optional)")
    if setting.section in ("include", "includeif") and setting.key == "path":
        for path in _absolute(value, (config.rpartition("/")[0],), home):
            yield GitReference(f"{setting.section}.path", path, _OBEYS + _by(config), is_config=True)
    elif setting.name in _DIRECTORIES:
        for path in _absolute(value, tops, home):
            yield GitReference(setting.name, path, _RUNS + _by(config))
    elif _is_command(setting):
        program = _program(value)
        for path in _absolute(program, tops, home) if "/" in program else ():
            yield GitReference(escape(setting.name, 60), path, _RUN + _by(config))


def _by(config: str) -> str:
    return f' ("{escape(config)}" names it)'


def _absolute(written: str, bases: tuple[str, ...], home: str) -> Iterator[str]:
    """Yield the absolute paths that a written one stands for, one for each directory that it may be relative to."""
    if not written or "\0" in written or written.startswith("%(prefix)/"):
        return  # the prefix is where git itself is installed
    if written.startswith("~"):
        user, _, rest = written[1:].partition("/")
        if not user:
            yield f"{home}/{rest}"
    elif written.startswith("/"):
        yield written
    else:
        yield from (f"{base}/{written}" for base in bases)


def _is_command(setting: GitSetting) -> bool:
    if setting.section in _ALL_COMMANDS:
        return True
    key = f".{setting.key}" if setting.has_subsection else setting.key
    return key in COMMANDS.get(setting.section, ())


def _program(line: str) -> str:
    """Return the first word of a command, behind the variables that it sets; empty if a shell would expand the word."""
    for word in _words(line.lstrip("!")):
        name, assigned, _ = word.partition("=")
        if not assigned or "/" in name:
            return "" if set("$`*?[") & set(word) else word
    return ""


def _words(line: str) -> Iterator[str]:
    """Yield the words of a plain line of shell, without their quotes."""
    word, quote = "", ""
    for char in line:
        if quote:
            word, quote = (word, "") if char == quote else (word + char, quote)
        elif char in "\"'":
            quote = char
        elif char in " \t\n;&|<>()":
            if word:
                yield word
            word = ""
        else:
            word += char
    if word:
        yield word
