from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.git_reference import references
from stockade.policy.places import Disk

if TYPE_CHECKING:
    from pathlib import Path

TOP, HOME = "/top", "/home/u"


class Configs(Disk):
    """A disk on which these configs are, and nothing else."""

    def __init__(self, **texts: bytes) -> None:
        self.texts = {f"/top/.git/{name}": text for name, text in texts.items()}

    def link(self, path: str) -> str | None:  # noqa: ARG002 - there is none
        return None

    def config(self, path: str) -> bytes | None:
        return self.texts.get(path)


def _paths(text: bytes, **others: bytes) -> list[str]:
    config = "/top/.git/config"
    found = references(config, config, (TOP,), HOME, Configs(config=text, **others))
    return [reference.path for reference in found]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b'[core]\nbare = false\nlogallrefupdates = true\n[remote "o"]url = a/b', [], id="ordinary"),
        pytest.param(b"[core]hooksPath = .husky", ["/top/.husky"], id="hooks-of-the-work-tree"),
        pytest.param(b"[CORE]HOOKSPATH = /x/hooks", ["/x/hooks"], id="absolute-hooks"),
        pytest.param(b'[core]hooksPath = "~/my hooks"', ["/home/u/my hooks"], id="hooks-at-home"),
        pytest.param(b"[core]hooksPath = :(optional)h", ["/top/h"], id="optional"),
        pytest.param(b"[core]hooksPath", [], id="hooks-without-a-value"),
        pytest.param(b"[core]hooksPath =", [], id="hooks-with-an-empty-value"),
        pytest.param(b"[core]hooksPath = a\nhooksPath = b", ["/top/a", "/top/b"], id="both-of-two"),
        pytest.param(b'[core ""]hooksPath = a', [], id="another-setting-of-the-same-look"),
        pytest.param(b"[include]path = ../x", ["/top/.git/../x"], id="include-beside-the-config"),
        pytest.param(b'[includeIf "gitdir:/y"]path = ~/x', ["/home/u/x"], id="include-with-a-condition"),
        pytest.param(b"[include]path = %(prefix)/x", [], id="where-git-is-installed"),
        pytest.param(b"[core]fsmonitor = true", [], id="no-program"),
        pytest.param(b"[core]fsmonitor = ./tools/hook.sh", ["/top/./tools/hook.sh"], id="monitor"),
        pytest.param(b"[core]editor = vim", [], id="a-program-of-the-path"),
        pytest.param(b"[core]sshCommand = X=/y tools/ssh -v", ["/top/tools/ssh"], id="behind-a-variable"),
        pytest.param(b'[filter "f"]clean = "\'./a b\' %f"', ["/top/./a b"], id="quoted"),
        pytest.param(b'[filter "f"]clean = $X/run', [], id="what-a-shell-expands"),
        pytest.param(b"[alias]go = !bin/go now", ["/top/bin/go"], id="alias"),
        pytest.param(b"[alias]go = commit", [], id="alias-of-git"),
        pytest.param(b'[submodule "s"]update = !./u', ["/top/./u"], id="update"),
        pytest.param(b"[init]templateDir = ~/t", ["/home/u/t"], id="template"),
        pytest.param(b"[core]attributesFile = a/b\nexcludesFile = c/d", [], id="data"),
        pytest.param(b"[core]hooksPath = a\n[bad", [], id="what-git-refuses"),
    ],
)
def test_what_a_config_names(text: bytes, paths: list[str]) -> None:
    assert _paths(text) == paths


def test_includes_are_followed() -> None:
    assert _paths(b"[include]path = other", other=b"[core]hooksPath = .husky") == ["/top/.git/other", "/top/.husky"]


def test_includes_in_a_circle_end() -> None:
    assert _paths(b"[include]path = config\n[include]path = other", other=b"[include]path = config\n") == [
        "/top/.git/config",
        "/top/.git/other",
        "/top/.git/config",
    ]


def test_includes_end_where_git_ends() -> None:
    texts = {f"c{number}": f"[include]path = c{number + 1}\n".encode() for number in range(30)}
    assert len(_paths(b"[include]path = c0", **texts)) == 11


def test_a_reference_says_who_names_it() -> None:
    disk = Configs(config=b"[core]hooksPath = .husky")
    (found,) = references("/top/.git/config", "/top/.git/config", (TOP,), HOME, disk)
    assert found.name == "core.hookspath"
    assert found.why == 'git on the host runs what is in it ("/top/.git/config" names it)'


@given(st.binary(max_size=60) | st.text().map(lambda text: f"[core]editor = {text}".encode(errors="ignore")))
def test_no_content_raises(content: bytes) -> None:
    assert all(path.startswith("/") for path in _paths(content))


def test_a_real_file(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[core]\n\thooksPath = .husky\n")
    config = f"{tmp_path}/config"
    assert [found.path for found in references(config, config, (TOP,), HOME, Disk())] == ["/top/.husky"]
