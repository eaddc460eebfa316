from __future__ import annotations

import pytest

from stockade.platforms.linux import calls
from stockade.platforms.linux.syscalls import AARCH64, ARCHITECTURES, X86_64, Arch

#: Calls that change a file and are not asked about, each with its reason.
UNASKED = {
    "write": "the file was opened for it",
    "ftruncate": "the file was opened for it",
    "fallocate": "the file was opened for it",
    "openat2": "refused whole",
    "open_by_handle_at": "refused whole",
}


def test_every_name_is_one_of_the_kernels() -> None:
    known = {name for arch in ARCHITECTURES for name in arch.numbers()}
    assert {*calls.OBSERVED, *calls.DECIDED} <= known
    assert not calls.OBSERVED & UNASKED.keys()


@pytest.mark.parametrize("arch", [pytest.param(X86_64, id="x86_64"), pytest.param(AARCH64, id="aarch64")])
def test_numbers_are_those_of_the_architecture(arch: Arch) -> None:
    found = calls.changes(arch)
    assert found[arch.numbers()["openat"]] is calls.CHANGES["openat"]
    assert len(found) == sum(name in arch.numbers() for name in calls.CHANGES)


@pytest.mark.parametrize(
    ("name", "arguments", "follows"),
    [
        pytest.param("chmod", (0,) * 6, True, id="chmod"),
        pytest.param("lchown", (0,) * 6, False, id="lchown"),
        pytest.param("fchownat", (0, 0, 0, 0, 0, 0), True, id="fchownat"),
        pytest.param("fchownat", (0, 0, 0, 0, 0x100, 0), False, id="fchownat of a link"),
        pytest.param("utimensat", (0, 0, 0, 0x100, 0, 0), False, id="utimensat of a link"),
        pytest.param("unlinkat", (0, 0, 0x200, 0, 0, 0), False, id="unlinkat"),
    ],
)
def test_a_last_link_is_followed_or_not(name: str, arguments: tuple[int, ...], *, follows: bool) -> None:
    assert calls.CHANGES[name][0].follows_links(arguments) is follows
