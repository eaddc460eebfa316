"""The gitlinks in git's index: paths at which git on the host descends into another repository.

The rules:

- Versions 2, 3 and 4 are read as git reads them, entry by entry. Git takes an entry's length from its flags and checks
  neither the checksum nor the bits of a mode that it does not use. So a search for the usual bytes of a gitlink would
  miss some that git finds.
- The walk goes over blocks of entries. It keeps two sums of bits for each block and looks at single entries only in
  a block whose sums allow a gitlink: an index of ordinary files costs a tenth of a microsecond per entry.
- Git reads big indexes in blocks that an extension names (``IEOT``), and finds extensions by another (``EOIE``). Both
  must agree with the entries, or git could see other entries than we do.
- A split index (``link``) has a shared part in ``sharedindex.<hash>`` beside it. Its entries without a name stand for
  entries of the shared part.
- What no git writes is refused with ``GitIndexError``, and so is a name that git itself refuses to add (``..``,
  ``.git``, an absolute path). No bytes raise anything else.

Source of truth: gitformat-index(5), ``read-cache.c`` and ``split-index.c`` of git.
"""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING, Final, NoReturn
from stockade.errors import InvalidTextError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEADER: Final = 12
_MODE: Final = 26  # the byte of an entry that holds the kind of file, in its upper half
_KIND: Final = 0xF0
_GITLINK: Final = 0xE0
_TREE: Final = 0x40
_OWN: Final = 40  # bytes of an entry before its hash
_EXTENDED: Final = 0x4000
_LENGTH: Final = 0x0FFF
_BLOCK: Final = 256
_PLAIN, _EXTENSIONS, _COMPRESSED = 2, 3, 4
_WORD: Final = 64


class GitIndexError(InvalidTextError):
    """The bytes are no index that git writes."""


def _refuse(why: str) -> NoReturn:
    message = f"no git wrote this index: {why}"
    raise GitIndexError(message)


#: No honest repository has that many bytes in the names of its submodules.
_LONGEST_NAMES: Final = 1 << 22


def gitlinks(data: bytes, hash_size: int = 20, shared: Callable[[str], bytes | None] | None = None) -> tuple[str, ...]:
    """Return the paths of all gitlinks of an index, relative to its work tree.

    ``shared`` gives the content of the file with a name (``sharedindex.<hash>``) in the index's own directory. Paths of
    sparse directories, which stand for all below them, come with a slash at the end.
    """
    own = _Index(data, hash_size)
    found = own.links()
    link = own.extension(b"link")
    if link is not None and any(link[:hash_size]):
        name = f"sharedindex.{link[:hash_size].hex()}"
        base = None if shared is None else shared(name)
        if base is None:
            _refuse(f"its shared part {name} cannot be read")
        other = _Index(base, hash_size)
        if other.extension(b"link") is not None:
            _refuse("its shared part is split again")
        replaced = _replaced(link[hash_size:], other.count) if any(not path for _, path in found) else ()
        found = [(number, path or other.name(_nth(replaced, number))) for number, path in found] + other.links()
    return tuple(dict.fromkeys(_checked(path) for _, path in found))


