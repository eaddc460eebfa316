"""Profiles as people would read them, and their limits.

The golden profiles stand in ``golden/``, without the part that all have in common. To write them anew after a change
that is meant, run this file with STOCKADE_WRITE_GOLDEN=1 and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from stockade.errors import UnavailableError
from stockade.platforms.macos import seatbelt
from stockade.platforms.macos.evaluator import Evaluator
from stockade.platforms.macos.seatbelt import LARGEST, UNTAGGED, base
from stockade.platforms.macos.sexpr import read
from stockade.policy.model import Sockets
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.platforms.macos.conftest import Case

GOLDEN: Final = Path(__file__).parent / "golden"
W: Final = "/Users/ann/w"
REPOSITORY: Final = {f"{W}/.git/{name}": None for name in ("hooks/pre-commit", "config", "HEAD", "index")}
CLOSED: Final = Sockets((), False, False, None, None)
AGENT: Final = Sourced(PathPattern.literal("/private/tmp/ssh/agent.sock"), Origin(Layer.USER))

POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "empty-directory": {},
    "repository": {"entries": REPOSITORY | {f"{W}/sub/.git/hooks/x": None, f"{W}/src/main.py": None}},
    "denied-writes": {
        "entries": REPOSITORY | {f"{W}/keep/this": None},
        "deny": ["keep", "later/deep", "~/.stockade/settings.json"],
    },
    "denied-reads": {
        "entries": {f"{W}/a": None, "/Users/ann/.ssh/id": None, "/Users/ann/.aws/credentials": None},
        "hide": ["~/.ssh", "~/.aws"],
        "show": ["~/.ssh/known_hosts", "~/.ssh/*.pub"],
    },
    "administrator": {"hide": ["policy:~/secret", "~/secret/own"], "show": ["~/secret/a", "policy:~/secret/b"]},
    "globs": {
        "entries": {f"{W}/a/.env": None, f"{W}/gen/x.lock": None},
        "write": [".", "~/logs/*.log"],
        "deny": ["gen/**/*.lock"],
        "hide": ["**/.env", "**/*.pem", "~/[a-c]?"],
        "show": ["a"],
    },
    "links": {
        "entries": {f"{W}/link": "a/target", f"{W}/a/target": None, f"{W}/.bashrc": "dot/rc", f"{W}/dot/rc": None},
        "deny": ["link"],
    },
    "odd-names": {
        "entries": {f'{W}/q"\\\n*[': "", f"{W}/caf\u00e9": ""},
        "deny": ['q"\\\\\n\\*\\[', "caf\u00e9", "\udcff"],
        "hide": ["caf\u00e9/*"],
    },
    "network": {
        "sockets": CLOSED.but(unix=(AGENT,), local_binding=True),
        "ports": (3128, 1080),
        "temporary": "/private/var/folders/ab/T/stockade/tmp-1",
        "private": "/private/var/folders/ab/T/stockade",
    },
    "aliases": {
        "entries": {"/tmp": "private/tmp", "/private/tmp/out": "", W: ""},
        "write": [".", "/tmp/out"],
        "hide": ["/etc/secret"],
    },
}


@pytest.mark.parametrize("name", POLICIES)
def test_golden_profiles(case: Callable[..., Case], name: str) -> None:
    text = case(**POLICIES[name]).profile.text
    assert base() in text
    shown = text.replace(base(), f"; ({seatbelt.BASE})")
    path = GOLDEN / f"{name}.sb"
    if os.environ.get("STOCKADE_WRITE_GOLDEN"):
        path.write_text(shown, "utf-8")
    assert shown == path.read_text("utf-8")
    Evaluator(text)


def test_there_is_nothing_else_in_the_directory() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(POLICIES)


def test_every_deny_names_the_command(case: Callable[..., Case]) -> None:
    for options in POLICIES.values():
        profile = case(**options).profile
        denies = [form for form in read(profile.text) if isinstance(form, tuple) and form[0] == "deny"]
        tagged = read(profile.tagged("CMD64_x_END_y"))
        assert denies
        assert all(UNTAGGED in repr(form[-1]) for form in denies)
        assert UNTAGGED not in repr(tagged)
        assert repr(tagged).count("CMD64_x_END_y") == len(denies)


def test_every_group_of_the_base_has_its_reason() -> None:
    for group in base().split("\n\n"):
        assert group.startswith("; "), group


def test_the_base_opens_no_file_for_writing() -> None:
    walls = Evaluator(f"(deny default)\n{base()}")
    for path in ("/a", "/Users/ann/x", "/private/tmp/x", "/dev/disk0", "/dev/nullx", "/dev/fd"):
        for operation in ("file-write-data", "file-write-create", "file-write-unlink", "file-write-mode"):
            assert not walls.allows_file(operation, path)


def test_what_is_around_the_temporary_directory_is_hidden(case: Callable[..., Case]) -> None:
    walls = Evaluator(case(write=["/p"], temporary="/p/o/tmp-1", private="/p/o").profile.text)
    for operation in ("file-read-data", "file-write-create"):
        assert walls.allows_file(operation, "/p/o/tmp-1/x")
        assert not walls.allows_file(operation, "/p/o/order-1")
        assert not walls.allows_file(operation, "/p/o/tmp-2/x")
        assert not walls.allows_file(operation, "/p/o", "DIRECTORY")
    assert walls.allows_file("file-read-metadata", "/p/o", "DIRECTORY")


def test_a_cache_is_open_and_those_of_other_projects_are_hidden_and_stay_where_they_are(
    case: Callable[..., Case],
) -> None:
    walls = Evaluator(case(write=["/p"], cache="/p/c/s/a-1/cache", caches="/p/c/s").profile.text)
    for operation in ("file-read-data", "file-write-create"):
        assert walls.allows_file(operation, "/p/c/s/a-1/cache/x")
        assert not walls.allows_file(operation, "/p/c/s/a-1/project")
        assert not walls.allows_file(operation, "/p/c/s/b-1/cache/x")
    for path in ("/p/c/s", "/p/c/s/a-1"):
        assert walls.allows_file("file-read-metadata", path, "DIRECTORY")
    for path in ("/p/c", "/p/c/s", "/p/c/s/a-1", "/p/c/s/a-1/cache"):
        assert not walls.allows_file("file-write-unlink", path, "DIRECTORY")
    assert walls.allows_file("file-write-unlink", "/p/c/other", "DIRECTORY")


def test_a_profile_that_is_too_large_is_refused(case: Callable[..., Case]) -> None:
    with pytest.raises(UnavailableError) as caught:
        case(deny=[f"{'x' * 200}/{number}" for number in range(4000)])
    assert caught.value.message.startswith("the profile would have ")
    assert f"more than the {LARGEST} that" in caught.value.message
    assert caught.value.hint


def test_a_rule_that_is_too_long_is_refused(case: Callable[..., Case]) -> None:
    with pytest.raises(UnavailableError) as caught:
        case(deny=["/".join(["[!\u00e9-\u00ff]" * 8] * 60)])
    assert caught.value.message.startswith('a rule about "')
    assert caught.value.hint
