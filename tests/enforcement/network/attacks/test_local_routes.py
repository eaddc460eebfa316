"""An address that only a route makes ours is ours: no allowed name leads to a service of this host through it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("routed_world.py")
SOURCE = Path(__file__).parents[4] / "src"
# In a network of the test's own: a range, the same in IPv6, one that a rule leads to, and one for a port alone.
ROUTES = """
ip link set lo up
ip route add local 198.51.100.0/24 dev lo
ip -6 route add local 2001:db8:1::/48 dev lo
ip -6 route add local 64:ff9b::203.0.113.77/128 dev lo
ip -6 rule add to 2001:db8:2::7 lookup 100
ip -6 route add local 2001:db8:2::7 dev lo table 100
ip -6 rule add ipproto tcp dport 8642 lookup 101
ip -6 route add local 2001:db8:3::/48 dev lo table 101
"""
OURS = ("range", "range-6", "nat64", "nat64-own", "by-rule", "by-port")


def _apart(words: list[str]) -> list[str]:
    """Return words that run in a network of their own, with these routes, as this very user."""
    if os.geteuid() == 0:
        return ["unshare", "-n", "/bin/bash", "-ec", f"{ROUTES}\nexec {shlex.join(words)}"]
    again = ["unshare", "--user", f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}", "--", *words]
    return ["unshare", "-rn", "/bin/bash", "-ec", f"{ROUTES}\nexec {shlex.join(again)}"]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    missing = [name for name in ("ip", "unshare", "curl") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("routed").resolve()
    for name in ("project", "home"):
        (folder / name).mkdir()
    done = subprocess.run(
        _apart([sys.executable, str(PROGRAM), str(folder)]),
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", OURS)
def test_an_address_that_only_a_route_makes_ours_is_not_reached(said: dict[str, Any], name: str) -> None:
    outcome = said["found"][name]
    assert outcome["control"], "it proves nothing: without walls nobody was reached either"
    for kind in ("name", "literal"):
        by_proxy, without, heard = outcome[kind]
        assert by_proxy.startswith("HTTP/1.1 403 "), by_proxy
        assert by_proxy.endswith(" blocked-address"), by_proxy
        assert (without, heard) == ("000", False)


def test_nobody_is_asked_about_it(said: dict[str, Any]) -> None:
    assert set(said["asked"]) <= {"10.77.77.77"}


def test_an_address_that_leads_nowhere_fails_as_ever(said: dict[str, Any]) -> None:
    by_proxy, without, _ = said["found"]["elsewhere"]["name"]
    assert (by_proxy.split()[1], "blocked" in by_proxy, without) == ("502", False, "000")


def test_the_address_itself_in_the_allowed_list_opens_it(said: dict[str, Any]) -> None:
    for kind in ("name", "literal"):
        by_proxy, without, heard = said["found"]["opened"][kind]
        assert (by_proxy.split()[1], without, heard) == ("200", "200", True)
