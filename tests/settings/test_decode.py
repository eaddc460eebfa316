from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import SettingsError
from stockade.settings.catalog import CATALOG
from stockade.settings.decode import Decoded, decode, examine
from stockade.settings.document import Document
from stockade.settings.layer import Layer

MEND = "Mend the value or remove the key."

EVERYTHING = {
    "$schema": "https://example.com/schema.json",
    "sandbox": {
        "enabled": True,
        "autoAllowBashIfSandboxed": False,
        "allowUnsandboxedCommands": False,
        "failIfUnavailable": True,
        "excludedCommands": ["docker *"],
        "network": {
            "allowUnixSockets": ["~/.ssh/agent"],
            "allowAllUnixSockets": False,
            "denyUnixSockets": ["/run/*.sock"],
            "allowLocalBinding": True,
            "httpProxyPort": 1,
            "socksProxyPort": 65535,
            "allowedDomains": ["example.com", "*.example.org"],
            "deniedDomains": [],
        },
        "filesystem": {
            "allowWrite": ["./out"],
            "denyWrite": ["./out/keep"],
            "denyRead": ["~/.aws"],
            "allowRead": ["~/.aws/public", "naïve ☃"],
            "allowGitConfig": True,
            "allowProtected": ["packages/x"],
            "privateCache": False,
            "privateTmp": False,
            "dangerouslyAllowOwnInstallation": True,
        },
        "ignoreViolations": {"*": ["/usr/bin"], "npm:*": []},
        "enableWeakerNestedSandbox": False,
        "ripgrep": {"command": "rg", "args": ["--hidden", ""]},
        "mandatoryDenySearchDepth": 10,
        "allowFlagSettings": False,
    },
    "permissions": {"allow": ["Edit(./a)"], "deny": ["Read(./b)"], "ask": ["Bash(git push:*)"]},
}


def _problems(text: str | bytes, **options: bool) -> list[tuple[str, str, str]]:
    with pytest.raises(SettingsError) as caught:
        decode(text if isinstance(text, bytes) else text.encode(), Layer.USER, "f", **options)
    assert {problem.file for problem in caught.value.problems} == {"f"}
    return [(problem.path, problem.message, problem.hint) for problem in caught.value.problems]


def _decoded(values: dict[str, object], *warnings: str) -> Decoded:
    return Decoded(Document(Layer.USER, "f", values), warnings)


def test_every_setting_is_read() -> None:
    decoded = decode(json.dumps(EVERYTHING).encode(), Layer.USER, "f")
    assert set(decoded.document.values) == set(CATALOG)
    assert decoded == _decoded(
        {
            "sandbox.enabled": True,
            "sandbox.autoAllowBashIfSandboxed": False,
            "sandbox.allowUnsandboxedCommands": False,
            "sandbox.failIfUnavailable": True,
            "sandbox.excludedCommands": ("docker *",),
            "sandbox.network.allowUnixSockets": ("~/.ssh/agent",),
            "sandbox.network.allowAllUnixSockets": False,
            "sandbox.network.denyUnixSockets": ("/run/*.sock",),
            "sandbox.network.allowLocalBinding": True,
            "sandbox.network.httpProxyPort": 1,
            "sandbox.network.socksProxyPort": 65535,
            "sandbox.network.allowedDomains": ("example.com", "*.example.org"),
            "sandbox.network.deniedDomains": (),
            "sandbox.filesystem.allowWrite": ("./out",),
            "sandbox.filesystem.denyWrite": ("./out/keep",),
            "sandbox.filesystem.denyRead": ("~/.aws",),
            "sandbox.filesystem.allowRead": ("~/.aws/public", "naïve ☃"),
            "sandbox.filesystem.allowGitConfig": True,
            "sandbox.filesystem.allowProtected": ("packages/x",),
            "sandbox.filesystem.privateCache": False,
            "sandbox.filesystem.privateTmp": False,
            "sandbox.filesystem.dangerouslyAllowOwnInstallation": True,
            "sandbox.ignoreViolations": {"*": ("/usr/bin",), "npm:*": ()},
            "sandbox.enableWeakerNestedSandbox": False,
            "sandbox.ripgrep.command": "rg",
            "sandbox.ripgrep.args": ("--hidden", ""),
            "sandbox.mandatoryDenySearchDepth": 10,
            "sandbox.allowFlagSettings": False,
            "permissions.allow": ("Edit(./a)",),
            "permissions.deny": ("Read(./b)",),
            "permissions.ask": ("Bash(git push:*)",),
        }
    )


