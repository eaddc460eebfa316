"""Every request in the kernel's headers is either kept or refused, for a reason that the module gives."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack
from typing import TypeAlias

import pytest

from stockade.platforms.linux import seccomp
from stockade.platforms.linux.seccomp import Features
from stockade.platforms.linux.syscalls import ARCHITECTURES, Arch
from stockade.platforms.linux.terminal_calls import KEPT

Emulate: TypeAlias = Callable[[bytes, bytes], tuple[int, int]]

ALLOW, EPERM = 0x7FFF_0000, 0x0005_0001
GARBAGE = 0xDEAD_BEEF_0000_0000
#: ``asm-generic/ioctls.h``, without those that are kept; written by hand from the header.
REFUSED = {
    "TIOCEXCL": 0x540C,
    "TIOCNXCL": 0x540D,
    "TIOCSTI": 0x5412,
    "TIOCMBIS": 0x5416,
    "TIOCMBIC": 0x5417,
    "TIOCMSET": 0x5418,
    "TIOCGSOFTCAR": 0x5419,
    "TIOCSSOFTCAR": 0x541A,
    "TIOCLINUX": 0x541C,
    "TIOCCONS": 0x541D,
    "TIOCGSERIAL": 0x541E,
    "TIOCSSERIAL": 0x541F,
    "TIOCSETD": 0x5423,
    "TIOCSBRK": 0x5427,
    "TIOCCBRK": 0x5428,
    "TIOCGRS485": 0x542E,
    "TIOCSRS485": 0x542F,
    "TCGETX": 0x5432,
    "TCSETX": 0x5433,
    "TCSETXF": 0x5434,
    "TCSETXW": 0x5435,
    "TIOCVHANGUP": 0x5437,
    "TIOCGISO7816": 0x8028_5442,
    "TIOCSISO7816": 0xC028_5443,
    "TIOCSERCONFIG": 0x5453,
    "TIOCSERGWILD": 0x5454,
    "TIOCSERSWILD": 0x5455,
    "TIOCGLCKTRMIOS": 0x5456,
    "TIOCSLCKTRMIOS": 0x5457,
    "TIOCSERGSTRUCT": 0x5458,
    "TIOCSERGETLSR": 0x5459,
    "TIOCSERGETMULTI": 0x545A,
    "TIOCSERSETMULTI": 0x545B,
    "TIOCMIWAIT": 0x545C,
    "TIOCGICOUNT": 0x545D,
    "a request that no kernel has yet": 0x547F,
    "KIOCSOUND": 0x4B2F,
    "KDMKTONE": 0x4B30,
    "KDSETLED": 0x4B32,
    "KDSETMODE": 0x4B3A,
    "KDSKBMODE": 0x4B45,
    "KDSKBENT": 0x4B47,
    "KDSKBSENT": 0x4B49,
    "KDSETKEYCODE": 0x4B4D,
    "PIO_FONT": 0x4B61,
    "PIO_UNIMAP": 0x4B67,
    "PIO_CMAP": 0x4B71,
    "KDFONTOP": 0x4B72,
    "VT_SETMODE": 0x5602,
    "VT_SENDSIG": 0x5604,
    "VT_ACTIVATE": 0x5606,
    "VT_DISALLOCATE": 0x5608,
    "VT_RESIZE": 0x5609,
    "VT_LOCKSWITCH": 0x560B,
}
#: Requests of other files.
FREE = {"FICLONE": 0x4004_9409, "FS_IOC_GETFLAGS": 0x8008_6601, "SIOCGIFCONF": 0x8912}


def _verdict(emulate: Emulate, arch: Arch, request: int, argument: int = 1) -> int:
    number = arch.numbers()["ioctl"]
    data = pack("<IIQ6Q", number, arch.token, 0, 0, request | GARBAGE, argument, 0, 0, 0)
    return emulate(seccomp.program(arch, Features()), data)[0]


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=repr)
def test_each_request_is_kept_or_refused(emulate: Emulate, arch: Arch) -> None:
    found = {name: _verdict(emulate, arch, number) for name, number in (REFUSED | KEPT | FREE).items()}
    assert found == dict.fromkeys(REFUSED, EPERM) | dict.fromkeys(KEPT | FREE, ALLOW)


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=repr)
def test_nothing_but_what_is_kept_passes(emulate: Emulate, arch: Arch) -> None:
    sizes = (0, 0x8004_0000, 0x4004_0000, 0x802C_0000, 0x402C_0000, 0xC028_0000)
    passed = {
        size | 0x5400 | low
        for size in sizes
        for low in range(256)
        if _verdict(emulate, arch, size | 0x5400 | low) == ALLOW
    }
    assert passed == set(KEPT.values())


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=repr)
def test_output_is_not_stopped_but_may_be_started(emulate: Emulate, arch: Arch) -> None:
    assert [_verdict(emulate, arch, KEPT["TCXONC"], order) for order in range(4)] == [EPERM, ALLOW, ALLOW, ALLOW]


def test_the_two_lists_are_apart() -> None:
    assert set(KEPT.values()).isdisjoint(REFUSED.values())
