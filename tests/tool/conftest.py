"""Policies of the test's own, by settings; and a project, a home and tools that live in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stockade.policy.compile import compile_policy
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.settings.sources import Locations

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.policy.model import SandboxPolicy


class Yard:
    """A project and a home that no other settings reach."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.home = root / "home"
        self.outside = root / "outside"
        self.managed = root / "etc" / "managed-settings.json"
        for folder in (self.project / ".git", self.home, self.outside, self.managed.parent):
            folder.mkdir(parents=True)
        self.local = self.project / ".stockade" / "settings.local.json"

    @property
    def locations(self) -> Locations:
        return Locations(str(self.project), str(self.home), managed=str(self.managed))

    def policy(self, permissions: dict[str, tuple[str, ...]] | None = None, **values: Any) -> SandboxPolicy:
        """A policy with settings given as ``filesystem__allowWrite=("/x",)``, and rules by their list."""
        named: dict[str, object] = {f"sandbox.{name.replace('__', '.')}": value for name, value in values.items()}
        named = {"sandbox.enabled": True} | named
        named |= {f"permissions.{name}": rules for name, rules in (permissions or {}).items()}
        settings = merge([Document(Layer.USER, "settings.json", named)])
        return compile_policy(settings, cwd=str(self.project), home=str(self.home))

    def write(self, path: Path, settings: object) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))
        return path

    def user(self, settings: object) -> Path:
        return self.write(self.home / ".stockade" / "settings.json", settings)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path.resolve())
