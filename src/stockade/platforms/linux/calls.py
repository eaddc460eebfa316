"""The calls that change files, as a table: what each does, and which of its arguments say where.

Pure. A path is an argument that points to text; the directory that it is relative to is another argument, or the
working directory. ``Use`` is one name that a call changes; two for those that take two.

Source of truth: section 2 of the manual, and the prototypes in ``linux/syscalls.h``.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING

if TYPE_CHECKING:
    from stockade.platforms.linux.syscalls import Arch

#: What a call does to a name. They are the words of reports, too.
WRITE, CREATE, DELETE, RENAME, METADATA, UNIX_CONNECT = (
    b"write",
    b"create",
    b"delete",
    b"rename",
    b"metadata",
    b"unix-connect",
)
#: Opening is one of the first two, or none, by its flags and by what is there.
OPEN = b"open"

NO_ARGUMENT = -1
AT_SYMLINK_NOFOLLOW = 0x100
AT_SYMLINK_FOLLOW = 0x400


class Use:
    """One name in a call.

    ``directory`` and ``path`` are indexes of arguments; without a path the first is the file itself. ``flags`` is the
    index of the flags that a last link depends on; ``follows`` is what holds without them. ``old`` is another name that
    must be there for the call to do anything.
    """

    __slots__ = ("directory", "does", "flags", "follows", "old", "path")

    def __init__(
        self,
        does: bytes,
        path: int,
        directory: int = NO_ARGUMENT,
        flags: int = NO_ARGUMENT,
        *,
        follows: bool = True,
        old: Use | None = None,
    ) -> None:
        """Take the indexes of the arguments."""
        self.old = old
        self.does = does
        self.path = path
        self.directory = directory
        self.flags = flags
        self.follows = follows

    def follows_links(self, arguments: tuple[int, ...]) -> bool:
        """Tell whether a link at the end of the path is followed."""
        if self.flags == NO_ARGUMENT or self.does == OPEN:
            return self.follows
        return not arguments[self.flags] & AT_SYMLINK_NOFOLLOW


def _on(does: bytes, *, follows: bool = True) -> tuple[Use, ...]:
    return (Use(does, 0, follows=follows),)


def _at(does: bytes, flags: int = NO_ARGUMENT, *, follows: bool = True) -> tuple[Use, ...]:
    return (Use(does, 1, 0, flags, follows=follows),)


_ON_FILE = (Use(METADATA, NO_ARGUMENT, 0),)

CHANGES: dict[str, tuple[Use, ...]] = {
    "open": (Use(OPEN, 0, NO_ARGUMENT, 1),),
    "openat": (Use(OPEN, 1, 0, 2),),
    "creat": (Use(OPEN, 0),),
    "truncate": _on(WRITE),
    "mkdir": _on(CREATE, follows=False),
    "mkdirat": _at(CREATE, follows=False),
    "mknod": _on(CREATE, follows=False),
    "mknodat": _at(CREATE, follows=False),
    "symlink": (Use(CREATE, 1, follows=False),),
    "symlinkat": (Use(CREATE, 2, 1, follows=False),),
    "link": (Use(CREATE, 1, follows=False, old=Use(CREATE, 0)),),
    "linkat": (Use(CREATE, 3, 2, follows=False, old=Use(CREATE, 1, 0)),),
    "rmdir": _on(DELETE, follows=False),
    "unlink": _on(DELETE, follows=False),
    "unlinkat": _at(DELETE, follows=False),
    "rename": (Use(RENAME, 0, follows=False), Use(RENAME, 1, follows=False)),
    "renameat": (Use(RENAME, 1, 0, follows=False), Use(RENAME, 3, 2, follows=False)),
    "renameat2": (Use(RENAME, 1, 0, follows=False), Use(RENAME, 3, 2, follows=False)),
    "chmod": _on(METADATA),
    "fchmod": _ON_FILE,
    "fchmodat": _at(METADATA),
    "fchmodat2": _at(METADATA, 3),
    "chown": _on(METADATA),
    "lchown": _on(METADATA, follows=False),
    "fchown": _ON_FILE,
    "fchownat": _at(METADATA, 4),
    "utime": _on(METADATA),
    "utimes": _on(METADATA),
    "futimesat": _at(METADATA),
    "utimensat": _at(METADATA, 3),
    "setxattr": _on(METADATA),
    "lsetxattr": _on(METADATA, follows=False),
    "fsetxattr": _ON_FILE,
    "setxattrat": _at(METADATA, 2),
    "removexattr": _on(METADATA),
    "lremovexattr": _on(METADATA, follows=False),
    "fremovexattr": _ON_FILE,
    "removexattrat": _at(METADATA, 2),
    "file_setattr": _at(METADATA, 4),
}
#: Calls that set the mode of what is there, and which argument that is; and calls that make something with a mode.
CHMODS = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
MAKERS = {"creat": 1, "mknod": 1, "mknodat": 2}
#: ``bind`` makes a name if its address holds a path.
BIND = "bind"
CONNECT = "connect"
#: Asked about only where it would make a unix socket that sends without connecting.
SOCKET = "socket"

#: All that changes files; and those of them that say where by a name.
OBSERVED = frozenset((*CHANGES, BIND))
NAMED = frozenset(name for name in OBSERVED if CHANGES.get(name) is not _ON_FILE)
DECIDED = frozenset((CONNECT, SOCKET))
#: The calls that list a directory, and where in an entry its name begins.
LISTS = {"getdents64": 19, "getdents": 18}


def chmods(arch: Arch) -> dict[int, tuple[Use, int]]:
    """Return the calls of an architecture that set a mode, by their numbers: what they change, and the argument."""
    numbers = arch.numbers()
    return {numbers[name]: (CHANGES[name][0], mode) for name, mode in CHMODS.items() if name in numbers}


def changes(arch: Arch) -> dict[int, tuple[Use, ...]]:
    """Return what the calls of an architecture change, by their numbers."""
    numbers = arch.numbers()
    return {numbers[name]: uses for name, uses in CHANGES.items() if name in numbers}