class _Index:
    """One file, walked once when it is made."""

    def __init__(self, data: bytes, hash_size: int) -> None:
        self._data = data
        self._flags = _OWN + hash_size
        self._end = len(data) - hash_size
        if data[:4] != b"DIRC" or self._end < _HEADER:
            _refuse("it does not begin like an index")
        self._version = int.from_bytes(data[4:8], "big")
        self.count = int.from_bytes(data[8:12], "big")
        if not _PLAIN <= self._version <= _COMPRESSED:
            _refuse(f"version {self._version} is not known")
        if self.count * (self._flags + 2) > self._end:
            _refuse("it is shorter than its number of entries")
        self._starts: list[tuple[int, int]] = []
        self._suspects: list[int] = []
        try:
            self._rest = self._walk()
            self._extensions = dict(self._read_extensions(self._rest))
        except IndexError:
            _refuse("it ends in the middle of an entry")
        self._check_blocks(hash_size)

    def extension(self, name: bytes) -> bytes | None:
        return self._extensions.get(name)

    def links(self) -> list[tuple[int, str]]:
        """Return number and path of each gitlink; an entry of a split index may have no path."""
        found: list[tuple[int, str]] = []
        size = 0
        for number, name in self._named():
            if name is not None:
                # By a shared beginning a small index can have names without end.
                size += len(name)
                if size > _LONGEST_NAMES:
                    _refuse("the names of its gitlinks are too long")
                found.append((number, self._text(name)))
        return found

    def name(self, wanted: int) -> str:
        """Return the path of one entry."""
        self._suspects = list(range(len(self._starts)))
        for number, name in self._named(wanted):
            if number == wanted and name is not None:
                return self._text(name)
        _refuse("its shared part has no such entry")

    # Walking

    def _walk(self) -> int:
        """Note where each block of entries begins, and which blocks may hold gitlinks; return where entries end."""
        data, flags = self._data, self._flags
        at, previous, left = _HEADER, 0, self.count
        steps = [(flags + 2 + length + 8) & -8 for length in range(256)]
        while left:
            self._starts.append((at, previous))
            count = min(left, _BLOCK)
            start, modes, high = at, 0, 0
            if self._version != _COMPRESSED:
                for _ in range(count):
                    modes |= data[at + _MODE]
                    high |= data[at + flags]
                    at += steps[data[at + flags + 1]]
            # Stage bits (0x30) and "assume valid" (0x80) change no length; the others do.
            if self._version == _COMPRESSED or high & 0x4F:
                at, modes = start, 0
                for _ in range(count):
                    modes |= data[at + _MODE]
                    at, previous, _ = self._step(at, previous)
            # A gitlink has this bit, an ordinary file and a link do not.
            if modes & _TREE:
                self._suspects.append(len(self._starts) - 1)
            if at > self._end:
                _refuse("it ends in the middle of an entry")
            left -= count
        return at

    def _step(self, at: int, previous: int) -> tuple[int, int, tuple[int, int, int]]:
        """Return where the next entry begins, this one's length of name, and its kept, first and last byte."""
        data = self._data
        flags = data[at + self._flags] << 8 | data[at + self._flags + 1]
        start = at + self._flags + 2
        if flags & _EXTENDED:
            if self._version < _EXTENSIONS:
                _refuse("an entry has flags that its version does not have")
            start += 2
        kept = 0
        if self._version == _COMPRESSED:
            stripped, start = self._varint(start)
            if stripped > previous:
                _refuse("a name is shorter than what is taken from it")
            kept = previous - stripped
        length = flags & _LENGTH
        if length == _LENGTH:
            stop = data.find(0, start, self._end)
            if stop < 0:
                _refuse("a name has no end")
            length = stop - start + kept
        if length < kept:
            _refuse("a name is shorter than what it begins with")
        stop = start + length - kept
        if stop >= self._end:
            _refuse("it ends in the middle of an entry")
        # Git takes the name up to the first zero, wherever that is.
        if data[stop] or data.find(0, start, stop) >= 0:
            _refuse("a name does not end where its length says")
        following = stop + 1 if self._version == _COMPRESSED else at + ((start - at + length + 8) & -8)
        return following, length, (kept, start, stop)

    def _varint(self, at: int) -> tuple[int, int]:
        byte = self._data[at]
        value = byte & 0x7F
        for _ in range(4):
            at += 1
            if not byte & 0x80:
                return value, at
            byte = self._data[at]
            value = ((value + 1) << 7) + (byte & 0x7F)
        _refuse("a length is too long")

    def _named(self, wanted: int = -1) -> Iterator[tuple[int, bytes | None]]:
        """Yield number and name of the gitlinks and sparse directories, and of the entry that is wanted."""
        name, upto = b"", -1
        for block in self._suspects:
            number = block * _BLOCK
            if wanted >= 0 and self._version != _COMPRESSED and not number <= wanted < number + _BLOCK:
                continue
            if self._version == _COMPRESSED and upto != block:
                name = self._name_before(block, upto, name)
            at, previous = self._starts[block]
            for entry in range(number, min(number + _BLOCK, self.count)):
                kind = self._data[at + _MODE] & _KIND
                at, previous, (kept, start, stop) = self._step(at, previous)
                name = name[:kept] + self._data[start:stop]
                if wanted == entry or (wanted < 0 and kind == _GITLINK):
                    yield entry, name
                elif wanted < 0 and kind == _TREE:
                    yield entry, name.rstrip(b"/") + b"/"
            upto = block + 1

    def _name_before(self, block: int, upto: int, name: bytes) -> bytes:
        """Return the name before a block: in version 4 each name begins with part of the one before it."""
        begin = max(upto, 0)
        at, previous = self._starts[begin]
        while at < self._starts[block][0]:
            at, previous, (kept, start, stop) = self._step(at, previous)
            name = name[:kept] + self._data[start:stop]
        return name

    @staticmethod
    def _text(name: bytes) -> str:
        return os.fsdecode(name)

    # Extensions

    def _read_extensions(self, at: int) -> Iterator[tuple[bytes, bytes]]:
        while at + 8 <= self._end:
            size = int.from_bytes(self._data[at + 4 : at + 8], "big")
            if at + 8 + size > self._end:
                _refuse("an extension is longer than the file")
            yield self._data[at : at + 4], self._data[at + 8 : at + 8 + size]
            at += 8 + size

    def _check_blocks(self, hash_size: int) -> None:
        """Refuse an index whose tables of offsets differ from where the entries are."""
        end = self._data[self._end - hash_size - 12 : self._end]
        if end[:8] == b"EOIE" + (4 + hash_size).to_bytes(4, "big") and int.from_bytes(end[8:12], "big") != self._rest:
            _refuse("its table of extensions is false")
        table = self.extension(b"IEOT")
        if table is None:
            return
        expected, at, previous = 0, _HEADER, 0
        for offset in range(4, len(table) - 7, 8):
            start, count = (int.from_bytes(table[begin : begin + 4], "big") for begin in (offset, offset + 4))
            at, previous = self._advanced(expected)
            if at != start or count > self.count - expected:
                _refuse("its table of entries is false")
            if self._version == _COMPRESSED and count and self._step(at, previous)[2][0]:
                _refuse("its table of entries is false")
            expected += count
        if expected != self.count:
            _refuse("its table of entries is false")

    def _advanced(self, number: int) -> tuple[int, int]:
        """Return where an entry begins, and the length of the name before it."""
        if number >= self.count:
            return self._rest, 0
        at, previous = self._starts[number // _BLOCK]
        for _ in range(number % _BLOCK):
            at, previous, _ = self._step(at, previous)
        return at, previous


def _replaced(data: bytes, most: int) -> tuple[int, ...]:
    """Return the numbers of the entries that a split index replaces: the second of two EWAH bitmaps."""
    after = _bits(data, most)[1]
    return tuple(_bits(data[after:], most)[0])


def _bits(data: bytes, most: int) -> tuple[list[int], int]:
    """Read a bitmap in git's EWAH form; return the bits that are set, and where it ends."""
    words = int.from_bytes(data[4:8], "big")
    end = 8 + 8 * words + 4
    if len(data) < end:
        _refuse("its bitmap is cut off")
    found: list[int] = []
    at, position = 8, 0
    while at < end - 4:
        run = int.from_bytes(data[at : at + 8], "big")
        at += 8
        same, literal = (run >> 1 & 0xFFFF_FFFF) * _WORD, run >> 33
        if position + same > most + _WORD:
            _refuse("its bitmap is about more entries than there are")
        if run & 1:
            found += range(position, position + same)
        position += same
        for _ in range(min(literal, (end - 4 - at) // 8)):
            word = int.from_bytes(data[at : at + 8], "big")
            found += (position + bit for bit in range(_WORD) if word >> bit & 1)
            at += 8
            position += _WORD
        if position > most + _WORD:
            _refuse("its bitmap is about more entries than there are")
    return found, end


def _nth(numbers: tuple[int, ...], number: int) -> int:
    if number >= len(numbers):
        _refuse("an entry without a name replaces nothing")
    return numbers[number]


def _checked(path: str) -> str:
    """Refuse a path that git refuses to add: it would lead out of the work tree, or into a repository's own files."""
    if "\0" in path or any(
        name in ("", ".", "..") or name.casefold() == ".git" for name in path.removesuffix("/").split("/")
    ):
        _refuse("it names a path that no work tree has")
    return path