@pytest.mark.parametrize("text", [b"{}", b'{"sandbox": {}}', b'{"sandbox": {"network": {}}, "permissions": {}}'])
def test_what_is_absent_stays_absent(text: bytes) -> None:
    assert decode(text, Layer.USER, "f") == _decoded({})


@pytest.mark.parametrize(
    ("sandbox", "path", "message", "hint"),
    [
        pytest.param('"enabled": "yes"', "enabled", 'must be true or false, not "yes"', MEND, id="yes"),
        pytest.param(
            '"enabled": "true"', "enabled", 'must be true or false, not "true"', "Write true without quotes.", id="true"
        ),
        pytest.param('"enabled": 1', "enabled", "must be true or false, not 1", MEND, id="one"),
        pytest.param(
            '"enabled": null', "enabled", "must be true or false, not null", "Leave the key out instead.", id="null"
        ),
        pytest.param(
            '"mandatoryDenySearchDepth": true',
            "mandatoryDenySearchDepth",
            "must be a whole number from 1 to 10, not true",
            MEND,
            id="true is no number",
        ),
        pytest.param(
            '"mandatoryDenySearchDepth": 11',
            "mandatoryDenySearchDepth",
            "must be a whole number from 1 to 10, not 11",
            MEND,
            id="too large",
        ),
        pytest.param(
            '"mandatoryDenySearchDepth": 0',
            "mandatoryDenySearchDepth",
            "must be a whole number from 1 to 10, not 0",
            MEND,
            id="too small",
        ),
        pytest.param(
            '"network": {"httpProxyPort": 1.0}',
            "network.httpProxyPort",
            "must be a whole number from 1 to 65535, not 1.0",
            MEND,
            id="fraction",
        ),
        pytest.param(
            f'"network": {{"httpProxyPort": {"9" * 5000}}}',
            "network.httpProxyPort",
            "must be a whole number from 1 to 65535, not a huge number",
            MEND,
            id="huge",
        ),
        pytest.param('"network": []', "network", "must be an object, not a list", MEND, id="section that is a list"),
        pytest.param(
            '"excludedCommands": "docker *"',
            "excludedCommands",
            'must be a list of non-empty strings, not "docker *"',
            'Write ["docker *"].',
            id="text for list",
        ),
        pytest.param(
            '"excludedCommands": {"a": 1}',
            "excludedCommands",
            "must be a list of non-empty strings, not an object",
            MEND,
            id="object for list",
        ),
        pytest.param(
            '"excludedCommands": ["a", "b", "c", 3]',
            "excludedCommands[3]",
            "must be a non-empty string, not 3",
            MEND,
            id="item",
        ),
        pytest.param(
            '"excludedCommands": ["  "]',
            "excludedCommands[0]",
            'must be a non-empty string, not "  "',
            MEND,
            id="blank item",
        ),
        pytest.param(
            '"excludedCommands": ["a\\u0000b"]',
            "excludedCommands[0]",
            "contains the control character \\x00",
            "Remove it.",
            id="nul",
        ),
        pytest.param(
            '"excludedCommands": ["a\\u001b[2J"]',
            "excludedCommands[0]",
            "contains the control character \\x1b",
            "Remove it.",
            id="escape",
        ),
        pytest.param(
            '"excludedCommands": ["\\udfff"]',
            "excludedCommands[0]",
            "contains the control character \\udfff",
            "Remove it.",
            id="lone surrogate",
        ),
        pytest.param(
            '"ripgrep": {"command": ""}', "ripgrep.command", 'must be a non-empty string, not ""', MEND, id="empty text"
        ),
        pytest.param(
            '"ripgrep": {"args": [null]}',
            "ripgrep.args[0]",
            "must be a string, not null",
            "Leave the key out instead.",
            id="argument",
        ),
        pytest.param(
            '"ignoreViolations": []',
            "ignoreViolations",
            "must be an object whose values are lists of strings, not a list",
            MEND,
            id="table",
        ),
        pytest.param(
            '"ignoreViolations": {"npm run": "x"}',
            'ignoreViolations["npm run"]',
            'must be a list of non-empty strings, not "x"',
            'Write ["x"].',
            id="entry of a table",
        ),
        pytest.param(
            '"ignoreViolations": {" ": []}',
            'ignoreViolations[" "]',
            "has an empty name",
            "Name a command pattern, or * for all.",
            id="name in a table",
        ),
        pytest.param(
            '"ignoreViolations": {"a": [], "a": []}',
            "ignoreViolations.a",
            "is there twice",
            "Keep one of them.",
            id="twice",
        ),
        pytest.param(
            '"enabled": true, "enabled": true', "enabled", "is there twice", "Keep one of them.", id="key twice"
        ),
        pytest.param('"enabld": true', "enabld", "is not a setting", "Did you mean enabled?", id="misspelt"),
        pytest.param(
            '"network": {"allowDomains": []}',
            "network.allowDomains",
            "is not a setting",
            "Did you mean allowedDomains?",
            id="misspelt inside",
        ),
        pytest.param(
            '"allowWrite": []',
            "allowWrite",
            "is not a setting",
            "It belongs at $.sandbox.filesystem.allowWrite.",
            id="wrong level",
        ),
    ],
)
def test_one_mistake_is_one_problem(sandbox: str, path: str, message: str, hint: str) -> None:
    assert _problems(f'{{"sandbox": {{{sandbox}}}}}') == [(f"$.sandbox.{path}", message, hint)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("[]", ("$", "must hold an object, not a list", "Put it all inside { }."), id="list"),
        pytest.param('"x"', ("$", 'must hold an object, not "x"', "Put it all inside { }."), id="text"),
        pytest.param('{"$schema": 1}', ("$.$schema", "must be a string, not 1", MEND), id="schema"),
        pytest.param(
            '{"network": {}}', ("$.network", "is not a setting", "It belongs at $.sandbox.network."), id="flat shape"
        ),
        pytest.param(
            '{"\\u001b[2J": 1}',
            ('$["\\x1b[2J"]', "is not a setting", "Known here: sandbox, permissions."),
            id="a name that would speak to the terminal",
        ),
    ],
)
def test_the_top_level_is_checked_too(text: str, problem: tuple[str, str, str]) -> None:
    assert _problems(text) == [problem]


