from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.git_config import GitSetting, read

if TYPE_CHECKING:
    from pathlib import Path

# Git reads no config but the one that it is asked about, and looks for no repository.
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_DIR": os.devnull, "LC_ALL": "C"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"", (), id="nothing"),
        pytest.param(b"[core]\n\tbare = false\n", (GitSetting("core", "", "bare", "false"),), id="plain"),
        pytest.param(b"[CoRe]BARE\n", (GitSetting("core", "", "bare", None),), id="case-and-no-value"),
        pytest.param(b"[core]\nbare=", (GitSetting("core", "", "bare", ""),), id="an-empty-value-at-the-end"),
        pytest.param(
            b'[Remote "Ori\\"gin"]\nurl = a',
            (GitSetting("remote", 'Ori"gin', "url", "a", has_subsection=True),),
            id="a-subsection-keeps-its-case",
        ),
        pytest.param(
            b"[Branch.Main.X]\nremote = o",
            (GitSetting("branch", "main.x", "remote", "o", has_subsection=True),),
            id="the-old-form-loses-its-case",
        ),
        pytest.param(
            b'[core ""]\na = b', (GitSetting("core", "", "a", "b", has_subsection=True),), id="an-empty-subsection"
        ),
        pytest.param(b"a = b", (GitSetting("", "", "a", "b"),), id="no-section"),
        pytest.param(
            b'[a]b = " x # y " ; z "\nc = d\\\n  e',
            (GitSetting("a", "", "b", " x # y "), GitSetting("a", "", "c", "d  e")),
            id="quotes-comments-and-a-second-line",
        ),
        pytest.param(b'[a]b = \\t\\n\\b\\\\\\"', (GitSetting("a", "", "b", '\t\n\b\\"'),), id="escapes"),
        pytest.param(b"\xef\xbb\xbf[a]\r\nb = c\r\n", (GitSetting("a", "", "b", "c"),), id="mark-and-dos"),
        pytest.param(b"[a]b = \xff", (GitSetting("a", "", "b", "\udcff"),), id="bytes-that-are-no-utf-8"),
        pytest.param(b"[a]b = x\0y", (GitSetting("a", "", "b", "x"),), id="nul-ends-a-value"),
    ],
)
def test_what_is_read(text: bytes, expected: tuple[GitSetting, ...]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (GitSetting("core", "", "bare", None), "core.bare"),
        (GitSetting("core", "", "bare", None, has_subsection=True), "core..bare"),
        (GitSetting("remote", "a.b", "url", None, has_subsection=True), "remote.a.b.url"),
        (GitSetting("", "", "key", None), "key"),
        (GitSetting("", "", "key", None, has_subsection=True), "..key"),
    ],
)
def test_names(setting: GitSetting, name: str) -> None:
    assert setting.name == name


def _gits_view(text: bytes, directory: Path) -> list[tuple[bytes, bytes | None]] | None:
    """Return names and values as the real git reads them, ``None`` if it refuses the file."""
    file = directory / "config"
    file.write_bytes(text)
    command = ["git", "config", "--file", str(file), "--list", "-z"]
    done = subprocess.run(command, env=os.environ | ALONE, cwd=directory, capture_output=True, check=False)
    if done.returncode != 0:
        assert b"bad config" in done.stderr
        return None
    parts = [part.partition(b"\n") for part in done.stdout.split(b"\0")[:-1]]
    return [(name, value if newline else None) for name, newline, value in parts]


def _our_view(text: bytes) -> list[tuple[bytes, bytes | None]] | None:
    try:
        found = read(text)
    except InvalidTextError:
        return None
    return [(os.fsencode(s.name), None if s.value is None else os.fsencode(s.value)) for s in found]


def _same_spaces(view: list[tuple[bytes, bytes | None]] | None) -> object:
    # Git before 2.45 makes spaces of the white space inside a value; later it stays. Both keep the number.
    table = bytes.maketrans(b"\t\r", b"  ")
    return view and [(name, value if value is None else value.translate(table)) for name, value in view]


BAD = (b"[", b"[a", b"[]", b"[ ]", b"[a", b'[a "b]', b'[a "b', b'[a "b" ]', b"[a b]", b'[a"b"]', b"[a_b]x", b"[a\n]")
ODD = (
    *BAD,
    b"\xef\xbb\xbf",
    b"\xef\xbb",
    b"\xef",
    b"\xef\xbbx",
    b"\xef\xbb\xbfx",
    b"\xff\xfe[\0a\0]\0",
    b"[a]b c",
    b"[a]b\\c = 1",
    b"[a]1b = 2",
    b"[a]-b = 2",
    b"[a]b- = 2",
    b"[a]b_c = 2",
    b"[a]b = \\x",
    b"[a]b = \\",
    b"[a]b = \\\n",
    b"[a]b = x\\\r\n y",
    b'[a]b = "x',
    b'[a]b = "x\ny"',
    b'[a]b = "x\\\ny"',
    b'[a]b = x" y "z',
    b'[a]b = "" x',
    b"[a]b = x \t y\t",
    b"[a]b = x\ry\r\r\n",
    b"[a]b\r\n",
    b"[a]b\r= c",
    b"[a]b\v= c",
    b"[a]b = \v\fc\v",
    b"\v[a]",
    b"[a]b # c",
    b"[a]b = c # d \\\ne = f",
    b"[a]b = c ; d",
    b"[a]b = c;d",
    b'[a "x\\ny"]b',
    b'[a "x\0y"]b = c',
    b'[a "x.y\0z"]b = c',
    b'[a "x\ry"]b = c',
    b'[a \r\t"x"]b = c',
    b"[.]a",
    b"[.a]b",
    b"[a.]b",
    b'[ "x"]b',
    b'[a.b "C.D"]e',
    b"[a][b]c",
    b"[a]b = c [d]",
    b"# [a",
    b";\n\n\n[a]",
    b"[a]\nb",
    b"[a]\nb=c=d",
    b"[a]=c",
    b"\0",
    b"[a]b\0 = c",
    b"[a]\xe9 = c",
)


@pytest.mark.parametrize("text", [pytest.param(text, id=ascii(text)) for text in ODD])
def test_odd_texts_are_read_as_git_reads_them(text: bytes, tmp_path: Path) -> None:
    assert _same_spaces(_our_view(text)) == _same_spaces(_gits_view(text, tmp_path))


PIECES = (
    b"[",
    b"]",
    b'"',
    b"\\",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"=",
    b"#",
    b";",
    b".",
    b"-",
    b"a",
    b"B",
    b"9",
    b"\0",
    b"n",
)
TEXTS = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from((*PIECES, b"[a]", b'[a "b"]', b"\nkey = ", b"\xff", b"\xef\xbb\xbf")), max_size=20).map(
        b"".join
    ),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(TEXTS)
def test_random_texts_are_read_as_git_reads_them(tmp_path: Path, text: bytes) -> None:
    assert _same_spaces(_our_view(text)) == _same_spaces(_gits_view(text, tmp_path))


@settings(max_examples=1000)
@given(TEXTS)
@example(b"[a]b = " + b'"' * 10_000)
def test_no_bytes_raise_anything_else(text: bytes) -> None:
    with contextlib.suppress(InvalidTextError):
        assert all(isinstance(setting, GitSetting) for setting in read(text))


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(InvalidTextError, match="line 3 of a git config") as refused:
        read(b"[a]\nb = c\n= d\n")
    assert refused.value.hint
