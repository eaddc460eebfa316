from __future__ import annotations

from stockade.sandbox.result import Result


def test_status_as_a_shell_gives_it() -> None:
    assert Result("x", 3).status == 3
    assert Result("x", None, 15).status == 143
    assert Result("x", 0).ok
    assert not Result("x", None, 9).ok


def test_text_of_any_bytes() -> None:
    done = Result("x", 0, stdout=b"\xffa", stderr=b"b")
    assert done.output == "\ufffda"
    assert done.errors == "b"