def test_five_mistakes_are_five_problems() -> None:
    text = """{
      "sandbox": {"enabled": "yes", "network": {"httpProxyPort": 0, "allowedDomain": []}, "excludedCommands": [1]},
      "permission": {}
    }"""
    assert [path for path, _, _ in _problems(text)] == [
        "$.sandbox.enabled",
        "$.sandbox.network.httpProxyPort",
        "$.sandbox.network.allowedDomain",
        "$.sandbox.excludedCommands[0]",
        "$.permission",
    ]


def test_a_file_of_claude_code_keeps_what_is_its_own() -> None:
    text = b"""{
      "$schema": 3, "model": "x", "model": "y", "env": {"A": null}, "hooks": {}, "permissionMode": "plan",
      "sandbox": {"enabled": true, "enableWeakerNetworkIsolation": true, "network": {"allowManagedDomainsOnly": true}},
      "permissions": {"deny": ["Read(./x)"], "defaultMode": "plan", "disableBypassPermissionsMode": "disable",
                      "additionalDirectories": [".."]}
    }"""
    assert decode(text, Layer.USER, "f", foreign=True) == _decoded(
        {"sandbox.enabled": True, "permissions.deny": ("Read(./x)",)},
        "f: $.sandbox.enableWeakerNetworkIsolation is not enforced by Stockade",
        "f: $.sandbox.network.allowManagedDomainsOnly is not enforced by Stockade",
        "f: $.permissions.additionalDirectories is not enforced by Stockade",
    )


def test_a_file_of_claude_code_is_still_checked_for_what_is_ours() -> None:
    text = """{
      "permisions": {}, "sandbox": {"enabled": "yes", "excludedComands": [], "allowedDomains": [], "enabled": 1},
      "permissions": null
    }"""
    assert _problems(text, foreign=True) == [
        ("$.permisions", "is not a setting", "Did you mean permissions?"),
        ("$.sandbox.enabled", 'must be true or false, not "yes"', MEND),
        ("$.sandbox.excludedComands", "is not a setting", "Did you mean excludedCommands?"),
        ("$.sandbox.allowedDomains", "is not a setting", "It belongs at $.sandbox.network.allowedDomains."),
        ("$.sandbox.enabled", "is there twice", "Keep one of them."),
        ("$.permissions", "must be an object, not null", "Leave the key out instead."),
    ]


