from __future__ import annotations

import pytest

from stockade.network.credentials import Entrance, Tokens
from stockade.network.http_message import Credentials


def test_a_credential_means_its_command_until_it_is_taken_back() -> None:
    tokens = Tokens()
    first, second = tokens.issue("c1"), tokens.issue("c2")
    assert first.user == "c1"
    assert tokens.authenticate(first.user, first.token) == "c1"
    assert tokens.authenticate(second.user, second.token) == "c2"
    tokens.revoke(first)
    tokens.revoke(first)
    assert tokens.authenticate(first.user, first.token) is None


@pytest.mark.parametrize("command", ["", "a b", "é", "c:1", "x" * 65])
def test_a_command_whose_id_cannot_be_a_user_gets_another(command: str) -> None:
    tokens = Tokens()
    credential = tokens.issue(command)
    assert credential.user != command
    assert tokens.authenticate(credential.user, credential.token) == command


def test_two_credentials_of_one_command_are_two() -> None:
    tokens = Tokens()
    first, second = tokens.issue("c1"), tokens.issue("c1")
    tokens.revoke(first)
    assert tokens.authenticate(second.user, second.token) == "c1"


@pytest.mark.parametrize(("user", "token"), [("c1", ""), ("c1", "wrong"), ("", ""), ("c2", ""), ("c1", "\udc80é")])
def test_what_is_wrong_means_nobody(user: str, token: str) -> None:
    tokens = Tokens()
    tokens.issue("c1")
    assert tokens.authenticate(user, token) is None


RIGHT, WRONG = Credentials("c1", "t"), Credentials("c1", "f")


def authenticate(user: str, token: str) -> str | None:
    return user if token == "t" else None  # noqa: S105 - no secret


@pytest.mark.parametrize(
    ("entrance", "expected"),
    [
        pytest.param(Entrance(authenticate), [None, "c1", None], id="everybody must"),
        pytest.param(
            Entrance(authenticate, must_authenticate=False), ["", "c1", None], id="whoever does must be right"
        ),
        pytest.param(Entrance(), ["", "", ""], id="nobody can"),
        pytest.param(Entrance(must_authenticate=True), [None, None, None], id="nobody can, but everybody must"),
    ],
)
def test_who_is_served(entrance: Entrance, expected: list[str | None]) -> None:
    assert [entrance.command_of(given) for given in (None, RIGHT, WRONG)] == expected
