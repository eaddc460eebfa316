from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.macos.tag import LONGEST, Tag, decode, encode, new_suffix


def _coded(data: bytes) -> str:
    return f"CMD64_{base64.b64encode(data).decode()}_END_s"


def test_a_tag_has_its_shape() -> None:
    assert encode(7, "make all", "s_SBX") == "CMD64_NyBtYWtlIGFsbA==_END_s_SBX"
    assert decode("CMD64_NyBtYWtlIGFsbA==_END_s_SBX", "s_SBX") == Tag(7, "make all")


def test_suffixes_differ() -> None:
    assert len({new_suffix() for _ in range(50)}) == 50
    assert new_suffix().endswith("_SBX")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(_coded(b"1 a"), Tag(1, "a"), id="whole"),
        pytest.param(f"Sandbox: sh(1) deny(1) file-read-data /x\n{_coded(b'1 a')}", Tag(1, "a"), id="at-the-end"),
        pytest.param(f"{_coded(b'1 a')}\n", Tag(1, "a"), id="with-a-line-end"),
        pytest.param(f"/CMD64_x_END_s {_coded(b'2 b')}", Tag(2, "b"), id="after-one-that-was-forged"),
        pytest.param(f"{_coded(b'1 a')}x", None, id="another-session"),
        pytest.param("CMD64_MSBh", None, id="cut-off"),
        pytest.param("CMD64_!_END_s", None, id="no-base64"),
        pytest.param(_coded(b"a b"), None, id="no-number"),
        pytest.param(_coded("\u00b2 b".encode()), None, id="no-plain-number"),
        pytest.param(_coded(b"1" * 5000), None, id="no-reasonable-number"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_finding_tags(text: str, found: Tag | None) -> None:
    assert decode(text, "s") == found


@given(st.integers(0, 10**9), st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_coded_is_found(ticket: int, line: str) -> None:
    found = decode(encode(ticket, line, "s"), "s")
    assert found is not None
    assert found.ticket == ticket
    assert found.line.rstrip("\ufffd") == line.encode()[:LONGEST].decode(errors="ignore").rstrip("\ufffd")


@given(st.text())
def test_nothing_is_raised(text: str) -> None:
    assert decode(f"CMD64_{text}_END_s", "s") is None or text
