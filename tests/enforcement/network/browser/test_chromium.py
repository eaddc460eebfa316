"""A browser reaches an allowed name by TLS, and no other: its hellos are larger and odder than those of others.

It does not know of the proxies, because it has no flag for what they want to hear.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.enforcement.network.conftest import Net, Open

    from stockade.sandbox.result import Result


def _visit(net: Net, opened: Open, host: str) -> Result:
    place = net.project / f"browser{net.mark()}"
    place.mkdir()
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    words = (
        os.environ["STOCKADE_TEST_BROWSER"],
        *(*flags, *quiet, "--no-proxy-server", f"--user-data-dir={place}"),
        # The authority is the tests' own, and a browser has no flag for one.
        *("--ignore-certificate-errors", "--dump-dom", f"https://{host}:{net.https.port}/"),
    )
    return opened(*net.allow("web.test")).run(words, env={"HOME": str(place)}, timeout=100)


def test_a_browser_reaches_the_allowed_name(net: Net, opened: Open) -> None:
    before = len(net.journal)
    done = _visit(net, opened, "web.test")
    assert b"hello from web.test" in done.stdout, done.stderr
    assert "server name web.test" in net.journal.since(before)
    assert [each for each in done.violations if each.target.startswith("web.test")] == []


def test_a_browser_reaches_no_other_name(net: Net, opened: Open) -> None:
    before = len(net.journal)
    done = _visit(net, opened, "evil.test")
    assert (b"hello from" in done.stdout, b"net::ERR_" in done.stderr) == (False, True), done.stderr
    assert [entry for entry in net.journal.since(before) if not entry.startswith("dns")] == []
