from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Here

SETTINGS = {
    "sandbox": {
        "enabled": True,
        "excludedCommands": ["docker *"],
        "network": {
            "allowedDomains": ["example.com", "*.example.com", "api.example.org:8443", "127.0.0.1:5432", "[::1]:80"],
            "deniedDomains": ["bad.example.com"],
        },
        "filesystem": {
            "allowWrite": ["~/out", "~/globbed/*.log"],
            "denyWrite": ["./keep", "./linked-deny"],
            "denyRead": ["~/secret"],
            "allowRead": ["~/secret/public"],
        },
    },
    "permissions": {"deny": ["Read(~/secret/public/key)", "WebFetch(domain:evil.example.net)"]},
}


@pytest.fixture
def place(here: Here) -> Here:
    here.user(SETTINGS)
    for folder in ("out", "secret/public", "globbed", "elsewhere"):
        (here.home / folder).mkdir(parents=True)
    for folder in ("keep", "src", "deep/repo/.git/hooks", ".git/hooks", "target"):
        (here.project / folder).mkdir(parents=True, exist_ok=True)
    (here.project / "link-out").symlink_to(here.home / "elsewhere")
    (here.project / "link-in").symlink_to("src")
    (here.project / "link-secret").symlink_to(here.home / "secret")
    (here.project / "linked-deny").symlink_to("target")
    (here.project / "loop").symlink_to("loop")
    (here.project / ".bashrc").touch()
    return here


PATHS = [
    # text, read, write, reason of the write verdict
    ("src/x", True, True, "in_writable_root"),
    (".", True, True, "in_writable_root"),
    ("src/../src/x", True, True, "in_writable_root"),
    ("../x", True, False, "outside_writable"),
    ("src/../../x", True, False, "outside_writable"),
    ("link-in/x", True, True, "in_writable_root"),
    ("link-out/x", True, False, "outside_writable"),
    ("link-secret/x", False, False, "read_denied_hence_no_write"),
    ("linked-deny/x", True, False, "denied_write"),
    ("target/x", True, False, "denied_write"),
    ("loop", False, False, "unresolvable"),
    ("keep/x", True, False, "denied_write"),
    ("keepsake", True, True, "in_writable_root"),
    ("/etc/passwd", True, False, "outside_writable"),
    ("~/out/x", True, True, "in_writable_root"),
    ("~/outer/x", True, False, "outside_writable"),
    ("~/secret/x", False, False, "read_denied_hence_no_write"),
    ("~/secret", False, False, "read_denied_hence_no_write"),
    ("~/secret/public/x", True, False, "outside_writable"),
    ("~/secret/public/key", False, False, "read_denied_hence_no_write"),
    ("~/secret/../secret/public/key", False, False, "read_denied_hence_no_write"),
    ("~/globbed/a.log", True, True, "in_writable_root"),
    ("~/globbed/a.txt", True, False, "outside_writable"),
    (".bashrc", True, False, "protected"),
    (".git/hooks/pre-commit", True, False, "protected"),
    (".git/config", True, False, "protected"),
    (".git/HOOKS/pre-commit", True, False, "protected"),
    (".git/objects/x", True, True, "in_writable_root"),
    ("deep/repo/.git/hooks/x", True, False, "protected"),
    (".mcp.json", True, False, "protected"),
    ("src/.mcp.json", True, True, "in_writable_root"),
    (".stockade/settings.json", True, False, "denied_write"),
    (".claude/settings.local.json", True, False, "denied_write"),
    ("~/.stockade/trusted.json", True, False, "denied_write"),
]


@pytest.mark.parametrize(("text", "read", "write", "reason"), PATHS, ids=[case[0] for case in PATHS])
def test_paths(place: Here, text: str, read: bool, write: bool, reason: str) -> None:  # noqa: FBT001
    facts = place("explain", "--json", "--path", text).facts
    assert (facts["read"]["allowed"], facts["write"]["allowed"], facts["write"]["reason"]) == (read, write, reason)
    if not write:
        assert facts["write"]["remedy"]


