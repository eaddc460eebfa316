"""The network is there before the command is: its first action may be a call, every time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.enforcement.network.conftest import Net, Open

    from stockade.sandbox.blocking import BlockingSandbox

BY_PROXY = "curl -sS -o /dev/null http://web.test:{http}/"
BY_NOTHING = "read -r line <>/dev/tcp/web.test/{banner} && echo $line"


def _lines(net: Net) -> tuple[str, str]:
    return BY_PROXY.format(http=net.http.port), BY_NOTHING.format(banner=net.banner.port)


def _failures(sandbox: BlockingSandbox, line: str, times: int) -> list[bytes]:
    done = (sandbox.run(("bash", "-c", line), timeout=60) for _ in range(times))
    return [each.stderr for each in done if each.exit_code != 0]


@pytest.mark.parametrize("part", range(4))
def test_the_first_call_of_a_command_works_every_time(net: Net, opened: Open, part: int) -> None:
    line = _lines(net)[part % 2]
    assert _failures(opened(*net.allow("web.test")), line, 125) == []


def test_the_first_call_of_a_session_works_every_time(net: Net) -> None:
    for turn in range(20):
        with net.sandbox(*net.allow("web.test")) as sandbox:
            assert _failures(sandbox, _lines(net)[turn % 2], 1) == []


def test_the_first_call_where_nothing_is_allowed_is_refused_at_once_every_time(net: Net) -> None:
    before = len(net.journal)
    for _ in range(5):
        with net.sandbox() as sandbox:
            refused = sandbox.run(("curl", "-sS", "--fail", f"http://web.test:{net.http.port}/"), timeout=60)
            assert (refused.exit_code, b"403" in refused.stderr) == (22, True)
    assert net.journal.since(before) == []
