"""``stockade.policy.git_index``: the gitlinks of an index are those that git itself sees."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.git_index import GitIndexError, gitlinks

if TYPE_CHECKING:
    from pathlib import Path

GITLINK, FILE, LINK, TREE = 0o160000, 0o100644, 0o120000, 0o040000


def entry(name: bytes, mode: int = FILE, *, size: int = 20, flags: int = 0, extended: bool = False) -> bytes:
    """Return an entry of version 2 or 3."""
    length = min(len(name), 0xFFF) | flags | (0x4000 if extended else 0)
    made = bytes(24) + mode.to_bytes(4, "big") + bytes(12) + b"\xee" * size + length.to_bytes(2, "big")
    made += (b"\0\0" if extended else b"") + name
    return made + bytes(8 - len(made) % 8)


def compressed(strip: int, rest: bytes, length: int, mode: int = FILE) -> bytes:
    """Return an entry of version 4."""
    head = bytes(24) + mode.to_bytes(4, "big") + bytes(12) + b"\xee" * 20
    return head + length.to_bytes(2, "big") + bytes([strip]) + rest + b"\0"


def index(*entries: bytes, version: int = 2, count: int = -1, size: int = 20, extensions: bytes = b"") -> bytes:
    """Return a whole index."""
    number = len(entries) if count < 0 else count
    head = b"DIRC" + version.to_bytes(4, "big") + number.to_bytes(4, "big")
    return head + b"".join(entries) + extensions + bytes(size)


FILES = [entry(b"f%04d" % number) for number in range(600)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(index(), (), id="nothing"),
        pytest.param(index(*FILES), (), id="files"),
        pytest.param(index(entry(b"a", LINK), entry(b"b", GITLINK)), ("b",), id="one"),
        pytest.param(index(*FILES, entry(b"z/y/x", GITLINK), entry(b"zz")), ("z/y/x",), id="in the last block"),
        pytest.param(index(entry(b"a", 0o7_160777)), ("a",), id="bits of a mode that git does not use"),
        pytest.param(index(entry(b"a", 0x7000_0000 | GITLINK)), ("a",), id="upper bits of a mode"),
        pytest.param(index(entry(b"a" * 300), entry(b"b" * 300, GITLINK)), ("b" * 300,), id="long names"),
        pytest.param(index(entry(b"a/" * 2100 + b"b", GITLINK)), ("a/" * 2100 + "b",), id="longer than its flags say"),
        pytest.param(index(entry(b"a", GITLINK, flags=0x2000)), ("a",), id="in a conflict"),
        pytest.param(index(entry(b"a"), entry(b"b", GITLINK, flags=0x8000)), ("b",), id="assumed valid"),
        pytest.param(index(entry(b"a", GITLINK, extended=True), version=3), ("a",), id="version 3"),
        pytest.param(
            index(
                compressed(0, b"one/two", 7),
                compressed(3, b"sub", 7, GITLINK),
                compressed(0, b"/x", 9, GITLINK),
                version=4,
            ),
            ("one/sub", "one/sub/x"),
            id="version 4",
        ),
        pytest.param(index(entry(b"\xff\xfe", GITLINK)), ("\udcff\udcfe",), id="a name that is no UTF-8"),
        pytest.param(index(entry(b"d/", TREE)), ("d/",), id="a sparse directory"),
    ],
)
def test_gitlinks(data: bytes, expected: tuple[str, ...]) -> None:
    assert gitlinks(data) == expected


def test_a_repository_with_longer_hashes() -> None:
    data = index(entry(b"a", size=32), entry(b"b", GITLINK, size=32), size=32)

    assert gitlinks(data, 32) == ("b",)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"DIRC", id="cut off"),
        pytest.param(b"dirc" + index(entry(b"a"))[4:], id="another kind"),
        pytest.param(index(entry(b"a"), version=5), id="another version"),
        pytest.param(index(entry(b"a"), count=2), id="more entries than there are"),
        pytest.param(index(entry(b"a"), count=2**32 - 1), id="very many entries"),
        pytest.param(index(entry(b"a", extended=True)), id="flags of another version"),
        pytest.param(index(entry(b"a" * 100))[:120], id="a name that is cut off"),
        pytest.param(index(compressed(3, b"a", 1), version=4), id="less than nothing is kept"),
        pytest.param(index(compressed(0, b"abc", 3), compressed(0, b"", 1), version=4), id="shorter than what is kept"),
        pytest.param(index(entry(b"../a", GITLINK)), id="above the work tree"),
        pytest.param(index(entry(b"/a", GITLINK)), id="absolute"),
        pytest.param(index(entry(b"a/.GIT/b", GITLINK)), id="inside a repository"),
        pytest.param(index(entry(b"", GITLINK)), id="no name"),
        pytest.param(index(entry(b"sub\0rest", GITLINK)), id="a name that ends before its end"),
        pytest.param(index(entry(b"a"), extensions=b"TREE\0\0\1\0"), id="an extension that is too long"),
        pytest.param(
            index(entry(b"a"), extensions=b"IEOT\0\0\0\x0c\0\0\0\1\0\0\0\x14\0\0\0\1"), id="a false table of entries"
        ),
        pytest.param(
            index(entry(b"a"), extensions=b"EOIE\0\0\0\x18\0\0\0\x14" + bytes(20)), id="a false table of extensions"
        ),
        pytest.param(index(extensions=b"link\0\0\0\x14" + b"\1" * 20), id="a shared part that is not there"),
    ],
)
def test_what_git_does_not_write_is_refused(data: bytes) -> None:
    with pytest.raises(GitIndexError):
        gitlinks(data)


@given(st.binary(), st.integers(2, 5), st.integers(0, 4), st.sampled_from([20, 32]))
def test_no_bytes_raise_anything_else(tail: bytes, version: int, count: int, size: int) -> None:
    data = index(tail, version=version, count=count, size=size)
    for given_bytes in (tail, data, index(entry(b"a", GITLINK), tail, version=version, count=count)):
        try:
            gitlinks(given_bytes, size, lambda _: tail)
        except GitIndexError:
            continue


@given(st.binary(min_size=1, max_size=40), st.integers(0, 400))
def test_no_changed_byte_raises_anything_else(change: bytes, at: int) -> None:
    data = index(*FILES[:3], entry(b"s", GITLINK), extensions=b"link\0\0\0\x2c" + b"\1" * 20 + bytes(24))
    spoilt = data[:at] + change + data[at + len(change) :]
    try:
        gitlinks(spoilt, shared=lambda _: spoilt)
    except GitIndexError:
        return


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "advice.addEmbeddedRepo=false")
    return subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    for name in ("sub", "deep/a/b/c"):
        (tmp_path / name).mkdir(parents=True)
        git(tmp_path / name, "init", "-q")
        git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", "x")
    for number in range(300):
        (tmp_path / f"file{number:03}").write_text("")
    git(tmp_path, "add", ".")
    return tmp_path


def seen(root: Path) -> tuple[str, ...]:
    store = root / ".git"
    return tuple(sorted(gitlinks((store / "index").read_bytes(), shared=lambda name: (store / name).read_bytes())))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(["update-index", "--index-version=2"], id="version 2"),
        pytest.param(["add", "-N", "extra"], id="version 3"),
        pytest.param(["update-index", "--index-version=4"], id="version 4"),
        pytest.param(["update-index", "--split-index"], id="split"),
    ],
)
def test_what_git_writes_is_read_as_git_reads_it(repository: Path, line: list[str]) -> None:
    (repository / "extra").write_text("")
    git(repository, *line)

    assert seen(repository) == ("deep/a/b/c", "sub")


def test_a_file_that_a_split_index_replaces_by_a_repository(repository: Path) -> None:
    git(repository, "update-index", "--split-index")
    (repository / "file007").unlink()
    (repository / "sub").rename(repository / "file007")
    git(repository, "add", "file007")

    assert "file007" in seen(repository)


PLAIN = """
import os, sys
from stockade.policy.git_index import gitlinks
from stockade.policy.git_judgement import linked_directory
(name,) = gitlinks(sys.stdin.buffer.read())
sys.stdout.buffer.write(os.fsencode(name) + b" " + os.fsencode(linked_directory(b"gitdir: \\xc3\\xa9", "/x")))
"""


def test_names_are_those_of_the_disk_whatever_the_locale(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    entry = b"160000 %b\t\xc3\xa9\n" % (b"1" * 40)
    subprocess.run(["git", "update-index", "--index-info"], input=entry, cwd=tmp_path, check=True)
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    index = (tmp_path / ".git/index").read_bytes()
    done = subprocess.run([sys.executable, "-c", PLAIN], input=index, env=locale, capture_output=True, check=True)
    assert done.stdout == b"\xc3\xa9 /x/\xc3\xa9"
