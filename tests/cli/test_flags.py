from __future__ import annotations

import pytest

from stockade.cli import flags
from stockade.cli.flags import PolicyOptions
from stockade.cli.parser import Parser
from stockade.settings.document import Document
from stockade.settings.layer import Layer


def document(*words: str) -> Document | None:
    parser = Parser(prog="x")
    flags.configure(parser)
    return flags.document(parser.read(words, PolicyOptions()))


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["--sandbox"], {"sandbox.enabled": True}),
        (["--no-sandbox"], {"sandbox.enabled": False}),
        (["--sandbox-mode", "off"], {"sandbox.enabled": False}),
        (["--sandbox-mode", "auto"], {"sandbox.enabled": True, "sandbox.autoAllowBashIfSandboxed": True}),
        (
            ["--sandbox-mode", "strict"],
            {
                "sandbox.enabled": True,
                "sandbox.autoAllowBashIfSandboxed": False,
                "sandbox.allowUnsandboxedCommands": False,
            },
        ),
        (["--allow-write", "a", "--allow-write", "b"], {"sandbox.filesystem.allowWrite": ("a", "b")}),
        (["--deny-read", "a"], {"sandbox.filesystem.denyRead": ("a",)}),
        (["--allow-unix-socket", "/s"], {"sandbox.network.allowUnixSockets": ("/s",)}),
        (["--deny-unix-socket", "/s"], {"sandbox.network.denyUnixSockets": ("/s",)}),
    ],
)
def test_flags_are_a_document_of_the_highest_layer(words: list[str], values: dict[str, object]) -> None:
    assert document(*words) == Document(Layer.COMMAND_LINE, "", values)


def test_no_flags_say_nothing() -> None:
    assert document() is None
