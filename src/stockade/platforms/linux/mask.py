"""What stands in the place of what may not be read: a file system that refuses, and says what it refused.

All masks of a jail are entries in the root of one file system, and each is bound over the place that it hides. A
mask has one entry for a directory and one for a file, for what is there may change until it is covered. In a mask
stand only the directories that lead to places which are shown again, and what those are mounted on.

Rules: pure; every answer that is not a refusal lets nothing be seen but that the mask is there; everything else is
refused with EACCES, and the kernel never remembers that, so every attempt is seen. Never ENOSYS to open, opendir or
access, for the kernel takes that as leave. Everything belongs to nobody, on a read-only mount: so the kernel refuses
changes by itself. A masked file has the mode of a program, since else the kernel would refuse to run it without asking.
"""

from __future__ import annotations

import stat
from errno import EACCES, ENOSYS

from stockade.platforms.linux import fuse
from stockade.platforms.linux.fuse import Attributes, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_NO_ACCESS = 0
_PASS_ONLY = 0o111
#: What is told of masks never changes, so that a way through one costs nothing after the first time.
_FOREVER = 1 << 30
#: Nothing is seen by these, and the kernel then has answers of its own.
_UNKNOWN = frozenset({fuse.GETXATTR, fuse.LISTXATTR, fuse.STATX})


class Node:
    """One file or directory of the file system, and the path that it stands for."""

    __slots__ = ("children", "mode", "number", "path")

    def __init__(self, number: int, path: bytes, mode: int) -> None:
        """Begin without children."""
        self.number = number
        self.path = path
        self.mode = mode
        self.children: dict[bytes, Node] = {}


class Answer:
    """What the kernel is told, if it waits for anything, and the path that was refused, if any was."""

    __slots__ = ("refused", "reply")

    def __init__(self, reply: bytes | None, refused: bytes = b"") -> None:
        """Take no path where nothing was refused."""
        self.reply = reply
        self.refused = refused


class Masks:
    """The file system."""

    def __init__(self, time: int) -> None:
        """Begin with its root; everything is of one time."""
        self.time = time
        self.nodes: dict[int, Node] = {}
        self.root = self.new(b"", stat.S_IFDIR | _PASS_ONLY)

    @classmethod
    def over(
        cls,
        hidden: Iterable[tuple[int, bytes]],
        shown: Iterable[tuple[int, bytes]],
        is_directory: Callable[[bytes], bool],
        time: int,
    ) -> Masks:
        """Make masks for numbered places, with ways to those that are shown again inside a mask."""
        masks = cls(time)
        directories = {index: masks.add(index, path) for index, path in hidden}
        for index, path in shown:
            masks.lead(directories[index], path, is_directory=is_directory(path))
        return masks

    def new(self, path: bytes, mode: int) -> Node:
        """Make a node that has no name yet."""
        node = self.nodes[len(self.nodes) + 1] = Node(len(self.nodes) + 1, path, mode)
        return node

    def add(self, index: int, path: bytes) -> Node:
        """Make the mask of a place, once for each kind; return that of a directory."""
        self.root.children[name_of(index, directory=False)] = self.new(path, stat.S_IFREG | _PASS_ONLY)
        directory = self.root.children[name_of(index, directory=True)] = self.new(path, stat.S_IFDIR | _NO_ACCESS)
        return directory

    def lead(self, mask: Node, path: bytes, *, is_directory: bool) -> None:
        """Make the way through a mask to a place in it."""
        mask.mode = stat.S_IFDIR | _PASS_ONLY
        node = mask
        *steps, last = path[len(mask.path) :].strip(b"/").split(b"/")
        for step in steps:
            node = self.child(node, step, stat.S_IFDIR | _PASS_ONLY)
        self.child(node, last, stat.S_IFDIR | _PASS_ONLY if is_directory else stat.S_IFREG | _NO_ACCESS)

    def child(self, node: Node, name: bytes, mode: int) -> Node:
        """Return what has a name in a directory; it is made if it is not there."""
        if name not in node.children:
            node.children[name] = self.new(_joined(node.path, name), mode)
        return node.children[name]

    def answer(self, request: Request) -> Answer:
        """Answer a request of the kernel."""
        if request.opcode == fuse.LOOKUP:
            return self.look_up(request)
        if request.opcode in fuse.UNANSWERED:
            return Answer(None)
        permitted = self.permit(request)
        if permitted is not None:
            return Answer(permitted)
        node = self.nodes.get(request.node)
        return Answer(fuse.error(request.unique, EACCES), b"" if node is None else node.path)

    def permit(self, request: Request) -> bytes | None:
        """Answer what shows nothing."""
        if request.opcode == fuse.GETATTR:
            node = self.nodes.get(request.node)
            return None if node is None else fuse.status(request.unique, self.attributes(node), _FOREVER)
        if request.opcode in _UNKNOWN:
            return fuse.error(request.unique, ENOSYS)
        if request.opcode == fuse.DESTROY:
            return fuse.error(request.unique, 0)
        if request.opcode == fuse.STATFS:
            return fuse.space(request.unique)
        return fuse.init(request) if request.opcode == fuse.INIT else None

    def look_up(self, request: Request) -> Answer:
        """Answer what a name leads to."""
        node, name = self.nodes.get(request.node), request.name
        found = None if node is None else node.children.get(name)
        if found is not None:
            return Answer(fuse.entry(request.unique, self.attributes(found), _FOREVER))
        reply = fuse.error(request.unique, EACCES)
        return Answer(reply) if node is None or node is self.root else Answer(reply, _joined(node.path, name))

    def attributes(self, node: Node) -> Attributes:
        """Return what is told of a node."""
        return Attributes(node.number, node.mode, self.time)


def name_of(index: int, *, directory: bool) -> bytes:
    """Name the mask of a place in the root of the file system."""
    return b"d%d" % index if directory else b"f%d" % index


def _joined(path: bytes, name: bytes) -> bytes:
    return b"%b/%b" % (path.rstrip(b"/"), name)
