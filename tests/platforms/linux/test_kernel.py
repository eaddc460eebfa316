from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux import kernel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def in_child(action: Callable[[], None]) -> int:
    """Return the error number that an action ends with in a process of its own, 0 if it succeeds."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            action()
            code = 0
        except OSError as error:
            code = error.errno or 254
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("real", 0, id="directory"),
        pytest.param("real/file", 0, id="file"),
        pytest.param("link/file", errno.ELOOP, id="link-on-the-way"),
        pytest.param("absent", errno.ENOENT, id="absent"),
    ],
)
def test_a_path_is_resolved_without_links(tmp_path: Path, name: str, expected: int) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").touch()
    (tmp_path / "link").symlink_to("real")
    path = os.fsencode(tmp_path / name)
    assert in_child(lambda: os.close(kernel.resolve(path))) == expected


def test_a_refusal_names_the_path() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        kernel.resolve(b"/no/such/place")
    assert caught.value.filename == b"/no/such/place"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param(lambda: kernel.prctl(kernel.PR_SET_DUMPABLE, 0), 0, id="prctl"),
        pytest.param(lambda: kernel.prctl(12345), errno.EINVAL, id="prctl-unknown"),
        pytest.param(lambda: kernel.setns(0, kernel.CLONE_NEWNS), errno.EINVAL, id="setns-of-no-namespace"),
        pytest.param(lambda: kernel.limit_capabilities(0), 0, id="no-capabilities"),
        pytest.param(lambda: kernel.install_filter(b""), errno.EINVAL, id="empty-filter"),
        pytest.param(lambda: kernel.claim_terminal(0), errno.ENOTTY, id="no-terminal"),
    ],
)
def test_each_call_answers_as_the_kernel_does(action: Callable[[], None], expected: int) -> None:
    def with_a_pipe_as_input() -> None:
        os.dup2(os.pipe()[0], 0)
        action()

    assert in_child(with_a_pipe_as_input) == expected


def test_closing_from_a_number_on_leaves_the_rest() -> None:
    def close() -> None:
        high = os.dup2(0, 700)
        kernel.close_from(3)
        os.fstat(2)
        os.fstat(high)

    assert in_child(close) == errno.EBADF


def test_no_descriptor_survives_an_exec() -> None:
    def mark() -> None:
        os.dup2(0, 700, inheritable=True)
        kernel.close_on_exec_from(3)
        if os.get_inheritable(700):
            raise OSError(errno.EBADF, "inheritable")

    assert in_child(mark) == 0
