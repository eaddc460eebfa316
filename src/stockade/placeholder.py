"""What a placeholder looks like: a name on the host's disk that a sandbox keeps from being made while commands run.

There are three shapes, and each does the least harm to what programs of the host do with the name meanwhile:

- A *directory*, empty and writable: git does not see it, archive and copy tools take it, and a program of the host can
  put its files into it. Names that begin with a dot get one, ``.mcp.json`` too: a file would show in ``git status``.
- A *file*, empty and writable, for names in a home and in ``.git`` that programs of the host read as files, and for the
  settings of an agent where git would not see it (``stockade.filesystem.unseen``). Where an
  empty one would be wrong it says what the program assumes anyway, and then nobody may write it.
- A *node*, a socket that nobody may open, for all else: above all for ``refs``, ``objects`` and ``HEAD``, since a
  directory of that name could make a repository of the one that holds it.

The time of change of empty directories and files, an odd moment long ago, marks them as ours. A program that writes one
changes that time, and then it is no placeholder any more. A command can give a directory that time, too, but nothing
in it escapes: only an empty directory is a placeholder. While one is made it has a mode that no other directory has.
An empty ``.git`` is a placeholder in any case, and so is one that holds only a stage: to git neither is a repository.

To whoever looks for settings, protected files or anything else, nothing is there.
"""

from __future__ import annotations

import os
import stat

from stockade.annotation import Final, Literal, TypeAlias

Shape: TypeAlias = Literal["directory", "file", "node"]

