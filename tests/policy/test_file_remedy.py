from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.policy import file_remedy
from stockade.policy.path_pattern import PathPattern
from stockade.policy.protected import Protection
from stockade.settings.layer import Layer, Origin, Sourced


def rule(layer: Layer, file: str = "", path: str = "") -> Sourced[PathPattern]:
    return Sourced(PathPattern.parse("secret", cwd="/w", home="/h"), Origin(layer, file, path))


@pytest.mark.parametrize(
    ("place", "expected"),
    [("/", True), ("/h", True), ("/h/me", True), ("/h/me/x", False), ("/h/m", False), ("/x", False)],
)
def test_a_home_is_not_proposed_without_the_danger(place: str, *, expected: bool) -> None:
    remedy = file_remedy.for_outside(place, None, ("/h/me",))
    assert remedy.endswith("; beware: that opens your home directory") == expected


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        pytest.param("/x/a", 'add "/x/a" to sandbox.filesystem.allowWrite, or run: stockade allow /x/a', id="plain"),
        pytest.param(
            "/x/a b*",
            r"""add "/x/a b\\*" to sandbox.filesystem.allowWrite, or run: stockade allow '/x/a b\*'""",
            id="quoted-twice",
        ),
        pytest.param("/x/a\nb", r'add "/x/a\u000ab" to sandbox.filesystem.allowWrite', id="not-to-be-typed"),
    ],
)
def test_outside(place: str, remedy: str) -> None:
    assert file_remedy.for_outside(place, None) == remedy


def test_what_would_be_protected_is_never_proposed() -> None:
    protection = Protection(".bashrc", "/x/.bashrc", "/x/.bashrc", "of shells")
    expected = "cannot be allowed by allowWrite: .bashrc is protected because of shells"
    assert file_remedy.for_outside("/x/.bashrc", protection) == expected


@pytest.mark.parametrize(
    ("protection", "remedy"),
    [
        pytest.param(
            Protection(".vscode", "/w/.vscode", "/w/.vscode", "editors obey"),
            'add ".vscode" to sandbox.filesystem.allowProtected, or run with --allow-protected .vscode; '
            "beware: editors obey",
            id="name",
        ),
        pytest.param(
            Protection(".git/hooks", "/w/.git/hooks", "/w/.git/hooks", "git runs it"),
            'add ".git/hooks" to sandbox.filesystem.allowProtected, or run with --allow-protected .git/hooks; '
            "beware: git runs it",
            id="entry-of-a-directory",
        ),
        pytest.param(
            Protection(".git/hooks", "/w/.git", "/w/.git", "git runs it"),
            'make the directory "/w/.git" outside the sandbox first: '
            "who makes it could make .git/hooks, and git runs it",
            id="missing-directory-on-the-way",
        ),
        pytest.param(
            Protection(".bashrc", "/w/.bashrc", "/w/dots", "shells obey"),
            'add ".bashrc" to sandbox.filesystem.allowProtected, or run with --allow-protected .bashrc; '
            'beware (by the link "/w/.bashrc"): shells obey',
            id="link",
        ),
        pytest.param(
            Protection("core.hookspath", "/w/.husky", "/w/.hus ky", "git runs it", "/w/.hus ky"),
            "add \"/w/.hus ky\" to sandbox.filesystem.allowProtected, or run with --allow-protected '/w/.hus ky'; "
            'beware (by the link "/w/.husky"): git runs it',
            id="path",
        ),
        pytest.param(
            Protection(".git", "/w/\n", "/w/\n", "git obeys", "/w/\n"),
            r'add "/w/\u000a" to sandbox.filesystem.allowProtected; beware: git obeys',
            id="not-to-be-typed",
        ),
        pytest.param(
            Protection("refs", "/w/refs", "/w/refs", "it is bare"),
            "run outside: git config --global safe.bareRepository explicit; or "
            'add "refs" to sandbox.filesystem.allowProtected, or run with --allow-protected refs; beware: it is bare',
            id="bare",
        ),
        pytest.param(
            Protection(".stockade/settings.json", "/w/.stockade/settings.json", "/w/s", "of walls"),
            'cannot be allowed: .stockade/settings.json is protected (by the link "/w/.stockade/settings.json") '
            "because of walls",
            id="own-settings",
        ),
    ],
)
def test_a_protection_names_what_lifts_it_and_the_danger(protection: Protection, remedy: str) -> None:
    assert file_remedy.for_protection(protection) == remedy


