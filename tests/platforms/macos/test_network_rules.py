from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.evaluator import Evaluator
from stockade.policy.model import Sockets
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.platforms.macos.conftest import Case

CWD = "/Users/ann/w"
CLOSED = Sockets((), False, False, None, None)
AGENT = Sourced(PathPattern.literal("/tmp/agent/s"), Origin(Layer.USER))

DENIED = CLOSED.but(all_unix=True, denied_unix=(AGENT,))
OWN = Sourced(PathPattern.parse("/tmp/own/*.sock", cwd="/", home="/"), Origin(Layer.USER))
EVERY = Sourced(PathPattern.literal("/"), Origin(Layer.USER))


def _connect(address: str) -> Attempt:
    return Attempt("network-outbound", remote=address)


def _socket(path: str) -> Attempt:
    return Attempt("network-outbound", path)


@pytest.mark.parametrize(
    ("sockets", "attempt", "allowed"),
    [
        pytest.param(CLOSED, _connect("127.0.0.1:4000"), True, id="a-proxy"),
        pytest.param(CLOSED, _connect("[::1]:4001"), True, id="the-other-proxy"),
        pytest.param(CLOSED, _connect("127.0.0.1:4002"), False, id="another-port"),
        pytest.param(CLOSED, _connect("192.0.2.1:4000"), False, id="another-host-at-that-port"),
        pytest.param(CLOSED, _connect("192.0.2.1:53"), False, id="a-name-server"),
        pytest.param(CLOSED, Attempt("network-bind", local="127.0.0.1:4000"), False, id="not-the-proxy-itself"),
        pytest.param(CLOSED, Attempt("network-bind", local="127.0.0.1:8000"), False, id="no-server"),
        pytest.param(CLOSED, Attempt("network-inbound", local="127.0.0.1:8000"), False, id="nobody-comes"),
        pytest.param(CLOSED.but(local_binding=True), Attempt("network-bind", local="[::]:80"), True, id="server"),
        pytest.param(CLOSED.but(local_binding=True), Attempt("network-inbound", local="[::]:80"), True, id="served"),
        pytest.param(CLOSED.but(local_binding=True), _connect("127.0.0.1:80"), True, id="reaching-a-server"),
        pytest.param(CLOSED.but(local_binding=True), _connect("192.0.2.1:80"), False, id="binding-is-no-way-out"),
        pytest.param(CLOSED, _socket("/tmp/agent/s"), False, id="no-unix-socket"),
        pytest.param(CLOSED, _socket("/private/var/run/mDNSResponder"), False, id="no-names"),
        pytest.param(CLOSED, _socket("/private/tmp/own/s"), True, id="own-socket"),
        pytest.param(CLOSED, Attempt("network-bind", "/private/tmp/own/s"), True, id="own-server"),
        pytest.param(CLOSED.but(unix=(AGENT,)), _socket("/private/tmp/agent/s"), True, id="listed"),
        pytest.param(CLOSED.but(unix=(AGENT,)), _socket("/private/tmp/agent/t"), False, id="not-listed"),
        pytest.param(CLOSED.but(all_unix=True), _socket("/var/run/docker.sock"), True, id="all"),
        pytest.param(CLOSED.but(all_unix=True), _connect("192.0.2.1:80"), False, id="all-are-no-way-out"),
        pytest.param(DENIED, _socket("/private/tmp/agent/s"), False, id="denied-where-all-are-allowed"),
        pytest.param(DENIED, _socket("/tmp/agent/s"), False, id="denied-by-the-other-spelling"),
        pytest.param(DENIED, _socket("/tmp/agent/S"), False, id="denied-in-capitals"),
        pytest.param(DENIED, _socket("/tmp/agent/s/below"), False, id="denied-below"),
        pytest.param(DENIED, _socket("/System/Volumes/Data/private/tmp/agent/s"), False, id="denied-by-a-second-path"),
        pytest.param(DENIED, _socket("/tmp/agent/t"), True, id="another-than-the-denied"),
        pytest.param(DENIED.but(all_unix=False, unix=(AGENT,)), _socket("/tmp/agent/s"), False, id="denied-and-listed"),
        pytest.param(CLOSED.but(denied_unix=(OWN,)), _socket("/private/tmp/own/s.sock"), False, id="denied-and-own"),
        pytest.param(CLOSED.but(denied_unix=(OWN,)), _socket("/private/tmp/own/s"), True, id="own-and-not-denied"),
        pytest.param(
            CLOSED.but(denied_unix=(OWN,)),
            Attempt("file-write-unlink", "/private/tmp/own/s.sock"),
            False,
            id="not-moved",
        ),
        pytest.param(DENIED.but(denied_unix=(EVERY,)), _socket("/tmp/agent/t"), False, id="every-one-denied"),
        pytest.param(CLOSED, Attempt("system-socket", domain="AF_UNIX"), True, id="a-pair"),
        pytest.param(CLOSED, Attempt("system-socket", domain="AF_SYSTEM", protocol="2"), True, id="statistics"),
        pytest.param(CLOSED, Attempt("system-socket", domain="AF_SYSTEM", protocol="1"), False, id="other-controls"),
    ],
)
def test_sockets(case: Callable[..., Case], sockets: Sockets, attempt: Attempt, allowed: bool) -> None:  # noqa: FBT001 - a column of the table
    made = case(sockets=sockets, ports=(4000, 4001), temporary="/private/tmp/own")
    assert Evaluator(made.profile.text).allows(attempt) == allowed


def test_without_proxies_nothing_is_reached(case: Callable[..., Case]) -> None:
    walls = Evaluator(case().profile.text)
    assert not walls.allows(_connect("127.0.0.1:4000"))
    assert not walls.allows(_socket("/private/tmp/own/s"))


def test_what_holds_a_denied_socket_cannot_be_moved(case: Callable[..., Case]) -> None:
    inner = Sourced(PathPattern.literal(f"{CWD}/run/inner/s"), Origin(Layer.USER))
    walls = Evaluator(case(sockets=CLOSED.but(all_unix=True, denied_unix=(inner,))).profile.text)
    moved = [f"{CWD}/run", f"{CWD}/run/inner", f"{CWD}/run/inner/s"]
    assert [walls.allows(Attempt("file-write-unlink", path)) for path in moved] == [False, False, False]
    assert walls.allows(Attempt("file-write-unlink", f"{CWD}/run/other"))
    assert walls.allows(Attempt("file-write-create", f"{CWD}/run/inner/t"))


def test_a_link_to_a_denied_socket_is_about_both(case: Callable[..., Case]) -> None:
    entries = {"/opt/real": None, "/opt/link.sock": "real"}
    for text in ("/opt/link.sock", "/opt/*.sock"):
        rule = Sourced(PathPattern.parse(text, cwd="/", home="/"), Origin(Layer.USER))
        walls = Evaluator(case(entries, sockets=CLOSED.but(all_unix=True, denied_unix=(rule,))).profile.text)
        assert not walls.allows(_socket("/opt/real"))
        assert not walls.allows(_socket("/opt/link.sock"))
        assert walls.allows(_socket("/opt/other"))
