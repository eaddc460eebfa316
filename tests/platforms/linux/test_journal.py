from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import UnavailableError
from stockade.platforms.linux import journal
from stockade.platforms.linux.journal import (
    Journal,
    Record,
    inode_of,
    new_temporary,
    nodes_entry,
    path_entry,
    record_name,
    temporary_entry,
)

if TYPE_CHECKING:
    from pathlib import Path

TEMPORARY = ".stockade-0123456789abcdef"
WHOLE = path_entry("/a") + temporary_entry(TEMPORARY) + nodes_entry(7, [".x", ".y"])
READ = Journal(("/a",), (TEMPORARY,), frozenset({(7, ".x"), (7, ".y")}))
names = st.binary(min_size=1, max_size=8).filter(lambda name: not {47, 0} & {*name} and name not in {b".", b".."})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", Journal(), id="nothing"),
        pytest.param(WHOLE, READ, id="all kinds"),
        pytest.param(WHOLE * 2, READ, id="twice"),
        pytest.param(b"\0N7/.x/.lo" + WHOLE, READ.but(nodes=READ.nodes | {(7, ".lo")}), id="cut short, then more"),
        pytest.param(b"\0Tx" + WHOLE, READ, id="a temporary name cut short"),
        pytest.param(path_entry("/a\nb\udcff "), Journal(("/a\nb\udcff ",)), id="odd bytes in a path"),
        pytest.param(b"\0Pa\0\0P\0", Journal(), id="no absolute path"),
        pytest.param(b"\0T.bashrc\0\0T/etc/.stockade-0123456789abcdef\0", Journal(), id="no temporary name"),
        pytest.param(b"\0T.stockade-0123456789abcde/\0", Journal(), id="a temporary name with a slash"),
        pytest.param(b"\0N7/./../\0\0N7\0\0N/.x\0\0N-7/.x\0\0N \xd9\xa3/.x\0", Journal(), id="no names, no numbers"),
        pytest.param(b"\0N" + b"9" * 5000 + b"/.x\0", Journal(), id="more digits than any inode has"),
    ],
)
def test_what_is_no_entry_is_skipped(data: bytes, expected: Journal) -> None:
    assert journal.read(data) == expected


@given(st.binary())
def test_no_bytes_raise_and_no_name_leads_elsewhere(data: bytes) -> None:
    read = journal.read(data)
    assert all(path.startswith("/") for path in read.paths)
    assert all("/" not in name and name not in {"", ".", ".."} for _, name in read.nodes)
    assert all(len(name) == len(TEMPORARY) and "/" not in name for name in read.temporaries)


@given(st.integers(0, 2**64 - 1), st.lists(names, min_size=1), st.binary().filter(lambda text: 0 not in text))
def test_what_was_written_is_read_whatever_was_cut_short_before(inode: int, raw: list[bytes], before: bytes) -> None:
    texts = [os.fsdecode(name) for name in raw]
    assert {(inode, text) for text in texts} <= journal.read(before + nodes_entry(inode, texts)).nodes


def test_temporary_names_are_read_as_such() -> None:
    name = new_temporary()
    assert journal.read(temporary_entry(name)) == Journal(temporaries=(name,))


@pytest.mark.parametrize(
    ("name", "inode"),
    [
        pytest.param(record_name(2049, 123456), 123456, id="ours"),
        pytest.param("0-ff", 255, id="no device"),
        pytest.param("-ff", None, id="device missing"),
        pytest.param("ff-", None, id="inode missing"),
        pytest.param("ff", None, id="one number"),
        pytest.param("1-2-3", None, id="three numbers"),
        pytest.param("1-0x2", None, id="not as we write it"),
        pytest.param("README", None, id="a word"),
    ],
)
def test_only_names_of_records_are_taken_for_such(name: str, inode: int | None) -> None:
    assert inode_of(name) == inode


def test_many_share_and_only_the_last_is_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "1-1")
    first, second = Record.shared(path), Record.shared(path)
    assert Record.exclusive(path) is None
    assert not first.is_alone()
    first.close()
    assert second.is_alone()
    second.remove()
    second.close()
    assert Record.exclusive(path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_lost_its_name_while_we_waited_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1-1"
    real = fcntl.flock
    races = iter([path])

    def flock(descriptor: int, operation: int) -> None:
        for victim in races:
            victim.unlink()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    record = Record.shared(str(path))
    record.append(WHOLE)
    assert path.read_bytes() == WHOLE
    assert record.read() == READ
    record.close()


def test_nobody_is_alone_with_a_record_that_lost_its_name(tmp_path: Path) -> None:
    record = Record.shared(str(tmp_path / "1-1"))
    record.remove()
    assert not record.is_alone()
    record.close()


def test_a_record_that_somebody_keeps_is_an_error_with_a_hint(tmp_path: Path) -> None:
    path = str(tmp_path / "1-1")
    Record.shared(path).close()
    holder = Record.exclusive(path)
    assert holder is not None
    with pytest.raises(UnavailableError) as caught:
        Record.shared(path, patience=0.01)
    assert caught.value.message == f"{path} cannot be locked"
    assert "/proc/locks" in caught.value.hint
    holder.close()


@pytest.mark.parametrize("kind", ["pipe", "directory", "link"])
def test_what_is_no_plain_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "1-1"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        (tmp_path / "file").touch()
        path.symlink_to("file")
    assert Record.exclusive(str(path)) is None
