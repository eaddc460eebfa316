"""A command reaches the proxies by a credential of its own, which dies with it and is shown to nobody."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.enforcement.network.conftest import Net, Open

    from stockade.sandbox.blocking import BlockingSandbox

HOLD = "import os; print(os.environ['HTTP_PROXY'], flush=True); input()"


def _fetch(net: Net, sandbox: BlockingSandbox, proxy: str) -> str:
    words = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-x", proxy, f"http://web.test:{net.http.port}/")
    return sandbox.run(words, timeout=60).output


def test_the_credential_of_a_command_that_ended_is_worth_nothing(net: Net, opened: Open) -> None:
    sandbox = opened(*net.allow("web.test"))
    line = f'curl -s -o /dev/null -w "%{{http_code}} $HTTP_PROXY" http://web.test:{net.http.port}/'
    code, proxy = sandbox.run(line).output.split()
    assert code == "200"
    before = len(net.journal)
    assert _fetch(net, sandbox, proxy) == "407"
    assert net.journal.since(before) == []


def test_the_credential_of_another_session_is_worth_nothing(net: Net, opened: Open) -> None:
    one, other = opened(*net.allow("web.test")), opened(*net.allow("web.test", "other.test"))
    with one.spawn((sys.executable, "-I", "-S", "-c", HOLD), stdin=-1) as process:
        assert process.stdout is not None
        proxy = process.stdout.readline().decode().strip()
        before = len(net.journal)
        assert _fetch(net, other, proxy) == "407"
        assert net.journal.since(before) == []


def test_no_process_of_the_host_shows_a_credential_in_its_arguments(
    net: Net, opened: Open, processes_with: Callable[[str], list[int]]
) -> None:
    with opened(*net.allow("web.test")).spawn((sys.executable, "-I", "-S", "-c", HOLD), stdin=-1) as process:
        assert process.stdout is not None
        proxy = process.stdout.readline().decode().strip()
        token = proxy.rpartition("@")[0].rpartition(":")[2]
        assert len(token) > 15
        assert processes_with(token) == []
