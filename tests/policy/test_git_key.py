"""``stockade.policy.git_key``: what is not known to be harmless is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy.git_config import GitSetting, read
from stockade.policy.git_key import is_harmless, is_plain_remote, local_path

HARMLESS = """
[core] repositoryformatversion = 0
[core] filemode = true
[core] bare = false
[core] fsmonitor = false
[core] sharedRepository = 1
[user] name = x
[user] email = x@example.org
[remote "origin"] url = https://example.org/x.git
[remote "origin"] url = git@example.org:x.git
[remote "origin"] url = ssh://[::1]:22/x.git
[remote "origin"] url = /srv/x.git
[remote "origin"] url = file:///srv/x.git
[remote "origin"] fetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"] remote = .
[branch "main"] merge = refs/heads/main
[submodule "lib"] url = ../lib
[submodule "lib"] update = rebase
[submodule "lib"] active
[extensions] objectFormat = sha256
[extensions] refStorage = reftable
[lfs] repositoryformatversion = 0
[color "diff"] meta = blue
"""
OFFENDING = """
[core] fsmonitor = true
[core] fsmonitor
[core] fsmonitor = ./x
[core] hooksPath = .husky
[core] sshCommand = x
[core] pager = x
[core] editor = x
[core] askPass = x
[core] gitProxy = x
[core] alternateRefsCommand = x
[core] attributesFile = x
[core] excludesFile = x
[core "x"] fsmonitor = false
[filter "x"] clean = x
[filter "x"] process = x
[diff "x"] command = x
[diff "x"] textconv = x
[diff] external = x
[merge "x"] driver = x
[credential] helper = x
[credential "https://example.org"] helper = x
[gpg] program = x
[gpg "ssh"] program = x
[alias] st = status
[include] path = x
[includeIf "gitdir:x"] path = x
[url "ext::x"] insteadOf = y
[uploadpack] packObjectsHook = x
[receive] procReceiveRefs = x
[receive] denyCurrentBranch = updateInstead
[protocol "ext"] allow = always
[remote "x"] uploadpack = x
[remote "x"] receivepack = x
[remote "x"] vcs = x
[remote "x"] proxy = x
[remote "x"] url = ext::sh -c x
[remote "x"] url = fd::3
[remote "x"] url = -x
[remote "x"] url = evil://x
[remote "x"] url = ../other
[remote "x"] url = other
[remote "x"] url = ~/other
[remote "x"] url = /srv/x/../y
[remote "x"] url = /proc/self/cwd/x
[remote "x"] url = file:///srv/%78
[remote "x"] url = file://host/srv/x
[branch "x"] remote = a/b
[branch "x"] remote = unknown
[branch "x"] remote = ext::x
[branch "x"] mergeOptions = -s x
[remote] pushDefault = ext::x
[submodule "x"] update = !x
[submodule "x"] url = ext::x
[sequence] editor = x
[interactive] diffFilter = x
[browser "x"] cmd = x
[man "x"] cmd = x
[difftool "x"] cmd = x
[mergetool "x"] cmd = x
[init] templateDir = x
[gc] recentObjectsHook = x
[trailer "x"] command = x
[http] proxy = x
[safe] directory = *
[extensions] refStorage = files://x
[nobody] knows = this
"""


def settings(text: str) -> list[GitSetting]:
    return [read(line.encode())[0] for line in text.strip().splitlines()]


@pytest.mark.parametrize("setting", settings(HARMLESS), ids=lambda one: f"{one.name}={one.value}")
def test_harmless(setting: GitSetting) -> None:
    assert is_harmless(setting)


@pytest.mark.parametrize("setting", settings(OFFENDING), ids=lambda one: f"{one.name}={one.value}")
def test_not_harmless(setting: GitSetting) -> None:
    assert not is_harmless(setting)


def test_the_name_of_a_remote_counts_where_the_config_has_it() -> None:
    setting = settings('[branch "main"] remote = origin')[0]
    assert (is_harmless(setting, frozenset({"origin"})), is_harmless(setting)) == (True, False)


@given(st.text(alphabet="abc", min_size=1), st.text())
def test_no_helper_is_a_plain_remote(helper: str, rest: str) -> None:
    assert not is_plain_remote(f"{helper}::{rest}")


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ('[remote "x"] url = /srv/a:b', "/srv/a:b"),
        ('[remote "x"] url = file:///srv/x', "/srv/x"),
        ('[remote "x"] url = host:a/b', ""),
        ('[remote "x"] url = https://example.org/x', ""),
        ('[branch "x"] remote = origin', ""),
        ("[user] name = a/b", ""),
    ],
)
def test_paths_of_other_repositories(line: str, path: str) -> None:
    assert local_path(read(line.encode())[0]) == path
