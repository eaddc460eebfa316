from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.platforms.distribution import INSTALLERS, Distribution, as_root, parse, this_distribution


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n',
            Distribution("debian", "debian", "12", "Debian GNU/Linux 12 (bookworm)"),
            id="debian",
        ),
        pytest.param(
            'ID=ubuntu\nID_LIKE="debian"\nVERSION_ID="24.04"', Distribution("ubuntu", "debian", "24.04"), id="ubuntu"
        ),
        pytest.param('ID=linuxmint\nID_LIKE="ubuntu debian"\n', Distribution("linuxmint", "debian"), id="mint"),
        pytest.param('ID="rocky"\nID_LIKE="rhel centos fedora"\n', Distribution("rocky", "fedora"), id="rocky"),
        pytest.param(
            'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', Distribution("opensuse-leap", "suse"), id="opensuse"
        ),
        pytest.param("ID='arch'", Distribution("arch", "arch"), id="arch, single quotes"),
        pytest.param("ID=plan9\n", Distribution("plan9"), id="unknown"),
        pytest.param("", Distribution(), id="empty"),
        pytest.param("nonsense", Distribution(), id="nonsense"),
    ],
)
def test_parse(text: str, expected: Distribution) -> None:
    assert parse(text) == expected


@given(st.text())
def test_any_text_is_some_distribution(text: str) -> None:
    assert parse(text).family in {"", *INSTALLERS}


def test_as_root() -> None:
    assert (as_root("x", root=True), as_root("x", root=False)) == ("x", "sudo x")


def test_this_distribution_is_read_from_the_first_file_that_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stockade.platforms.distribution._FILES", ("/nonexistent",))
    assert this_distribution() == Distribution()
