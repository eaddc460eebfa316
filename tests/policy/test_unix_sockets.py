from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.policy.compile import compile_policy
from stockade.policy.places import Disk
from stockade.policy.unix_sockets import Reason, allowed_sockets, datagram_remedy, denied_sockets, judge_socket
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy
    from stockade.policy.unix_sockets import SocketVerdict

DENY, LIST, ALL = (f"sandbox.network.{name}UnixSockets" for name in ("deny", "allow", "allowAll"))


def _policy(root: Path, *documents: tuple[Layer, dict[str, object]]) -> SandboxPolicy:
    found = [Document(layer, f"{layer}.json", values) for layer, values in documents]
    return compile_policy(merge(found), cwd=str(root / "project"), home=str(root / "home"))


def _judged(policy: SandboxPolicy, path: object) -> SocketVerdict:
    return judge_socket(policy.sockets, policy.files, str(path), Disk())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name in ("project", "home", "run"):
        (root / name).mkdir()
    (root / "run" / "s").touch()
    return root


@pytest.mark.parametrize(
    ("settings", "path", "reason"),
    [
        pytest.param({}, "{}/run/s", Reason.UNLISTED, id="nothing"),
        pytest.param({LIST: ["{}/run/s"]}, "{}/run/s", Reason.LISTED, id="listed"),
        pytest.param({LIST: ["{}/run"]}, "{}/run/s", Reason.LISTED, id="listed above"),
        pytest.param({ALL: True}, "{}/run/s", Reason.ALL, id="all"),
        pytest.param({DENY: ["{}/run/s"]}, "{}/run/s", Reason.DENIED, id="denied"),
        pytest.param({ALL: True, DENY: ["{}/run/s"]}, "{}/run/s", Reason.DENIED, id="denied of all"),
        pytest.param({LIST: ["{}/run/s"], DENY: ["{}/run/s"]}, "{}/run/s", Reason.DENIED, id="denied and listed"),
        pytest.param({LIST: ["{}/run/s"], DENY: ["{}/run"]}, "{}/run/s", Reason.DENIED, id="listed deeper, and denied"),
        pytest.param({ALL: True, DENY: ["{}/r*/?"]}, "{}/run/s", Reason.DENIED, id="pattern"),
        pytest.param({ALL: True, DENY: ["{}/run/s"]}, "{}/run/t", Reason.ALL, id="another"),
        pytest.param({ALL: True, DENY: ["s"]}, "s", Reason.DENIED, id="relative"),
        pytest.param({ALL: True, DENY: ["~/s"]}, "{}/home/s", Reason.DENIED, id="home"),
        pytest.param({ALL: True, DENY: ["@name"]}, "{}/project/@name", Reason.DENIED, id="no abstract name"),
    ],
)
def test_a_deny_wins_over_every_allow(root: Path, settings: dict[str, object], path: str, reason: Reason) -> None:
    filled = {
        name: tuple(text.replace("{}", str(root)) for text in value) if isinstance(value, list) else value
        for name, value in settings.items()
    }
    verdict = _judged(_policy(root, (Layer.USER, filled)), path.replace("{}", str(root)))
    assert (verdict.reason, verdict.allowed) == (reason, reason in (Reason.LISTED, Reason.ALL))


def test_links_are_followed_both_ways(root: Path) -> None:
    (root / "link").symlink_to("run/s")
    by_link, by_place = (
        _policy(root, (Layer.USER, {ALL: True, DENY: (f"{root}/{name}",)})) for name in ("link", "run/s")
    )
    for policy in (by_link, by_place):
        for name in ("link", "run/s"):
            assert _judged(policy, root / name).reason is Reason.DENIED


def test_denies_of_all_layers_count_and_a_verdict_names_rule_file_and_remedy(root: Path) -> None:
    policy = _policy(
        root,
        (Layer.COMMAND_LINE, {DENY: (f"{root}/a",), ALL: True}),
        (Layer.POLICY, {DENY: (f"{root}/b",)}),
        (Layer.PROJECT, {DENY: (f"{root}/c",)}),
    )
    remedies = {name: _judged(policy, root / name).remedy for name in "abcd"}
    assert remedies == {
        "a": f'leave out command line.json "{root}/a"',
        "b": "only the administrator can allow it (policy.json)",
        "c": f'remove "{root}/c" from sandbox.network.denyUnixSockets[0] in project.json',
        "d": "",
    }
    assert str(_judged(policy, root / "b")) == (
        f'may not connect to "{root}/b": a rule denies this unix socket by "{root}/b" of policy.json (policy);'
        " only the administrator can allow it (policy.json)"
    )


def test_what_is_not_listed_can_be(root: Path) -> None:
    assert _judged(_policy(root), root / "run" / "s").remedy == (
        f'add "{root}/run/s" to sandbox.network.allowUnixSockets'
    )


@pytest.mark.parametrize(
    ("documents", "remedy"),
    [
        pytest.param([(Layer.USER, {})], f"set {ALL} to true", id="not all"),
        pytest.param([(Layer.USER, {ALL: True})], "", id="all"),
        pytest.param(
            [(Layer.USER, {ALL: True, DENY: ("/a",)})], f'remove "/a" from {DENY}[0] in user.json', id="one denied"
        ),
        pytest.param(
            [(Layer.USER, {DENY: ("/a",)})],
            f'remove "/a" from {DENY}[0] in user.json, and set {ALL} to true',
            id="one denied, not all allowed",
        ),
        pytest.param([(Layer.USER, {ALL: True, DENY: ("/a", "/b")})], f"remove all of {DENY}", id="many"),
        pytest.param(
            [(Layer.POLICY, {DENY: ("/p",)}), (Layer.USER, {DENY: ("/a",)})],
            "only the administrator can allow it (policy.json)",
            id="one is the administrator's",
        ),
    ],
)
def test_what_would_allow_datagrams(root: Path, documents: list[tuple[Layer, dict[str, object]]], remedy: str) -> None:
    assert datagram_remedy(_policy(root, *documents).sockets) == remedy


def test_the_walls_get_places(root: Path) -> None:
    (root / "link").symlink_to("run/s")
    listing = _policy(root, (Layer.USER, {LIST: (f"{root}/link",), DENY: (f"{root}/link", f"{root}/run/s")}))
    assert [form.path for form in allowed_sockets(listing, Disk())] == [f"{root}/run/s", f"{root}/link"]
    assert [form.path for form in denied_sockets(listing.sockets, Disk())] == [f"{root}/link", f"{root}/run/s"]
    everything = _policy(root, (Layer.USER, {ALL: True}))
    assert [form.path for form in allowed_sockets(everything, Disk())] == ["/"]
