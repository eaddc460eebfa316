from __future__ import annotations

import pytest

from stockade.errors import StockadeError
from stockade.tool.root import require_not_root


def test_root_may_not_skip_permissions() -> None:
    for environment in ({}, {"IS_SANDBOX": "0"}, {"IS_SANDBOX": "true"}):
        with pytest.raises(StockadeError, match="cannot be skipped as root"):
            require_not_root(0, environment)


def test_others_may_and_so_may_root_in_a_container() -> None:
    require_not_root(1000, {})
    require_not_root(0, {"IS_SANDBOX": "1"})
