from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stockade.tool.slash import slash
from stockade.violations.store import Violations
from stockade.violations.violation import Occasion, Operation, Violation

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

OPEN = "commands inside need no approval; a call may ask to run outside"
STRICT = "every command is asked for; none may run outside"

#: What is typed, what is answered (``{local}`` and ``{project}`` are places), what the local file then holds.
EDITS = {
    "enable": ("enable", "the sandbox is on ({local})", {"sandbox": {"enabled": True}}),
    "with the word itself": ("/sandbox enable", "the sandbox is on ({local})", {"sandbox": {"enabled": True}}),
    "disable": ("disable", "the sandbox is off ({local})", {"sandbox": {"enabled": False}}),
    "a mode": (
        "mode strict",
        "the sandbox is on ({local})",
        {"sandbox": {"enabled": True, "autoAllowBashIfSandboxed": False, "allowUnsandboxedCommands": False}},
    ),
    "allow": (
        "allow '/srv/a b'",
        "commands may write /srv/a b ({local})",
        {"sandbox": {"filesystem": {"allowWrite": ["/srv/a b"]}}},
    ),
    "deny": (
        "deny secrets",
        "commands may not write {project}/secrets ({local})",
        {"sandbox": {"filesystem": {"denyWrite": ["{project}/secrets"]}}},
    ),
    "allow-domain": (
        "allow-domain A.example",
        "commands may reach a.example ({local})",
        {"sandbox": {"network": {"allowedDomains": ["a.example"]}}},
    ),
    "deny-domain": (
        "deny-domain *",
        "commands may not reach * ({local})",
        {"sandbox": {"network": {"deniedDomains": ["*"]}}},
    ),
    "exclude": (
        "exclude docker compose *",
        "outside the sandbox from now on: docker compose * ({local})",
        {"sandbox": {"excludedCommands": ["docker compose *"]}},
    ),
    "exclude by a rule": (
        "exclude 'Bash(npm run:*)'",
        "outside the sandbox from now on: npm run:* ({local})",
        {"sandbox": {"excludedCommands": ["npm run:*"]}},
    ),
}


@pytest.mark.parametrize(("typed", "answer", "held"), EDITS.values(), ids=EDITS)
def test_changes(yard: Yard, typed: str, answer: str, held: object) -> None:
    places = {"{local}": str(yard.local), "{project}": str(yard.project)}
    for name, place in places.items():
        answer = answer.replace(name, place)
    assert slash(typed, yard.locations) == answer
    expected = json.loads(json.dumps(held).replace("{project}", places["{project}"]))
    assert json.loads(yard.local.read_text()) == expected
    assert slash(typed, yard.locations) == f"nothing to change ({yard.local})"


@pytest.mark.parametrize("typed", [typed for typed, _, _ in EDITS.values()], ids=EDITS)
def test_what_is_locked_is_refused_with_the_name_of_the_file(yard: Yard, typed: str) -> None:
    yard.write(yard.managed, {"sandbox": {"enabled": True}})
    answer = slash(typed, yard.locations)
    assert answer.splitlines()[0] == f"sandbox settings are locked by {yard.managed} (policy)"
    assert not yard.local.exists()


def test_status(yard: Yard) -> None:
    assert slash("", yard.locations) == f"sandbox: off, in {yard.project}\nmode: {OPEN}"
    slash("mode strict", yard.locations)
    violations = Violations()
    assert slash("status", yard.locations, violations=violations) == (
        f"sandbox: on, in {yard.project}\nmode: {STRICT}\nrefusals in this session: 0"
    )
    yard.write(yard.managed, {"sandbox": {"enabled": True}})
    assert f"locked by {yard.managed} (policy): these settings cannot be changed here" in slash("", yard.locations)


def test_list(yard: Yard) -> None:
    file = yard.user({"permissions": {"deny": ["Bash(rm:*)"]}})
    lines = slash("list", yard.locations).splitlines()
    assert lines[:2] == ["may write:", f"  {yard.project}  (defaults)"]
    assert lines[-2:] == ["commands denied:", f"  rm:*  ({file} (user))"]


def test_violations(yard: Yard) -> None:
    violations = Violations()
    assert slash("violations", yard.locations) == "nothing was refused in this session"
    assert slash("violations", yard.locations, violations=violations) == "nothing was refused in this session"
    occasion = Occasion(0, "call-1", "touch x")
    violations.add(Violation.refused(Operation.WRITE, "/x", occasion, why="outside every writable place"))
    answer = slash("violations", yard.locations, violations=violations)
    assert answer.splitlines()[:2] == ["stockade: 1 refusal", '  write "/x"']


MISTAKES = {
    "another verb": ("frobnicate", "unknown: frobnicate\n/sandbox status\n"),
    "no path": ("allow", "give one path\n"),
    "two paths": ("allow a b", "give one path\nput quotes around what holds blanks"),
    "no command": ("exclude", "give a command\n"),
    "everything": ("exclude *", "the exclusion '*' would take every command out of the sandbox\n"),
    "another mode": ("mode lax", "there is no mode lax\nmodes: auto, strict, off"),
    "too wide a host": ("allow-domain *", '"*" is not a domain pattern'),
    "a quote": ("allow 'x", "a quote is not closed\n"),
    "too much": ("enable now", "nothing goes behind this: now"),
}


@pytest.mark.parametrize(("typed", "answer"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_answered_in_words(yard: Yard, typed: str, answer: str) -> None:
    assert slash(typed, yard.locations).startswith(answer)
    assert not yard.local.exists()


def test_a_settings_file_that_is_wrong_is_told(yard: Yard) -> None:
    file = yard.user({"sandbox": {"enabeld": True}})
    assert f"{file}: $.sandbox.enabeld" in slash("enable", yard.locations)


def test_what_is_refused_all_the_same_is_said(yard: Yard) -> None:
    yard.user({"sandbox": {"filesystem": {"denyWrite": ["/srv/x"]}}})
    assert "\nstill refused: may not write" in slash("allow /srv/x", yard.locations)


@given(st.text())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_nothing_that_is_typed_breaks_it(yard: Yard, typed: str) -> None:
    assert isinstance(slash(typed, yard.locations), str)
