from __future__ import annotations

from stockade.platforms.macos.attempt import Attempt


def test_a_path_as_the_kernel_has_it() -> None:
    assert Attempt("file-read-data", "/caf\u00e9/\udcff").raw_path == b"/caf\xc3\xa9/\xff"


def test_what_does_not_apply_is_empty() -> None:
    assert (
        repr(Attempt("mach-lookup", name="com.apple.logd")) == "Attempt(operation='mach-lookup', name='com.apple.logd')"
    )
