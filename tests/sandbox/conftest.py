"""A project and a home of the test's own, and policies for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from stockade.policy.compile import compile_policy
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy


class Ground:
    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.home = root / "home"
        self.project.mkdir(parents=True)
        self.home.mkdir()

    def policy(self, **values: Any) -> SandboxPolicy:
        """A policy with settings given as ``filesystem__allowWrite=("/x",)``."""
        named = {f"sandbox.{name.replace('__', '.')}": value for name, value in values.items()}
        settings = merge([Document(Layer.USER, "settings.json", named)])
        return compile_policy(settings, cwd=str(self.project), home=str(self.home))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path.resolve())
