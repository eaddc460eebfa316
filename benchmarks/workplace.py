"""The same conditions for everybody who is measured: a directory of its own, a small environment, one policy."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from contender import SHELL
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator

#: In srt's shape, which Stockade reads too.
POLICY = {
    "network": {"allowedDomains": [], "deniedDomains": []},
    "filesystem": {"denyRead": [], "allowRead": [], "allowWrite": ["."], "denyWrite": []},
    # srt counts the levels down to a hook itself; we count those down to its repository.
    "mandatoryDenySearchDepth": 4,
}


class Workplace(Value):
    """A place for trees, and the settings that hold in them."""

    base: Path
    settings: Path


@contextmanager
def workplace() -> Iterator[Workplace]:
    """Make a place that is removed afterwards, with an environment in which nobody's own settings count."""
    base = Path(tempfile.mkdtemp(prefix="benchmark-")).resolve()
    settings, home = base / "settings.json", base / "home"
    settings.write_text(json.dumps(POLICY))
    home.mkdir()
    directory, environment = Path.cwd(), dict(os.environ)
    small = {"PATH": environment.get("PATH", os.defpath), "HOME": str(home), "SHELL": SHELL, "LANG": "C.UTF-8"}
    try:
        _replace_environment(small)
        yield Workplace(base, settings)
    finally:
        os.chdir(directory)
        _replace_environment(environment)
        shutil.rmtree(base)


def _replace_environment(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
