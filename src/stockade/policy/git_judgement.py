"""What a repository that a command left would make git do on the host: values in, words out.

The rules, for a repository that no mount covered while a command ran:

- Its config may hold harmless settings only (``stockade.policy.git_key``), and must be one that git reads. An include
  is not harmless, so none has to be followed.
- A file in ``hooks`` that git could run by its name is not left there. The execute bit does not matter: it is set in a
  moment. What ends in ``.sample`` is never run, nor is what was set aside.
- A ``.git`` file may lead to a directory (``gitdir:``), and ``commondir`` to the repository that a linked worktree
  belongs to, two levels up. Anywhere else, git would take hooks and config from there.

Source of truth: gitrepository-layout(5), githooks(5), git-config(1).
"""

from __future__ import annotations

import os

from stockade.annotation import Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.policy.git_config import read
from stockade.policy.git_key import is_harmless, local_path
from stockade.value import Value

#: What is set aside keeps its name, with this and a number behind it. No program looks for such a name.
ASIDE: Final = ".stockade-"
#: No config, link or hook list of an honest repository is larger.
LARGEST: Final = 1 << 20
_PREFIX: Final = b"gitdir: "
#: Below these a path means another place for each process.
_OWN: Final = ("/proc/", "/dev/")


class ConfigVerdict(Value):
    """What is wrong with a config, empty if nothing is, and the local repositories that it names."""

    fault: str = ""
    paths: tuple[str, ...] = ()


def judge_config(text: bytes | None, directory: str, worktree: str = "", above: str = "") -> ConfigVerdict:
    """Judge the config of the repository ``directory``; ``worktree`` is where its ``.git`` file was found, if by one.

    Of a submodule's repository that was found otherwise, the work tree lies somewhere below ``above``. ``None`` stands
    for a text that could not be read or is too long.
    """
    if text is None:
        return ConfigVerdict("it cannot be read as a config of ordinary size")
    try:
        settings = read(text)
    except InvalidTextError as error:
        return ConfigVerdict(f"git cannot read it: {error.message}")
    remotes = frozenset(each.subsection for each in settings if each.section == "remote" and each.has_subsection)
    for setting in settings:
        if setting.name == "core.worktree":
            led = leading_to(setting.value or "", directory)
            if not led or (led != worktree and not (above and led.startswith(f"{above}/"))):
                return ConfigVerdict("core.worktree makes git work on files elsewhere")
        elif not is_harmless(setting, remotes):
            name = escape(setting.name, 80)
            return ConfigVerdict(f"{name} can make git run a program or obey what lies elsewhere")
    named = [leading_to(path, "/") for setting in settings if (path := local_path(setting))]
    if "" in named:
        return ConfigVerdict("a remote leads to another repository for each program that asks")
    # Git tries both in turn.
    paths = (f"{path}{end}" for path in named for end in ("", ".git"))
    return ConfigVerdict("", tuple(dict.fromkeys(paths)))


def worktree_of(text: bytes | None, directory: str) -> str:
    """Return where the config of the repository ``directory`` says that its files are; empty if it does not say."""
    try:
        settings = read(text or b"")
    except InvalidTextError:
        return ""
    found = [setting.value or "" for setting in settings if setting.name == "core.worktree"]
    return leading_to(found[-1], directory) if found else ""


def is_hook(name: str) -> bool:
    """Tell whether git could run the file with this name in ``hooks``."""
    return not name.endswith(".sample") and not is_aside(name)


def is_aside(name: str) -> bool:
    """Tell whether a name is one that something was set aside under."""
    _, found, number = name.rpartition(ASIDE)
    return bool(found) and number.isdecimal()


def linked_directory(text: bytes | None, holder: str) -> str | None:
    """Return where a ``.git`` file in the directory ``holder`` leads, ``None`` if git finds no repository by it.

    Empty if the text alone does not tell.
    """
    if text is None or not text.startswith(_PREFIX):
        return None
    target = text[len(_PREFIX) :].rstrip(b"\r\n")
    # Git hands the path on as a C string.
    path = os.fsdecode(target.partition(b"\0")[0])
    return leading_to(path, holder) if path else None


def common_fault(text: bytes | None, directory: str) -> str:
    """Return what is wrong with the ``commondir`` of a repository, empty if nothing is."""
    if text is None:
        return "it cannot be read"
    path = os.fsdecode(text.partition(b"\0")[0].rstrip(b"\r\n"))
    common = leading_to(path, directory)
    names = directory.split("/")
    own = "/".join(names[:-2]) if names[-2:-1] == ["worktrees"] else ""
    if path and common in (own, directory):
        return ""
    return "git would take hooks and config from the directory that it names"


def common_directory(directory: str) -> str:
    """Return the repository that a linked worktree's own directory belongs to; another directory is its own."""
    names = directory.split("/")
    return "/".join(names[:-2]) if names[-2:-1] == ["worktrees"] else directory


def alternates(text: bytes | None, objects: str) -> tuple[str, ...] | None:
    """Return the other object directories that an ``alternates`` file names; ``None`` if the text does not tell."""
    if text is None:
        return None
    lines = [os.fsdecode(line) for line in text.split(b"\n") if line and not line.startswith(b"#")]
    if any(line.startswith('"') or "\0" in line for line in lines):
        return None  # a quoted path: git writes one only for names with a newline in them
    found = tuple(leading_to(line, objects) for line in lines)
    return None if "" in found else found


def leading_to(path: str, start: str) -> str:
    """Return an absolute path for one that is relative to ``start``, by its text alone.

    Empty for one that goes down and up again: on the way there may be links, and then the text does not tell. Empty
    also for one that leads through ``/proc``, however it is written.
    """
    names = [] if path.startswith("/") else start.split("/")
    down = path.startswith("/")
    for name in path.split("/"):
        if name == "..":
            if down:
                return ""
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
            down = True
    found = "/" + "/".join(name for name in names if name)
    return "" if f"{found}/".startswith(_OWN) else found
