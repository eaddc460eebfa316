from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import landlock
from stockade.platforms.linux.landlock import REFER, TRUNCATE, handled, outermost

if TYPE_CHECKING:
    from pathlib import Path


def test_rights_by_version() -> None:
    assert handled(0) == 0
    assert handled(2) & REFER
    assert not handled(2) & TRUNCATE
    assert handled(3) & TRUNCATE
    assert handled(99) == handled(3)
    assert not handled(99) & 0b1101, "reading and running are not its matter"


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ([b"/a", b"/a/b", b"/c"], [b"/a", b"/c"]),
        ([b"/a", b"/ab"], [b"/a", b"/ab"]),
        ([b"/", b"/a"], [b"/"]),
        ([], []),
    ],
)
def test_only_the_outermost_places_need_a_rule(targets: list[bytes], expected: list[bytes]) -> None:
    mounts = [(b"writable", target, b"") for target in targets] + [(b"read-only", b"/x", b"")]
    assert outermost(mounts, frozenset({b"writable"})) == expected


ALONE = """
import os, sys
from stockade.platforms.linux import kernel, landlock
inside, outside, stream = sys.argv[1:]
given = os.open(stream, os.O_WRONLY), os.open(outside, os.O_RDONLY)
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
rights = landlock.handled(landlock.version())
landlock.restrict(landlock.prepare(rights, [os.fsencode(inside)]), rights, given)
def attempt(deed):
    try:
        deed()
    except OSError as error:
        return type(error).__name__
    return "done"
print(
    attempt(lambda: open(inside + "/new", "w")),
    attempt(lambda: os.rename(inside + "/new", inside + "/sub/moved")),
    attempt(lambda: open(outside, "w")),
    attempt(lambda: open(outside)),
    attempt(lambda: os.unlink(outside)),
    attempt(lambda: open(f"/proc/self/fd/{given[0]}", "w")),
    attempt(lambda: open(f"/proc/self/fd/{given[1]}", "w")),
    attempt(lambda: open("/dev/null", "w")),
)
"""


def test_writing_is_for_the_places_and_the_streams_alone(tmp_path: Path) -> None:
    if not landlock.version():
        pytest.skip("this kernel has no Landlock")
    root = tmp_path.resolve()
    (root / "inside" / "sub").mkdir(parents=True)
    for name in ("outside", "stream"):
        (root / name).write_text("x")
    words = [sys.executable, "-c", ALONE, *(str(root / name) for name in ("inside", "outside", "stream"))]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.split() == [
        "done",
        "done",
        "PermissionError",
        "done",
        "PermissionError",
        "done",
        "PermissionError",
        "done",
    ]
