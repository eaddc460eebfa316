from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.macos.evaluator import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.platforms.macos.conftest import Case

S = "/Users/ann/s"


@pytest.mark.parametrize(
    ("hide", "show", "readable", "hidden"),
    [
        pytest.param(["~/s"], [], ["/Users/ann/sx"], [S, f"{S}/a"], id="place"),
        pytest.param(["~/s"], ["~/s/p"], [f"{S}/p", f"{S}/p/q"], [S, f"{S}/px"], id="opened-again"),
        pytest.param(["~/s", "~/s/p/k"], ["~/s/p"], [f"{S}/p/q"], [S, f"{S}/p/k", f"{S}/p/k/l"], id="denied-again"),
        pytest.param(["~/s"], ["~/s"], [], [S, f"{S}/a"], id="at-equal-depth-the-deny"),
        pytest.param(["~/s/p"], ["~/s"], [S], [f"{S}/p/q"], id="a-wider-re-allow"),
        pytest.param(["policy:~/s"], ["~/s/p"], [], [f"{S}/p"], id="the-administrators-deny"),
        pytest.param(["policy:~/s"], ["policy:~/s/p"], [f"{S}/p"], [S], id="opened-by-the-administrator"),
        pytest.param(["policy:~/s", "~/s/p"], ["policy:~/s/p/q"], [f"{S}/p/q"], [f"{S}/p", f"{S}/r"], id="both-layers"),
        pytest.param(["~/s"], ["~/s/*.pub"], [f"{S}/a.pub"], [f"{S}/a", f"{S}/b/a.pub"], id="re-allow-by-glob"),
        pytest.param(["~/s"], ["~/s/**/*.pub"], [f"{S}/b/a.pub"], [f"{S}/b"], id="re-allow-by-deep-glob"),
        pytest.param(["~/s/*"], ["~/s/p"], [S], [f"{S}/p", f"{S}/q"], id="glob-of-equal-depth"),
        pytest.param(["~/s/*"], ["~/s/p/q"], [f"{S}/p/q"], [f"{S}/p"], id="place-below-a-glob"),
        pytest.param(["~/s/*"], ["~/s/*/q"], [f"{S}/p/q"], [f"{S}/p"], id="glob-below-a-glob"),
        pytest.param(
            ["~/s/**/.env"],
            ["~/s/a"],
            [f"{S}/a", f"{S}/a/b"],
            [f"{S}/.env", f"{S}/a/.env"],
            id="deep-glob-below-a-place",
        ),
        pytest.param(
            ["~/s/**/.env"],
            ["~/s/.env/p"],
            [f"{S}/.env/p"],
            [f"{S}/.env", f"{S}/.env/p/.env"],
            id="place-below-deep-glob",
        ),
        pytest.param(["~/s/**/.env"], ["~/s/**/p"], [f"{S}/p"], [f"{S}/.env/p"], id="unknown-depth-is-denied"),
        pytest.param(["/tmp/s"], [], ["/private/tmp"], ["/tmp/s/a", "/private/tmp/s/a"], id="aliases"),
        pytest.param(["~/caf\u00e9"], [], [], ["/Users/ann/cafe\u0301"], id="accents"),
    ],
)
def test_reads(
    case: Callable[..., Case], hide: list[str], show: list[str], readable: list[str], hidden: list[str]
) -> None:
    walls = Evaluator(case(hide=hide, show=show).profile.text)
    assert [path for path in readable if not walls.allows_file("file-read-data", path)] == []
    assert [path for path in hidden if walls.allows_file("file-read-data", path)] == []
    assert [path for path in hidden if walls.allows_file("file-write-create", path)] == []


def test_the_way_to_what_is_opened_again_can_be_seen(case: Callable[..., Case]) -> None:
    walls = Evaluator(case(hide=["~/s"], show=["~/s/p/q"]).profile.text)
    for path in (S, f"{S}/p"):
        assert walls.allows_file("file-read-metadata", path, "DIRECTORY")
        assert not walls.allows_file("file-read-data", path, "DIRECTORY")
    assert not walls.allows_file("file-read-metadata", f"{S}/other")


def test_a_second_path_leads_around_no_deny(case: Callable[..., Case]) -> None:
    second = f"/System/Volumes/Data{S}/key"
    assert not Evaluator(case(hide=["~/s"]).profile.text).allows_file("file-read-data", second)
    assert Evaluator(case().profile.text).allows_file("file-read-data", second)