def test_the_flat_shape_is_taken_where_allowed() -> None:
    text = b'{"network": {"allowedDomains": ["a.io"]}, "filesystem": {"denyRead": ["~"]}, "ignoreViolations": {}}'
    values = {
        "sandbox.network.allowedDomains": ("a.io",),
        "sandbox.filesystem.denyRead": ("~",),
        "sandbox.ignoreViolations": {},
    }
    assert decode(text, Layer.USER, "f", flat=True) == Decoded(Document(Layer.USER, "f", values, flat=True))
    assert decode(b'{"permissions": {}}', Layer.USER, "f", flat=True) == _decoded({})


def test_problems_of_a_flat_file_have_its_own_paths() -> None:
    text = '{"network": {"strictAllowlist": true, "httpProxyPort": 0}, "allowWrite": [], "allowPty": true}'
    problems = _problems(text, flat=True)
    assert [path for path, _, _ in problems] == [
        "$.network.strictAllowlist",
        "$.network.httpProxyPort",
        "$.allowWrite",
        "$.allowPty",
    ]
    assert problems[2][2] == "It belongs at $.filesystem.allowWrite."


def test_a_file_is_flat_or_nested_never_both() -> None:
    message = "mixes the flat shape (network, filesystem, ... at top level) with the nested one"
    problem = ("$", message, 'Move everything into "sandbox".')
    assert _problems('{"network": {}, "permissions": {}}', flat=True) == [problem]


_NAMES = st.sampled_from([*{part for name in CATALOG for part in name.split(".")}, "$schema", "x"]) | st.text(
    max_size=5
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
)


@given(st.binary() | _JSON.map(lambda value: json.dumps(value).encode()), st.booleans(), st.booleans())
def test_no_file_raises_anything_but_a_settings_error(text: bytes, foreign: bool, flat: bool) -> None:  # noqa: FBT001
    with contextlib.suppress(SettingsError):
        decode(text, Layer.USER, "f", foreign=foreign, flat=flat)


@given(_JSON)
def test_every_problem_is_printable_and_says_what_to_do(value: object) -> None:
    try:
        decode(json.dumps({"sandbox": value}).encode(), Layer.USER, "f")
    except SettingsError as error:
        problems = error.problems
    else:
        problems = ()
    assert all(str(problem).isprintable() and problem.hint for problem in problems)


def test_what_can_be_read_of_a_wrong_file_is_kept_in_place() -> None:
    text = b"""{"sandbox": {"enabled": "yes", "excludedCommands": ["a", 7, "b"], "ignoreViolations": {"x": [1, "y"]}},
      "permissions": {"deny": "Read(./a)", "ask": ["Bash(x)"]}, "other": 1}"""
    examined = examine(text, Layer.USER, "f")
    assert examined.document == Document(
        Layer.USER,
        "f",
        {
            "sandbox.excludedCommands": ("a", "", "b"),
            "sandbox.ignoreViolations": {"x": ("", "y")},
            "permissions.deny": (),
            "permissions.ask": ("Bash(x)",),
        },
    )
    assert [problem.path for problem in examined.problems] == [
        "$.sandbox.enabled",
        "$.sandbox.excludedCommands[1]",
        "$.sandbox.ignoreViolations.x[0]",
        "$.permissions.deny",
        "$.other",
    ]


@pytest.mark.parametrize("text", [b"", b"[", b"[]", b"\xff", b'{"network": {}, "sandbox": {}}'])
def test_a_file_of_which_nothing_can_be_read_is_an_empty_document(text: bytes) -> None:
    examined = examine(text, Layer.USER, "f", flat=True)
    assert (examined.document, len(examined.problems)) == (Document(Layer.USER, "f", {}), 1)


def test_rules_may_hold_line_ends_as_commands_do() -> None:
    text = rb'{"permissions": {"allow": ["Bash(a\n\tb)", "x\u0007"]}, "sandbox": {"excludedCommands": ["a\nb"]}}'
    assert [path for path, _, _ in _problems(text)] == ["$.permissions.allow[1]", "$.sandbox.excludedCommands[0]"]
