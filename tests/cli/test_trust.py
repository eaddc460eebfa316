from __future__ import annotations

import hashlib
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here, Outside

LOOSE = {"sandbox": {"network": {"allowedDomains": ["evil.example"]}}}


def reachable(here: Here) -> bool:
    return bool(here("explain", "--json", "evil.example").facts["verdict"] == "allow")


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_project_loosens_only_when_trusted_as_it_is(here: Here) -> None:
    file = here.project_file(LOOSE)
    warned = here("status")
    assert warned.err.count("\n") == 1
    assert "stockade trust" in warned.err
    assert not reachable(here)

    result = here("trust", "--yes")
    assert result.out.startswith(f"{file}:\n  ")
    assert "evil.example" in result.out
    assert f"sha256 {digest_of(file.read_bytes())}; loosens: sandbox.network.allowedDomains\n" in result.out
    assert result.out.endswith(f"trusted, as shown: {file}\n")
    assert reachable(here)

    file.write_text(file.read_text() + "\n")
    assert not reachable(here)


def test_revoke_and_list(here: Here) -> None:
    file = here.project_file(LOOSE)
    here("trust", "--yes")
    assert list(here("trust", "--list", "--json").facts) == [str(file)]
    assert str(file) in here("trust", "--list").out
    assert here("trust", "--revoke").out == f"no longer trusted: {file}\n"
    assert not reachable(here)


def test_nothing_to_trust(here: Here) -> None:
    result = here("trust")
    assert result.status == 125
    assert "no settings file of a project" in result.err


def test_a_wrong_file_is_not_trusted(here: Here) -> None:
    here.project_file('{"sandbox": {"enabeld": true}}')
    assert here("trust", "--yes").status == 125
    assert here("trust", "--list").out == ""


def test_escape_sequences_in_a_file_are_shown_not_obeyed(here: Here) -> None:
    here.project_file('{"sandbox": {"ripgrep": {"command": "\u202ergx"}}}')
    result = here("trust", "--yes")
    assert "\u202e" not in result.out + result.err
    assert "\\u202e" in result.out + result.err


def test_where_nobody_can_be_asked_nothing_is_trusted(here: Here, outside: Outside) -> None:
    file = here.project_file(LOOSE)
    digest = digest_of(file.read_bytes())
    status, out, err = outside.run("trust", given="y\n")
    assert status == 125
    assert "evil.example" in out
    assert "there is no terminal to ask on" in err
    assert f"stockade trust --sha256 {digest}" in err
    asked = here("trust", "--json")
    assert (asked.status, asked.facts["trusted"], asked.facts["files"]) == (125, False, [])
    assert not reachable(here)


def test_the_content_of_a_hash_is_trusted_and_no_other(here: Here) -> None:
    file = here.project_file(LOOSE)
    digest = digest_of(file.read_bytes())
    file.write_text('{"sandbox": {"excludedCommands": ["*"]}}')
    refused = here("trust", "--sha256", digest)
    assert refused.status == 125
    assert f"has the sha256 {digest}" in refused.err
    here.project_file(LOOSE)
    local = here.write(here.local, {"sandbox": {"excludedCommands": ["*"]}})
    done = here("trust", "--json", "--sha256", digest.upper())
    assert (done.status, done.facts["files"], done.facts["trusted"]) == (0, [str(file)], True)
    assert [one["file"] for one in done.facts["shown"]] == [str(local), str(file)]
    assert reachable(here)
    assert "is not trusted; ignored: sandbox.excludedCommands" in here("status").err


def test_a_file_above_the_project_is_not_trusted_from_below(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    here.project_file(LOOSE)
    here.project = here.project / "sub"
    (here.project / ".git").mkdir(parents=True)
    (here.project / ".git/HEAD").touch()  # an empty one is no repository
    monkeypatch.chdir(here.project)
    assert here("trust", "--yes").status == 125
    assert here("trust", "--list").out == ""


@pytest.mark.parametrize(
    ("answer", "status", "trusted"), [("y", 0, True), ("YES", 0, True), ("", 125, False), ("n", 125, False)]
)
def test_somebody_at_a_terminal_is_asked(
    here: Here, outside: Outside, answer: str, status: int, *, trusted: bool
) -> None:
    here.project_file(LOOSE)
    seat = outside.seat(*outside.words, "trust")
    assert "evil.example" in seat.sees(r"Trust this file as shown\? \[y/N\] ")
    seat.type(f"{answer}\n")
    assert seat.status() == status
    assert reachable(here) is trusted


def test_what_was_shown_is_trusted_and_not_what_the_file_holds_by_then(here: Here, outside: Outside) -> None:
    file = here.project_file(LOOSE)
    seat = outside.seat(*outside.words, "trust")
    seat.sees(r"as shown\? ")
    file.write_text('{"sandbox": {"excludedCommands": ["*"]}}')
    seat.type("y\n")
    seat.sees("has changed since it was read; what it holds now is not trusted")
    assert seat.status() == 0
    assert "is not trusted; ignored: sandbox.excludedCommands" in here("status").err
    here.project_file(LOOSE)
    assert reachable(here)


def test_who_alternates_the_file_gains_nothing(here: Here) -> None:
    file = here.project_file(LOOSE)
    texts = [file.read_text(), '{"sandbox": {"excludedCommands": ["*"]}}']
    ended = threading.Event()

    def alternate() -> None:
        aside = file.with_suffix(".aside")
        for number in range(200_000):
            if ended.is_set():
                return
            aside.write_text(texts[number % 2])
            aside.replace(file)

    racer = threading.Thread(target=alternate)
    racer.start()
    try:
        for _ in range(20):
            result = here("trust", "--json", "--yes")
            (shown,) = result.facts["shown"]
            assert list(here("trust", "--list", "--json").facts.values()) == [[shown["sha256"]]]
            assert digest_of(shown["content"].encode()) == shown["sha256"]
    finally:
        ended.set()
        racer.join()


def test_a_switch_that_would_turn_the_sandbox_off_is_named(here: Here) -> None:
    here.write(here.project / ".stockade" / "settings.json", {"sandbox": {"enabled": False}})
    assert "; loosens: sandbox.enabled\n" in here("trust", "--yes").out
