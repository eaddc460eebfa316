from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stockade.platforms.macos import visitor
from stockade.platforms.macos.visitor import visit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        pytest.param(None, 125, "the session that this command was wrapped by is closed", id="no-order"),
        pytest.param("{", 125, "cannot start the command: ", id="no-json"),
    ],
)
def test_what_goes_wrong_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, status: int, message: str
) -> None:
    path = tmp_path / "order"
    if text is not None:
        path.write_text(text)
    assert visit([str(path)]) == status
    assert message in capsys.readouterr().err


def test_it_needs_an_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert visit([]) == 2
    assert "order" in capsys.readouterr().err


def test_it_becomes_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "order").write_text('{"argv": ["a"]}')
    became: list[object] = []
    monkeypatch.setattr(visitor, "become", became.append)
    visit([str(tmp_path / "order")])
    assert became == [{"argv": ["a"]}]
