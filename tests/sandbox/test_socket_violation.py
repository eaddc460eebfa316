from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.policy.compile import compile_policy
from stockade.policy.places import Disk
from stockade.sandbox.socket_violation import DATAGRAM, socket_violation
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.violations.violation import Occasion

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.violations.violation import Violation

DENY, LIST, ALL = (f"sandbox.network.{name}UnixSockets" for name in ("deny", "allow", "allowAll"))


def _told(layer: Layer, settings: dict[str, object], path: str) -> Violation:
    policy = compile_policy(merge([Document(layer, "s.json", settings)]), cwd="/nowhere", home="/nowhere/home")
    return socket_violation(path, Occasion(0.0, times=2), policy.sockets, policy.files, Disk())


@pytest.mark.parametrize(
    ("layer", "settings", "path", "text"),
    [
        pytest.param(
            Layer.USER,
            {ALL: True, DENY: ("/run/*.sock",)},
            "/run/a.sock",
            'connect to the socket "/run/a.sock" (2 times): a rule denies this unix socket by "/run/*.sock" of s.json'
            f' (user) at $.{DENY}[0]; remove "/run/*.sock" from {DENY}[0] in s.json',
            id="denied",
        ),
        pytest.param(
            Layer.POLICY,
            {LIST: ("/run/a.sock",), DENY: ("/run/a.sock",)},
            "/run/a.sock",
            'connect to the socket "/run/a.sock" (2 times): a rule denies this unix socket by "/run/a.sock" of s.json'
            f" (policy) at $.{DENY}[0]; only the administrator can allow it (s.json)",
            id="denied by the administrator",
        ),
        pytest.param(
            Layer.USER,
            {DENY: ("/run/a.sock",)},
            "/run/b.sock",
            'connect to the socket "/run/b.sock" (2 times): no rule allows this unix socket, and nobody in this session'
            f' listens on it; add "/run/b.sock" to {LIST}',
            id="not listed",
        ),
        pytest.param(
            Layer.USER,
            {ALL: True, DENY: ("/yard/closed",)},
            "/yard/x",
            'connect to the socket "/yard/x" (2 times): it is not called as its server called it, so it may be one that'
            f" {DENY} denies; connect to it by the path that its server listens on",
            id="moved",
        ),
        pytest.param(
            Layer.USER,
            {ALL: True},
            "/run/a.sock",
            'connect to the socket "/run/a.sock" (2 times): it was refused by the rules that held when the command'
            " started; run it again",
            id="allowed meanwhile",
        ),
        pytest.param(
            Layer.USER,
            {},
            DATAGRAM,
            'connect to the socket "(datagram)" (2 times): a unix datagram socket sends to any path without connecting;'
            f" set {ALL} to true",
            id="datagram",
        ),
        pytest.param(
            Layer.POLICY,
            {ALL: True, DENY: ("/run/a.sock",)},
            DATAGRAM,
            'connect to the socket "(datagram)" (2 times): a unix datagram socket sends to any path without connecting,'
            f" one that {DENY} denies too; only the administrator can allow it (s.json)",
            id="datagram where one is denied",
        ),
    ],
)
def test_what_was_refused_is_told_with_what_would_help(
    layer: Layer, settings: dict[str, object], path: str, text: str
) -> None:
    assert _told(layer, settings, path).text() == text


def test_what_a_command_puts_there_later_gets_into_no_remedy(tmp_path: Path) -> None:
    (tmp_path / "s").symlink_to("/run/engine.sock")
    assert _told(Layer.USER, {}, f"{tmp_path}/s").remedy == f'add "{tmp_path}/s" to {LIST}'
