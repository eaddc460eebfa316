from __future__ import annotations

import os
from typing import TYPE_CHECKING

from stockade.filesystem.signature import signature_of

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_whose_time_was_set_back_has_another_signature(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one")
    before = file.stat()
    while signature_of(file.stat())[-1] == before.st_ctime_ns:
        file.write_text("two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert signature_of(file.stat()) != signature_of(before)