@pytest.mark.parametrize("what", ["is", "holds"])
def test_a_closed_working_directory(what: str) -> None:
    assert file_remedy.for_closed("/h", is_home=what == "is") == (
        f'commands cannot write in the working directory "/h", for it {what} your home directory; work in one '
        "below, or open it with --allow-write ."
    )


def test_a_closed_working_directory_in_a_name_of_the_home() -> None:
    said = file_remedy.for_closed_within("/h/.ssh/x", ".ssh", lifting=False)
    assert said == (
        'commands cannot write in the working directory "/h/.ssh/x", for it lies in .ssh of your home directory, and '
        "it holds keys or passwords, and what decides who gets in; work elsewhere, or open it with --allow-write ."
    )
    assert file_remedy.for_closed_within("/h/.ssh/x", ".ssh", lifting=True).endswith("with --allow-protected .ssh")


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        pytest.param(rule(Layer.POLICY, "/etc/p"), "only the administrator can allow it (/etc/p)", id="policy"),
        pytest.param(
            rule(Layer.DEFAULTS),
            "cannot be allowed: Stockade takes its settings from there, which are changed outside alone",
            id="built-in",
        ),
        pytest.param(rule(Layer.COMMAND_LINE, "--deny-write"), 'leave out --deny-write "secret"', id="command-line"),
        pytest.param(
            rule(Layer.USER, "/h/s.json", "$.permissions.deny[2]"),
            'remove "secret" from permissions.deny[2] in /h/s.json',
            id="file-and-path",
        ),
        pytest.param(rule(Layer.FLAG), 'remove "secret" from the.setting in flag', id="no-file"),
    ],
)
def test_a_deny_says_who_can_lift_it(source: Sourced[PathPattern], remedy: str) -> None:
    assert file_remedy.for_deny(source, "the.setting") == remedy


@pytest.mark.parametrize(("setting", "flag"), [("denyWrite", "--deny-write"), ("denyRead", "--deny-read")])
def test_a_deny_of_the_command_line_is_named_by_its_flag(setting: str, flag: str) -> None:
    source = rule(Layer.COMMAND_LINE, "")
    assert file_remedy.for_deny(source, f"sandbox.filesystem.{setting}") == f'leave out {flag} "secret"'


@pytest.mark.parametrize(
    ("layer", "below", "remedy"),
    [
        pytest.param(Layer.USER, True, 'add "/w/secret/x" to sandbox.filesystem.allowRead', id="below"),
        pytest.param(Layer.USER, False, 'remove "secret" from sandbox.filesystem.denyRead in f', id="itself"),
        pytest.param(Layer.POLICY, True, "only the administrator can allow it (f)", id="policy"),
    ],
)
def test_a_read_deny(layer: Layer, below: bool, remedy: str) -> None:  # noqa: FBT001 - a parameter
    assert file_remedy.for_read_deny(rule(layer, "f"), "/w/secret/x", below=below) == remedy


def test_a_missing_directory_is_to_be_made() -> None:
    deep = Sourced(PathPattern.literal("/w/a/b"), Origin(Layer.USER, "f"))
    assert file_remedy.for_missing(deep, "/w/a") == 'make the directory "/w/a" outside the sandbox first'


@pytest.mark.parametrize(
    ("directory", "lister", "remedy"),
    [
        ("/w/sub", "", "to remove all of it, run outside the sandbox: rm -rf -- /w/sub"),
        (
            "/w/a b",
            "/w",
            "to remove all of it, run outside the sandbox: rm -rf -- '/w/a b' && git -C /w worktree prune",
        ),
        ("", "/w", "to remove all of it, run outside the sandbox: git -C /w worktree prune"),
        ("/w/\u202eb", "", "remove it outside the sandbox"),
    ],
)
def test_what_must_be_removed_outside(directory: str, lister: str, remedy: str) -> None:
    assert file_remedy.for_removal(directory, lister) == remedy


@given(st.text())
def test_a_quoted_text_is_one_visible_line_of_json(text: str) -> None:
    quoted = file_remedy.quoted(text)
    assert json.loads(quoted) == text
    assert quoted.isprintable()
    assert not {"<", ">"} & set(quoted)
