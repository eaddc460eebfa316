from __future__ import annotations

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.detect import Platform, System, detect, require_supported, this_platform

DEBIAN = "Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1"
WSL1 = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) (gcc version 5.4.0 (GCC) ) #1-Microsoft"
WSL2 = "Linux version 5.15.146.1-microsoft-standard-WSL2 (root@65c757a075e2) #1 SMP"
OWN_WSL2 = "Linux version 6.6.9-microsoft-custom (me@box) #1 SMP"


@pytest.mark.parametrize(
    ("platform", "kernel", "system", "name"),
    [
        pytest.param("linux", DEBIAN, System.LINUX, "Linux", id="linux"),
        pytest.param("linux", "", System.LINUX, "Linux", id="unreadable"),
        pytest.param("linux", WSL2, System.LINUX, "WSL2", id="wsl2"),
        pytest.param("linux", OWN_WSL2, System.LINUX, "WSL2", id="wsl2 with a kernel of one's own"),
        pytest.param("linux", WSL1, System.NONE, "WSL1", id="wsl1"),
        pytest.param("linux", "4.4.0-19041-Microsoft", System.NONE, "WSL1", id="wsl1 by its release alone"),
        pytest.param("darwin", "", System.MACOS, "macOS", id="macos"),
        pytest.param("win32", "", System.NONE, "Windows", id="windows"),
        pytest.param("cygwin", "", System.NONE, "Windows", id="cygwin"),
        pytest.param("freebsd14", "", System.NONE, "freebsd14", id="freebsd"),
    ],
)
def test_detect(platform: str, kernel: str, system: System, name: str) -> None:
    found = detect(platform, kernel)
    assert (found.system, found.name) == (system, name)
    assert bool(found.why) == bool(found.remedy) == (system is System.NONE)


def test_what_is_not_supported_is_refused_with_its_reason_and_what_to_do() -> None:
    with pytest.raises(UnavailableError) as caught:
        require_supported(detect("win32"))
    assert caught.value.message == "Windows is not supported"
    assert "WSL2" in caught.value.hint
    linux = Platform(System.LINUX, "Linux")
    assert require_supported(linux) is linux


def test_this_platform_is_one_that_the_tests_run_on() -> None:
    assert this_platform().system is not System.NONE
