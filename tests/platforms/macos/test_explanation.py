from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.errors import UnavailableError
from stockade.filesystem.terrain import Land
from stockade.platforms.macos.explanation import explain_destination, explain_path, profile_of
from stockade.policy.compile import compile_policy
from stockade.policy.destination import Destination
from stockade.policy.path_pattern import PathPattern
from stockade.settings.document import Document
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy

DISK = Land()


def _policy(root: Path, **lists: list[str]) -> SandboxPolicy:
    values: dict[str, object] = {f"sandbox.filesystem.{name}": texts for name, texts in lists.items()}
    settings = merge([Document(Layer.USER, "s.json", values)])
    return compile_policy(settings, cwd=str(root), home=str(root.parent / "home"))


def test_each_way_has_its_answer(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("keep")
    (tmp_path / "keep").mkdir()
    answers = explain_path(_policy(tmp_path, denyWrite=["keep"]), "l/a", DISK)
    assert [(answer.way, answer.verdict.allowed) for answer in answers] == [
        ("read", True),
        ("write", False),
        ("make", False),
        ("remove or rename", False),
    ]
    assert {answer.target for answer in answers} == {f"{tmp_path.resolve()}/keep/a"}
    assert str(answers[0]) == f'on macOS may read "{tmp_path.resolve()}/keep/a": by (allow file-read*)'


def test_a_socket_that_a_rule_is_about_is_answered_for(tmp_path: Path) -> None:
    policy = _policy(tmp_path)
    rule = Sourced(PathPattern.literal(f"{tmp_path.resolve()}/s"), Origin(Layer.USER))
    denying = policy.but(sockets=policy.sockets.but(all_unix=True, denied_unix=(rule,)))
    *_, connect = explain_path(denying, "s", DISK)
    assert (connect.way, connect.verdict.allowed) == ("connect to", False)
    assert "connect to" not in {answer.way for answer in explain_path(denying, "t", DISK)}


def test_home_is_understood(tmp_path: Path) -> None:
    read, *_ = explain_path(_policy(tmp_path, denyRead=["~/s"]), "~/s", DISK)
    assert not read.verdict.allowed


def test_nothing_is_reached_past_the_proxies(tmp_path: Path) -> None:
    answer = explain_destination(_policy(tmp_path), Destination.parse("example.com:443"), DISK)
    assert (answer.target, answer.verdict.allowed) == ("example.com:443", False)


def test_a_plan_that_is_refused_has_no_profile(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be enforced"):
        profile_of(_policy(tmp_path, denyRead=["/"]), DISK)
