"""A test of a wall that is skipped fails in CI, and only there, and only such a test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SKIPS = "import pytest\ndef test_wall() -> None:\n    pytest.skip('no bwrap here')\n"
FILES = {
    "enforcement/test_skips.py": SKIPS,
    "enforcement/test_marked.py": "import pytest\n@pytest.mark.skip(reason='x')\ndef test_wall() -> None: ...\n",
    "enforcement/test_whole.py": "import pytest\npytest.skip('no bwrap here', allow_module_level=True)\n",
    "enforcement/test_expected.py": "import pytest\n@pytest.mark.xfail\ndef test_wall() -> None: assert False\n",
    "enforcement/test_holds.py": "def test_wall() -> None: ...\n",
    "policy/test_skips.py": SKIPS,
}
NOT_RUN = {
    "enforcement/test_skips.py::test_wall",
    "enforcement/test_marked.py::test_wall",
    "enforcement/test_whole.py",
    "enforcement/test_expected.py::test_wall",
}


@pytest.mark.parametrize(
    ("ci", "workers", "failed"),
    [
        pytest.param("true", "0", NOT_RUN, id="in CI"),
        pytest.param("true", "1", NOT_RUN, id="in CI, with workers"),
        pytest.param("", "0", set(), id="elsewhere"),
    ],
)
def test_a_skipped_wall_fails_in_ci(tmp_path: Path, ci: str, workers: str, failed: set[str]) -> None:
    shutil.copy(HERE / "conftest.py", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    words = "-m pytest -q --tb=no -rfE --continue-on-collection-errors --import-mode=importlib -p no:cacheprovider -n"
    ran = subprocess.run(
        [sys.executable, *words.split(), workers, f"--rootdir={tmp_path}"],
        cwd=tmp_path,
        env=os.environ | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)) == failed, ran.stdout
    assert ran.returncode == bool(failed)
