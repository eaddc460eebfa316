from __future__ import annotations

import re
from pathlib import Path

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.linux.syscalls import AARCH64, ARCHITECTURES, X86_64, Arch, arch_of

LAST = 470
X86_64_HEADERS = ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h")
GENERIC_HEADERS = ("asm-generic/unistd.h",)


@pytest.mark.parametrize(
    ("arch", "name", "number"),
    [
        pytest.param(arch, name, number, id=f"{arch.name} {name}")
        for arch, known in (
            (X86_64, {"read": 0, "openat": 257, "clone": 56, "execve": 59, "seccomp": 317, "rseq": 334, "uprobe": 336}),
            (AARCH64, {"io_setup": 0, "openat": 56, "read": 63, "clone": 220, "execve": 221, "seccomp": 277}),
            (X86_64, {"io_uring_setup": 425, "clone3": 435, "mseal": 462, "open_tree_attr": 467, "listns": 470}),
            (AARCH64, {"io_uring_setup": 425, "clone3": 435, "mseal": 462, "open_tree_attr": 467, "listns": 470}),
        )
        for name, number in known.items()
    ],
)
def test_known_numbers(arch: Arch, name: str, number: int) -> None:
    assert arch.numbers()[name] == number


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=repr)
def test_numbers_are_unique_ascending_and_end_with_the_last(arch: Arch) -> None:
    numbers = list(arch.numbers().values())
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == LAST


def header(names: tuple[str, ...]) -> str:
    found = [path for path in (Path("/usr/include", name) for name in names) if path.exists()]
    if not found:
        pytest.skip("the kernel headers are not installed (linux-libc-dev)")
    return found[0].read_text()


def test_the_x86_64_table_is_that_of_the_kernel_headers() -> None:
    defined = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", header(X86_64_HEADERS))}
    ours = X86_64.numbers()
    shared = {name: number for name, number in defined.items() if number <= LAST}
    assert {name: ours.get(name) for name in shared} == shared


def test_the_aarch64_table_is_that_of_the_generic_header() -> None:
    """One header serves 32 and 64 bits; what is of 32 bits only is left out."""
    text = header(GENERIC_HEADERS)
    defined = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    spelt = {"fstatat": "newfstatat"}
    not_on_aarch64 = {"arch_specific_syscall", "syscalls", "sync_file_range2"}
    only_32_bit = range(403, 424)
    expected = {
        spelt.get(name, name): number
        for name, number in defined.items()
        if number <= LAST and number not in only_32_bit and name not in not_on_aarch64
    }
    ours = AARCH64.numbers()
    assert {name: ours.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("machine", "arch"), [("x86_64", X86_64), ("amd64", X86_64), ("aarch64", AARCH64), ("arm64", AARCH64)]
)
def test_machines(machine: str, arch: Arch) -> None:
    assert arch_of(machine) is arch


@pytest.mark.parametrize("machine", ["", "i686", "armv7l", "riscv64"])
def test_other_machines_have_no_filter(machine: str) -> None:
    with pytest.raises(UnavailableError, match="no system call filter") as caught:
        arch_of(machine)
    assert "x86_64" in caught.value.hint
