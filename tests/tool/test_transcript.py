from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from stockade.errors import UnavailableError
from stockade.tool.transcript import Transcript


def written(folder: Path, *pieces: bytes, **options: int) -> Transcript:
    """A transcript of pieces, taken one by one, as a loop would."""

    async def main() -> Transcript:
        transcript = Transcript(str(folder), None, **options)
        ours = os.dup(transcript.writer)
        transcript.listen(asyncio.get_running_loop())
        for piece in pieces:
            await asyncio.to_thread(os.write, ours, piece)
            await asyncio.sleep(0)
        os.close(ours)
        transcript.finish()
        transcript.finish()
        return transcript

    return asyncio.run(main())


def test_a_short_output_needs_no_file(tmp_path: Path) -> None:
    transcript = written(tmp_path, b"abc", b"def")
    assert (transcript.text(), transcript.size, transcript.file, transcript.notes) == ("abcdef", 6, "", ())
    assert [*tmp_path.iterdir()] == []


def test_a_long_output_is_whole_in_its_file(tmp_path: Path) -> None:
    transcript = written(tmp_path, b"0123456789" * 3, b"x", b"abcdefghij", shown=20)
    file = Path(transcript.file)
    assert file.read_bytes() == b"0123456789" * 3 + b"xabcdefghij"
    assert file.stat().st_mode & 0o777 == 0o600
    assert transcript.text().startswith("0123456789\n[... 21 bytes in the middle are left out; all of it is in ")
    assert transcript.text().endswith("\nabcdefghij")


def test_a_file_has_its_bound_too(tmp_path: Path) -> None:
    transcript = written(tmp_path, b"0123456789" * 3, b"abc", shown=20, kept=25)
    assert Path(transcript.file).read_bytes() == b"0123456789" * 2 + b"01234"
    assert transcript.notes == ("the file of the output holds its first 25 bytes alone",)
    assert transcript.size == 33


def test_a_binary_output_is_kept(tmp_path: Path) -> None:
    transcript = written(tmp_path, b"\0\1")
    assert Path(transcript.file).read_bytes() == b"\0\1"


def test_a_directory_that_is_gone_costs_the_file_alone(tmp_path: Path) -> None:
    transcript = written(tmp_path / "gone", b"x" * 30, shown=20)
    assert transcript.file == ""
    assert transcript.notes == ("the whole output is not kept: No such file or directory",)
    assert transcript.size == 30


def test_what_is_taken_is_shown_once_and_kept_whole(tmp_path: Path) -> None:
    async def main() -> str:
        transcript = Transcript(str(tmp_path))
        ours = os.dup(transcript.writer)
        transcript.listen(asyncio.get_running_loop())
        shown = []
        for piece in (b"", b"one\n", b"two\n", b""):
            os.write(ours, piece)
            await asyncio.sleep(0.01)
            shown.append(transcript.take())
        assert shown == ["", "one\n", "two\n", ""]
        os.close(ours)
        transcript.finish()
        return transcript.file

    assert Path(asyncio.run(main())).read_bytes() == b"one\ntwo\n"


def test_whoever_listens_hears_all_and_breaks_nothing(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def listener(piece: bytes) -> None:
        heard.append(piece)
        if len(heard) == 2:
            message = "enough\x1b"
            raise ValueError(message)

    async def main() -> Transcript:
        transcript = Transcript(str(tmp_path), listener)
        ours = os.dup(transcript.writer)
        transcript.listen(asyncio.get_running_loop())
        for piece in (b"a", b"b", b"c"):
            os.write(ours, piece)
            await asyncio.sleep(0.01)
        os.close(ours)
        transcript.finish()
        return transcript

    transcript = asyncio.run(main())
    assert heard == [b"a", b"b"]
    assert transcript.text() == "abc"
    assert transcript.notes == ("the listener failed: ValueError: enough\\x1b",)


def test_no_descriptors_left_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> tuple[int, int]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe", refuse)
    with pytest.raises(UnavailableError, match="Too many open files"):
        Transcript(str(tmp_path))


def test_a_name_that_is_there_already_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"\0" * size)
    victim, link = tmp_path / "victim", tmp_path / f"output-{'00' * 6}.txt"
    victim.write_text("unchanged")
    for make in (link.hardlink_to, link.symlink_to):
        make(victim)
        transcript = written(tmp_path, b"x" * 30, shown=20)
        assert transcript.notes == ("the whole output is not kept: File exists",)
        link.unlink()
    assert victim.read_text() == "unchanged"


def test_it_knows_whether_all_of_it_is_shown(tmp_path: Path) -> None:
    assert not written(tmp_path, b"abc", shown=10).is_cut
    assert written(tmp_path, b"x" * 100, shown=10).is_cut
    assert written(tmp_path, b"a\0b", shown=10).is_cut
