from __future__ import annotations

import pytest

from stockade.platforms.linux.identity import decide, has_capabilities, identity_map

ALL = b"Name:\tx\nCapEff:\t000001ffffffffff\n"
DOCKER = b"Name:\tx\nCapEff:\t00000000a80425fb\n"
NONE = b"Name:\tx\nCapEff:\t0000000000000000\n"
WHOLE = b"         0          0 4294967295\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(WHOLE, (b"0 0 4294967294", 4294967294), id="the-machine"),
        pytest.param(b"0 1000 1\n1 100000 65536\n", (b"0 0 1\n1 1 65535", 65536), id="container"),
        pytest.param(b"0 1000 1\n5 9 1\n", (b"0 0 1", 5), id="last-range-of-one"),
        pytest.param(b"0 1000 1\n", (b"", 0), id="one-id"),
    ],
)
def test_all_ids_but_the_last_map_to_themselves(text: bytes, expected: tuple[bytes, int]) -> None:
    assert identity_map(text) == expected


@pytest.mark.parametrize(
    ("uid", "status", "uid_map", "expected"),
    [
        pytest.param(0, ALL, WHOLE, (b"0 0 4294967294", 0x4FB, (4294967294, 4294967294)), id="root"),
        pytest.param(0, DOCKER, WHOLE, (b"0 0 1", 0, None), id="root-without-rights"),
        pytest.param(0, ALL, b"0 1000 1\n", (b"0 0 1", 0, None), id="root-of-one-id"),
        pytest.param(1000, NONE, WHOLE, (b"1000 1000 1", 0, None), id="user"),
        pytest.param(1000, ALL, WHOLE, (b"1000 1000 1", 0, None), id="user-with-rights"),
    ],
)
def test_only_root_with_its_rights_maps_everybody(
    uid: int, status: bytes, uid_map: bytes, expected: tuple[bytes, int, tuple[int, int] | None]
) -> None:
    found = decide(uid, uid, status, uid_map, uid_map)
    assert (found.users, found.capabilities, found.outsider) == expected
    assert found.privileged == (expected[2] is not None)


@pytest.mark.parametrize(
    ("status", "wanted", "expected"),
    [
        pytest.param(ALL, 0x3, True, id="all"),
        pytest.param(DOCKER, 1 << 21, False, id="lacking"),
        pytest.param(b"", 1, False, id="no-such-line"),
    ],
)
def test_capabilities_are_read_from_status(status: bytes, wanted: int, *, expected: bool) -> None:
    assert has_capabilities(status, wanted) is expected
