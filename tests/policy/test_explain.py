from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.compile import compile_policy
from stockade.policy.explain import PathExplanation, Subject, classify, explain
from stockade.policy.places import Disk
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import EMPTY, merge

POLICY = compile_policy(EMPTY, cwd="/nowhere/project", home="/nowhere/home")


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("/x", Subject.PATH),
        ("a/b", Subject.PATH),
        (".bashrc", Subject.PATH),
        ("ssh://host", Subject.HOST),
        ("host.example:1", Subject.HOST),
        ("host.example", Subject.HOST),
        ("make", Subject.COMMAND),
        ("make -j2", Subject.COMMAND),
        ("", Subject.COMMAND),
    ],
)
def test_classify(text: str, subject: Subject) -> None:
    assert classify(text, POLICY, Disk()) is subject


@given(st.text(), st.sampled_from(list(Subject)))
def test_no_text_raises_anything_but_our_error(text: str, subject: Subject) -> None:
    try:
        classify(text, POLICY, Disk())
        explain(text, subject, POLICY, Disk())
    except InvalidTextError as error:
        message = error.message
        assert message.isprintable()


@pytest.mark.parametrize(
    ("path", "allowed"), [("/run/closed", False), ("/run/open", True), ("/run/other", None), ("/elsewhere", None)]
)
def test_a_path_that_a_rule_about_sockets_names_has_one_more_verdict(path: str, allowed: bool | None) -> None:  # noqa: FBT001
    values: dict[str, object] = {
        "sandbox.network.allowUnixSockets": ("/run/open", "/run/closed"),
        "sandbox.network.denyUnixSockets": ("/run/closed",),
    }
    policy = compile_policy(merge([Document(Layer.USER, "s.json", values)]), cwd="/nowhere", home="/nowhere/home")
    explained = explain(path, Subject.PATH, policy, Disk())
    assert isinstance(explained, PathExplanation)
    assert (explained.connect.allowed if explained.connect else None) == allowed