HOSTS = [
    ("example.com", "allow"),
    ("EXAMPLE.com.", "allow"),
    ("www.example.com", "allow"),
    ("a.b.c.example.com:8080", "allow"),
    ("bad.example.com", "deny"),
    ("sub.bad.example.com", "allow"),
    ("evilexample.com", "deny"),
    ("example.com.evil.com", "deny"),
    ("api.example.org:8443", "allow"),
    ("api.example.org:443", "deny"),
    ("evil.example.net", "deny"),
    ("https://example.com/path?x=1", "allow"),
    ("http://other.example/", "deny"),
    ("127.0.0.1:5432", "allow"),
    ("127.1:5432", "allow"),
    ("0x7f000001:5432", "allow"),
    ("2130706433:5432", "allow"),
    ("0177.0.0.1:5432", "allow"),
    ("[::ffff:127.0.0.1]:5432", "allow"),
    ("127.0.0.1:5433", "deny"),
    ("localhost:5432", "deny"),
    ("[0:0:0:0:0:0:0:1]:80", "allow"),
    ("example.com:0", None),
    ("exa mple.com", None),
    ("example.com%00.evil.com", None),
    ("1.2.3.256", None),
]


@pytest.mark.parametrize(("text", "verdict"), HOSTS, ids=[case[0] for case in HOSTS])
def test_hosts(place: Here, text: str, verdict: str | None) -> None:
    result = place("explain", "--json", "--host", text)
    if verdict is None:
        assert (result.status, result.out) == (125, "")
        assert "Traceback" not in result.err
    else:
        assert result.facts["verdict"] == verdict


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("/etc", "path"),
        ("~/x", "path"),
        (".", "path"),
        ("src", "path"),
        ("no/such/thing", "path"),
        ("https://x.example", "host"),
        ("x.example", "host"),
        ("x.example:22", "host"),
        ("[::1]:80", "host"),
        ("localhost", "host"),
        ("docker ps", "command"),
        ("docker", "command"),
        ("echo $HOME", "command"),
    ],
)
def test_what_a_text_is_about(place: Here, text: str, subject: str) -> None:
    assert place("explain", "--json", text).facts["subject"] == subject


def test_a_file_that_looks_like_a_host_is_a_path(place: Here) -> None:
    (place.project / "readme.md").touch()
    assert place("explain", "--json", "readme.md").facts["subject"] == "path"


def test_words_name_rule_file_and_remedy(place: Here) -> None:
    refused = place("explain", "keep/x").out
    assert '"./keep"' in refused
    assert "settings.json" in refused
    refused = place("explain", "other.example").out
    assert "stockade allow-domain other.example" in refused
    assert "stockade allow" in place("explain", "/opt/x").out
    assert "--allow-protected .git/hooks; beware: git on the host runs" in place("explain", ".git/hooks/x").out


def test_what_is_inspected_is_said(place: Here) -> None:
    said = place("explain", "new/.git/config").out
    assert "may write" in said
    assert "inspected while it runs and when it ends" in said
    assert "when it ends" not in place("explain", "new/file").out


def test_commands(place: Here) -> None:
    assert place("explain", "docker ps").out.startswith("docker ps: runs outside: excluded by `docker *`")
    assert "runs inside" in place("explain", "docker ps | sh").out
    assert "not enabled" in place("explain", "--no-sandbox", "docker ps").out
    assert place("explain", "--json", "docker ps").facts["excluded"] is True


def test_names_that_are_not_utf8(place: Here) -> None:
    result = place("explain", os.fsdecode(b"src/\xff\x1b[2J"))
    assert result.status == 0
    assert "\x1b" not in result.out


def test_the_plan_is_shown_with_reasons(place: Here) -> None:
    text = place("explain", "--plan").out
    assert text.startswith('read-only "/": everything, but for what follows\n')
    assert f'writable  "{place.project}"' in text
    assert f'hidden    "{place.home}/secret"' in text
    facts = place("explain", "--plan", "--json").facts
    assert {"operation": "hidden", "path": f"{place.home}/secret"}.items() <= {
        key: value
        for mount in facts["mounts"]
        if mount["path"] == f"{place.home}/secret"
        for key, value in mount.items()
    }.items()
    assert facts["refusals"] == []


def test_a_plan_that_cannot_be_carried_out(place: Here) -> None:
    result = place("explain", "--plan", "--deny-read", "/**/secret")
    assert result.status == 1
    assert "refused   " in result.out


def test_one_thing_at_a_time(place: Here) -> None:
    assert place("explain").status == 125
    assert place("explain", "--plan", "x").status == 125
