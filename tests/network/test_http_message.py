from __future__ import annotations

from stockade.network.http_message import Credentials, TunnelRequested


def test_a_password_is_not_printed() -> None:
    request = TunnelRequested("example.com", "443", Credentials("c-17", "secret"))
    assert repr(request) == (
        "TunnelRequested(host_text='example.com', port_text='443', credentials=Credentials('c-17', ...))"
    )
