from __future__ import annotations

import os

import pytest

from stockade.platforms.linux.supervision import HostView, Supervision


def test_what_is_opened_of_the_host_is_closed_with_the_supervision() -> None:
    view = HostView()
    assert os.path.samestat(os.fstat(view.root), os.stat("/"))
    supervision = Supervision(view, [b"/x"], lambda path: path == b"/y", 3)
    assert (supervision.absent, supervision.is_listed(b"/y"), supervision.capabilities) == ([b"/x"], True, 3)
    assert (supervision.denied, supervision.listings) == (None, None)
    opened = view.root, view.listeners.fileno()
    supervision.close()
    for descriptor in opened:
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(descriptor)
