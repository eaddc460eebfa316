from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

import pytest

from stockade.filesystem.planning import make_plan
from stockade.platforms.macos.evaluator import Evaluator
from stockade.platforms.macos.seatbelt import make_profile
from stockade.platforms.macos.stored_name import stored_rules, stored_sockets
from stockade.policy.files import FileRules, survey
from stockade.policy.model import Sockets
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

USER = Origin(Layer.USER)
ENTRIES: Mapping[str, str | None] = {
    "/Users/ann/Secret/Key": None,
    "/Users/ann/caf\u00e9/x": None,
    "/Users/ann/Link": "Secret",
    "/Users/ann/w": "",
}


class Insensitive:
    """A disk that finds names in any case, and lists them as they were made."""

    def __init__(self, disk: Any) -> None:
        self._disk = disk
        self._real: dict[str, str] = {path.casefold(): path for path in disk.kinds}

    def _stored(self, path: str) -> str:
        key = unicodedata.normalize("NFC", path).casefold()
        return self._real.get(key, path)

    def __getattr__(self, name: str) -> Any:
        return lambda path, *more: getattr(self._disk, name)(self._stored(path), *more)


def _rules(*hidden: str) -> FileRules:
    sourced = tuple(Sourced(PathPattern.parse(text, cwd="/Users/ann/w", home="/Users/ann"), USER) for text in hidden)
    return FileRules("/Users/ann/w", "/Users/ann", (), (), sourced, (), 3, False)


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        pytest.param("~/Secret/Key", "/Users/ann/Secret/Key", id="as-it-is"),
        pytest.param("~/secret/KEY", "/Users/ann/Secret/Key", id="another-case"),
        pytest.param("/USERS/Ann/secret", "/Users/ann/Secret", id="all-the-way"),
        pytest.param("~/secret/none/Deep", "/Users/ann/Secret/none/Deep", id="missing"),
        pytest.param("~/cafe\u0301/x", "/Users/ann/caf\u00e9/x", id="accents"),
        pytest.param("~/link/key", "/Users/ann/Link/Key", id="through-a-link"),
        pytest.param("~/secret/*.Pem", "/Users/ann/Secret/*.Pem", id="glob"),
        pytest.param("/", "/", id="root"),
    ],
)
def test_rules_are_spelt_as_the_disk_has_them(forest: Callable[..., Any], written: str, stored: str) -> None:
    rules = _rules(written)
    (rule,) = stored_rules(rules, Insensitive(forest(ENTRIES))).read_deny
    assert rule.value.path == stored
    assert rule.value.text == rules.read_deny[0].value.text
    assert rule.value.is_glob == ("*" in written)


def test_a_disk_that_tells_case_apart_is_left_alone(forest: Callable[..., Any]) -> None:
    disk = forest({"/a/X": None, "/a/x": None})
    rules = _rules("/a/x", "/a/X", "/A/x")
    assert stored_rules(rules, disk) is rules


def test_a_rule_in_another_case_holds(forest: Callable[..., Any]) -> None:
    disk = Insensitive(forest(ENTRIES))
    rules = stored_rules(_rules("~/SECRET"), disk)
    profile = make_profile(
        survey(rules, disk), make_plan(rules, disk), disk, sockets=Sockets((), False, False, None, None)
    )
    assert not Evaluator(profile.text).allows_file("file-read-data", "/Users/ann/Secret/Key")


def test_denied_sockets_are_spelt_as_the_disk_has_them(forest: Any) -> None:
    rule = Sourced(PathPattern.literal("/users/ann/SECRET/key"), USER)
    sockets = Sockets((), True, False, None, None, (rule,))
    stored = stored_sockets(sockets, Insensitive(forest(ENTRIES)))
    assert [each.value.path for each in stored.denied_unix] == ["/Users/ann/Secret/Key"]
    assert stored_sockets(stored, Insensitive(forest(ENTRIES))) is stored