#: Names whose placeholder is a file with content, and what it must hold to do no harm.
CONTENTS: Final = {"commondir": b".\n", "config.worktree": b"#\n", "settings.xml": b"<settings/>\n"}
#: The mode of those.
FILE_MODE: Final = 0o444
#: When empty directories and files were changed, in nanoseconds. The second is an even one, and the moment is one that
#: every archive can hold.
MARK: Final = 611_193_466_135_791_357
#: The same as disks keep it that count in coarser steps.
_MARKS: Final = frozenset(MARK // step * step for step in (1, 100, 10**3, 10**6, 10**7, 10**9))
#: The mode in which a directory is made, less what the umask takes away.
UNMADE: Final = 0o1555
#: Those that tell it from others: it is sticky, and nobody may write to it.
_UNMADE_BITS: Final = stat.S_ISVTX | 0o222

#: Names that programs of the host read as files, as they are protected: alone, or with the directory that holds them.
_FILE_LIST: Final = """
.git/commondir .git/config.worktree .git/config .cargo/config .cargo/config.toml .m2/settings.xml .bashrc
.bash_profile .bash_aliases .bash_login .bash_logout .profile .kshrc .mkshrc .shrc .cshrc .tcshrc .login .logout
.zshrc .zprofile .zshenv .zlogin .zlogout .inputrc .pam_environment .environment .xprofile .xinitrc .xsession
.xsessionrc .xserverrc .Xresources .Xdefaults .gitconfig .hgrc .ripgreprc .npmrc .yarnrc .pypirc .netrc .curlrc
.wgetrc .condarc .gemrc .irbrc .pryrc .Rprofile .Renviron .pythonrc .pdbrc .gdbinit .lldbinit .psqlrc .my.cnf
.sqliterc .forward .pinerc .vimrc .gvimrc .exrc .nanorc .emacs .emacs.el .tmux.conf .screenrc .lesskey .lessfilter
.mailcap .mailrc .muttrc .procmailrc .rhosts .shosts .envrc .direnvrc .asoundrc .terraformrc .bazelrc
.zshenv.zwc .zprofile.zwc .zshrc.zwc .zlogin.zwc .zlogout.zwc .zcompdump .zcompdump.zwc .bash_completion
.config/bash_completion .i18n .alias .Xclients .xinputrc .gnomerc .config/user-dirs.dirs .gitk .tigrc .cvsrc
.selected_editor .quiltrc .devscripts .pbuilderrc .sbuildrc .dpkg.cfg .config/curlrc .rspec .pylintrc .config/pylintrc
.gnuplot .tclshrc .perldb .valgrindrc .sbclrc .guile .ackrc .latexmkrc .mavenrc .pythonrc.py .pydistutils.cfg
.rpmmacros .makepkg.conf .jjconfig.toml .git-credentials
"""
_FILES: Final = frozenset(_FILE_LIST.split())
#: Names without a dot at their beginning that are directories.
_DIRECTORIES: Final = frozenset({"hooks", "commands", "agents", "skills", "plugins"})
#: Settings of an agent: a file as well, where git does not see it.
SETTINGS: Final = frozenset({".claude/settings.json", ".claude/settings.local.json"})
_FILE_NAMES: Final = frozenset(name.rpartition("/")[2] for name in _FILES | SETTINGS)
#: What a ``.git`` that is kept may hold: the stage on which commands make a repository
#: (``stockade.platforms.linux.staging``).
STAGE: Final = ".stockade-staged"
#: As many links as a directory with one directory in it has.
_FEW: Final = 3
_LISTED: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def shape_of(name: str, protected: str = "", *, at_home: bool = True) -> Shape:
    """Return the shape for a missing name; ``protected`` is the name by which it is protected (``.git/config``).

    Where it is not ``at_home``, as ``.bashrc`` in a project, a file would be a new one for git.
    """
    whole = protected if protected.rpartition("/")[2] == name else name
    if whole in _FILES:
        return "file" if at_home or whole.startswith(".git/") else "node"
    return "directory" if name.startswith(".") or name in _DIRECTORIES else "node"


def may_be_placeholder(name: str, directory: bool) -> bool:  # noqa: FBT001 - asked for every name of a listing
    """Tell from a name, and whether it is a directory, if it is worth a look; nodes always are."""
    if directory:
        return name[:1] == "." or name in _DIRECTORIES
    return name in _FILE_NAMES


def is_placeholder(status: os.stat_result, name: str = "") -> bool:
    """Tell from an ``lstat`` of a name whether it is only kept, if it is no directory; see ``is_kept``."""
    mode = status.st_mode
    if stat.S_ISREG(mode):
        if not status.st_size:
            return has_mark(status)
        content = CONTENTS.get(name)
        return content is not None and mode == stat.S_IFREG | FILE_MODE and status.st_size == len(content)
    return mode == stat.S_IFSOCK and not status.st_size


def has_mark(status: os.stat_result) -> bool:
    """Tell whether it has the time by which we mark what is empty."""
    return status.st_mtime_ns in _MARKS


def is_marked(status: os.stat_result, name: str = "") -> bool:
    """Tell whether this is a directory that is a placeholder if it is empty; a ``.git`` needs no mark for that."""
    mode = status.st_mode
    if not stat.S_ISDIR(mode):
        return False
    return (
        status.st_mtime_ns in _MARKS
        or mode & _UNMADE_BITS == stat.S_ISVTX
        or (name == ".git" and status.st_nlink <= _FEW)
    )


def is_unmade(status: os.stat_result) -> bool:
    """Tell whether this is a directory that is being made as a placeholder at this moment."""
    return stat.S_ISDIR(status.st_mode) and status.st_mode & _UNMADE_BITS == stat.S_ISVTX


def is_kept(path: str, directory: int | None = None) -> bool:
    """Look whether a name is only kept, of whatever shape; ``directory`` is open, and the path begins there.

    Raises ``OSError`` if nothing is there, or nothing can be looked at.
    """
    status = os.stat(path, dir_fd=directory, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        return is_placeholder(status, path.rpartition("/")[2])
    name = path.rpartition("/")[2]
    if not is_marked(status, name):
        return False
    try:
        opened = os.open(path, _LISTED, dir_fd=directory)
    except PermissionError:
        return False  # what cannot be listed is not known to be empty
    try:
        return is_empty(opened, but=STAGE if name == ".git" else "")
    finally:
        os.close(opened)


def is_empty(directory: int, but: str = "") -> bool:
    """Tell whether an open directory is empty, ``but`` for one name; what cannot be listed is not."""
    try:
        with os.scandir(directory) as entries:
            return all(entry.name == but for entry in entries)
    except OSError:
        return False
