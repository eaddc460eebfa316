from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.platforms.linux.mount import JailSpec, Mount


@pytest.mark.parametrize(
    ("operation", "target", "message"),
    [
        pytest.param("mounted", "/a", "no such mount operation: 'mounted'", id="operation"),
        pytest.param("hidden", "a", "not an absolute, normal path: 'a'", id="relative"),
        pytest.param("hidden", "/a/../b", "not an absolute, normal path: '/a/../b'", id="parent"),
        pytest.param("hidden", "/a/", "not an absolute, normal path: '/a/'", id="slash"),
        pytest.param("hidden", "//a", "not an absolute, normal path: '//a'", id="two-slashes"),
        pytest.param("hidden", "/a\0b", "not an absolute, normal path: '/a\\x00b'", id="nul"),
        pytest.param("hidden", "/", "the whole tree cannot be hidden", id="root"),
        pytest.param("writable", "/dev/shm", "/dev/shm belongs to the jail itself", id="dev"),
        pytest.param("writable", "/proc", "/proc belongs to the jail itself", id="proc"),
    ],
)
def test_a_mount_that_cannot_be_meant_is_refused(operation: str, target: str, message: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        Mount(operation, target)  # type: ignore[arg-type] # the point of the first case
    assert caught.value.message == message


@given(st.text(max_size=20))
def test_any_text_is_a_target_or_is_refused(text: str) -> None:
    try:
        Mount("hidden", text)
    except InvalidTextError as error:
        assert error.hint  # noqa: PT017 - either outcome is right


def test_a_path_of_any_bytes_is_written_as_it_is() -> None:
    mount = Mount("read-only", "/a \udcff\n*", source="/b")
    assert mount.encoded() == (b"read-only", b"/a \xff\n*", b"/b")


@pytest.mark.parametrize(
    ("targets", "refused"),
    [
        pytest.param(["/a", "/a/b", "/a/b/c/d"], None, id="outside-in"),
        pytest.param(["/a", "/a"], None, id="the-same-twice"),
        pytest.param(["/a", "/ab"], None, id="only-a-prefix"),
        pytest.param(["/a/b", "/a"], "/a", id="inside-out"),
        pytest.param(["/a/b/c", "/x", "/a"], "/a", id="inside-out-deeper"),
        pytest.param(["/a", "/"], "/", id="root-last"),
    ],
)
def test_what_surrounds_a_place_comes_before_it(targets: list[str], refused: str | None) -> None:
    mounts = tuple(Mount("writable", target) for target in targets)
    if refused is None:
        assert JailSpec(mounts).mounts == mounts
        return
    with pytest.raises(InvalidTextError) as caught:
        JailSpec(mounts)
    assert caught.value.message == f"the mount on {refused} would cover an earlier one below it"
