from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stockade.errors import SettingsError
from stockade.escape import escape
from stockade.policy.compile import compile_policy
from stockade.policy.decision import Verdict, decide
from stockade.policy.exclusion import decide_exclusion
from stockade.policy.files import Access, judge
from stockade.policy.places import Disk
from stockade.settings import home
from stockade.settings.catalog import CATALOG, Kind
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import merge
from stockade.settings.tighten import tighten

if TYPE_CHECKING:
    from stockade.policy.files import FileRules
    from stockade.policy.model import SandboxPolicy

CWD, HOME = "/nowhere/project", "/nowhere/home"


@pytest.fixture(autouse=True)
def _in_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the home of these tests the user's own, unless one of them says otherwise."""
    monkeypatch.setattr(home, "database_home", lambda: HOME)


def document(layer: Layer, values: dict[str, Any], file: str = "") -> Document:
    return Document(layer, file or f"/nowhere/{layer}.json", values)


def compiled(*documents: Document, guarded: tuple[str, ...] = ()) -> SandboxPolicy:
    return compile_policy(merge(documents), cwd=CWD, home=HOME, guarded=guarded)


def user(**values: Any) -> Document:
    return document(Layer.USER, {name.replace("__", "."): value for name, value in values.items()})


def test_nothing_set_is_the_default_policy() -> None:
    policy = compiled()
    assert policy.cwd == CWD
    assert policy.home == HOME
    assert [rule.value.path for rule in policy.files.write_allow] == [CWD]
    assert policy.files.write_deny == ()
    assert policy.network.allowed == ()
    assert not policy.mode.enabled
    assert policy == compiled()
    assert hash(policy) == hash(compiled())


def test_settings_files_are_denied_whatever_is_allowed() -> None:
    guarded = (f"{CWD}/.stockade/settings.json", f"{HOME}/.claude/settings.json")
    policy = compiled(user(sandbox__filesystem__allowWrite=("/",)), guarded=guarded)
    for file in (*guarded, f"{CWD}/.stockade/new"):
        assert not judge(policy.files, Access.WRITE, file, Disk()).allowed


RULES = [
    # list, rule, what it becomes: (field of the policy, text of the pattern)
    ("allow", "Edit(./out)", ("files.write_allow", "./out")),
    ("deny", "Edit(./out)", ("files.write_deny", "./out")),
    ("deny", "Edit", ("files.write_deny", "/")),
    ("deny", "Read(~/.ssh)", ("files.read_deny", "~/.ssh")),
    ("deny", "Read:~/.ssh", ("files.read_deny", "~/.ssh")),
    ("allow", "WebFetch(domain:A.example)", ("network.allowed", "a.example")),
    ("deny", "WebFetch(domain:*.example.com)", ("network.denied", "*.example.com")),
    ("deny", "WebFetch", ("network.denied", "*")),
    ("allow", "Bash(npm run:*)", ("commands.allow", "npm run:*")),
    ("deny", "Bash(curl:*)", ("commands.deny", "curl:*")),
    ("ask", "Bash(git push:*)", ("commands.ask", "git push:*")),
]
FIELDS = (
    "files.write_allow",
    "files.write_deny",
    "files.read_deny",
    "files.read_allow",
    "network.allowed",
    "network.denied",
    "commands.allow",
    "commands.deny",
    "commands.ask",
)


def rules_of(policy: SandboxPolicy) -> dict[str, list[str]]:
    found = {}
    for field in FIELDS:
        part, _, name = field.partition(".")
        rules = getattr(getattr(policy, part), name)
        found[field] = [rule.value.text for rule in rules if rule.origin.layer is not Layer.DEFAULTS]
    return {field: texts for field, texts in found.items() if texts}


@pytest.mark.parametrize(("key", "rule", "becomes"), RULES, ids=[f"{case[0]} {case[1]}" for case in RULES])
def test_permission_rules(key: str, rule: str, becomes: tuple[str, str]) -> None:
    policy = compiled(document(Layer.USER, {f"permissions.{key}": (rule,)}))
    assert rules_of(policy) == {becomes[0]: [becomes[1]]}


@pytest.mark.parametrize("rule", ["Edit", "WebFetch", "Read", "Read(./x)", "Write(./x)", "mcp__server__tool", "Task"])
def test_rules_that_open_no_wall(rule: str) -> None:
    assert rules_of(compiled(document(Layer.USER, {"permissions.allow": (rule,)}))) == {}


@pytest.mark.parametrize("rule", ["Edit(./x)", "Read(./x)", "WebFetch(domain:a.example)"])
def test_asking_is_no_matter_of_walls(rule: str) -> None:
    assert rules_of(compiled(document(Layer.USER, {"permissions.ask": (rule,)}))) == {}


def test_a_read_deny_of_everything_is_a_mistake() -> None:
    with pytest.raises(SettingsError) as caught:
        compiled(document(Layer.USER, {"permissions.deny": ("Read",)}))
    assert "no command could start" in caught.value.message


@pytest.mark.parametrize(
    ("file", "rule", "path"),
    [
        ("/nowhere/project/.claude/settings.json", "Edit(/src)", "/nowhere/project/src"),
        ("/nowhere/project/.claude/settings.json", "Edit(//src)", "/src"),
        ("/nowhere/home/.claude/settings.json", "Edit(/src)", "/nowhere/home/.claude/src"),
        ("/nowhere/project/.stockade/settings.json", "Edit(/src)", "/src"),
    ],
)
def test_a_leading_slash_in_claude_files_means_the_project(file: str, rule: str, path: str) -> None:
    policy = compiled(document(Layer.USER, {"permissions.deny": (rule,)}, file))
    assert [found.value.path for found in policy.files.write_deny] == [path]


def test_every_mistake_of_every_file_is_reported() -> None:
    one = document(Layer.USER, {"sandbox.network.allowedDomains": ("*", "a b")}, "one.json")
    two = document(Layer.LOCAL, {"permissions.deny": ("Edit(",), "sandbox.excludedCommands": ("*",)}, "two.json")
    with pytest.raises(SettingsError) as caught:
        compiled(two, one)
    assert sorted((problem.file, problem.path) for problem in caught.value.problems) == [
        ("one.json", "$.sandbox.network.allowedDomains[0]"),
        ("one.json", "$.sandbox.network.allowedDomains[1]"),
        ("two.json", "$.permissions.deny[0]"),
        ("two.json", "$.sandbox.excludedCommands[0]"),
    ]


UNUSABLE = (
    "Bash(cd x && npm test)",
    "Bash(echo $(date))",
    'Bash(git commit -m "x (y)")',
    "Bash(a | b)",
    "Bash(A=1)",
    "Bash(a\nb)",
    "Bash:x > y",
)


@pytest.mark.parametrize("rule", UNUSABLE)
def test_a_command_that_no_pattern_can_say_is_not_allowed_and_noted(rule: str) -> None:
    policy = compiled(document(Layer.USER, {"permissions.allow": (rule, "Bash(npm test)")}))
    assert rules_of(policy) == {"commands.allow": ["npm test"]}
    assert policy.notes == (
        f'/nowhere/user.json: "{escape(rule)}" allows nothing: it is not the plain words of one command',
    )


@pytest.mark.parametrize("rule", UNUSABLE)
@pytest.mark.parametrize("name", ["permissions.deny", "permissions.ask"])
def test_a_deny_or_a_question_is_never_passed_over(name: str, rule: str) -> None:
    with pytest.raises(SettingsError) as caught:
        compiled(document(Layer.USER, {name: (rule,)}))
    assert [problem.path for problem in caught.value.problems] == [f"$.{name}[0]"]


def test_a_bad_name_in_a_table_is_one_problem() -> None:
    with pytest.raises(SettingsError) as caught:
        compiled(document(Layer.USER, {"sandbox.ignoreViolations": {"a && b": ("x", "y")}}))
    assert [problem.path for problem in caught.value.problems] == ['$.sandbox.ignoreViolations["a && b"]']


def test_ripgrep_and_ignored_violations() -> None:
    policy = compiled(
        document(
            Layer.USER,
            {
                "sandbox.ripgrep.command": "/opt/rg",
                "sandbox.ripgrep.args": ("--no-config",),
                "sandbox.ignoreViolations": {"*": ("noise",), "npm:*": ("cache",)},
            },
        )
    )
    assert policy.ripgrep == ("/opt/rg", "--no-config")
    assert [found.value for found in policy.ignored_violations] == [("*", "noise"), ("npm:*", "cache")]


# --- A project that is not trusted never loosens a verdict ------------------------------------------------------------

PATHS = ("out", "keep", "/nowhere/home/x", "/nowhere/home/.ssh", "/etc", ".", "/nowhere/home/.ssh/pub")
DOMAINS = ("a.example", "*.a.example", "b.example:443", "10.0.0.1")
COMMANDS = ("docker *", "npm:*", "npm run test")
RULE_TEXTS = (
    "Edit(./out)",
    "Edit(//etc)",
    "Read(~/.ssh)",
    "WebFetch(domain:a.example)",
    "Bash(npm:*)",
    "Edit",
    "WebFetch",
)


def _values(name: str) -> st.SearchStrategy[Any]:
    key = CATALOG[name]
    texts: tuple[str, ...] = PATHS
    if "omains" in name:
        texts = DOMAINS
    elif name == "sandbox.filesystem.allowProtected":
        texts = (*PATHS, ".vscode", ".git/hooks")
    elif name == "sandbox.excludedCommands":
        texts = COMMANDS
    elif name.startswith("permissions."):
        texts = RULE_TEXTS
    return {
        Kind.FLAG: st.booleans(),
        Kind.NUMBER: st.integers(key.low, min(key.high, key.low + 9)),
        Kind.TEXT: st.sampled_from(["/opt/rg"]),
        Kind.TEXTS: st.lists(st.sampled_from(texts), max_size=3).map(tuple),
        Kind.ARGV: st.just(()),
        Kind.TABLE: st.just({"*": ("x",)}),
    }[key.kind]


VALUES = st.fixed_dictionaries({}, optional={name: _values(name) for name in CATALOG})


class Nothing:
    """A disk on which nothing exists, so that verdicts rest on the rules alone."""

    def link(self, _path: str) -> str | None:
        return None

    def exists(self, _path: str) -> bool:
        return False

    def is_directory(self, _path: str) -> bool:
        return False

    def names(self, _path: str) -> tuple[str, ...]:
        return ()

    def text(self, _path: str) -> str | None:
        return None

    def config(self, _path: str) -> bytes | None:
        return None

    def gitlinks(self, _path: str, _hash_size: int) -> tuple[str, ...]:
        return ()


LOOSER = {Verdict.ALLOW: 2, Verdict.ASK: 1, Verdict.DENY: 0}


def _openness(policy: SandboxPolicy) -> list[int]:
    """How open the policy is in every respect that a command could use; a larger number is looser."""
    mode, sockets = policy.mode, policy.sockets
    paths = [path if path.startswith("/") else f"{CWD}/{path}" for path in (*PATHS, "src/x", "keep/y")]
    lines = ("docker ps", "npm ci", "npm run test --x", "ls", "docker ps; ls")
    return [
        not mode.enabled,
        mode.allow_unsandboxed,
        not mode.fail_if_unavailable,
        mode.weaker_nested,
        sockets.all_unix,
        sockets.local_binding,
        len(sockets.unix),
        sockets.http_proxy_port is not None,
        sockets.socks_proxy_port is not None,
        len(policy.ignored_violations),
        len(policy.ripgrep),
        -policy.files.search_depth,
        policy.files.allow_git_config,
        len(policy.files.lifted),
        len(policy.files.left_allow),
        len(policy.commands.allow),
        -len(policy.commands.deny),
        *(judge(policy.files, access, path, Nothing()).allowed for path in paths for access in Access),
        *(
            LOOSER[decide(policy.network, host, port, can_ask=True).verdict]
            for host in ("a.example", "x.a.example", "b.example", "10.0.0.1")
            for port in (80, 443)
        ),
        *(decide_exclusion(policy.commands.excluded, line).excluded for line in lines),
    ]


@settings(deadline=None)
@given(higher=VALUES, project=VALUES)
def test_an_untrusted_project_never_loosens_any_verdict(higher: dict[str, Any], project: dict[str, Any]) -> None:
    above = document(Layer.USER, higher)
    kept = tighten(document(Layer.PROJECT, project), merge([above])).document
    without, within = compiled(above), compiled(above, kept)
    if "sandbox.autoAllowBashIfSandboxed" not in higher:
        # Who says so himself may run sandboxed commands unasked, whoever then turns the sandbox on.
        assert (within.mode.enabled and within.mode.auto_allow) <= (without.mode.enabled and without.mode.auto_allow)
    for before, after in zip(_openness(without), _openness(within), strict=True):
        assert after <= before


PROJECT_FILES = [
    f"/nowhere/project/{folder}/{name}"
    for folder in (".stockade", ".claude")
    for name in ("settings.json", "settings.local.json")
]


def _layer(file: str) -> Layer:
    return Layer.LOCAL if file.endswith("local.json") else Layer.PROJECT


@pytest.mark.parametrize("file", PROJECT_FILES)
@pytest.mark.parametrize("text", ["data", "./data", "data/", "sub/../data"])
def test_a_relative_path_of_a_project_starts_at_the_project(file: str, text: str) -> None:
    lists = ("allowWrite", "denyWrite", "denyRead", "allowRead", "allowProtected")
    values: dict[str, Any] = {f"sandbox.filesystem.{name}": (text,) for name in lists}
    values |= {"sandbox.network.allowUnixSockets": (text,), "permissions.deny": (f"Read({text})", f"Edit({text})")}
    settings = merge([document(_layer(file), values, file)])
    policy = compile_policy(settings, cwd=f"{CWD}/sub/deep", home=HOME)
    files = policy.files
    rules = (files.write_allow[1:], files.write_deny[:1], files.read_deny[:1], files.read_allow, files.left_allow)
    for (rule,) in (*rules, policy.sockets.unix):
        assert (rule.value.path, rule.value.text) == (f"{CWD}/data", text)


@pytest.mark.parametrize(
    ("layer", "file"),
    [
        pytest.param(Layer.COMMAND_LINE, "", id="a flag"),
        pytest.param(Layer.COMMAND_LINE, f"{CWD}/.stockade/settings.json", id="a file given by name"),
        pytest.param(Layer.POLICY, "/etc/stockade/managed-settings.json", id="the administrator's"),
        pytest.param(Layer.FLAG, "/srv/flag.json", id="the fleet's"),
        pytest.param(Layer.LOCAL, f"{HOME}/.stockade/settings.local.json", id="the local one of home"),
        pytest.param(Layer.USER, f"{HOME}/.claude/settings.json", id="the user's"),
    ],
)
def test_all_others_start_where_the_session_works(layer: Layer, file: str) -> None:
    policy = compiled(document(layer, {"sandbox.filesystem.denyRead": ("data",)}, file))
    assert [rule.value.path for rule in policy.files.read_deny] == [f"{CWD}/data"]


@pytest.mark.parametrize(
    ("text", "path"), [("~/x", f"{HOME}/x"), ("/srv/x", "/srv/x"), ("**/.env", "/nowhere/**/.env")]
)
def test_what_is_not_relative_stays(text: str, path: str) -> None:
    policy = compiled(document(Layer.PROJECT, {"sandbox.filesystem.denyRead": (text,)}, "/nowhere/.stockade/s.json"))
    assert [rule.value.path for rule in policy.files.read_deny] == [path]


def test_the_same_words_in_two_projects_mean_two_places_and_in_one_project_one() -> None:
    files = [*PROJECT_FILES, "/nowhere/.stockade/settings.json"]
    documents = [document(_layer(file), {"sandbox.filesystem.denyRead": ("secret",)}, file) for file in files]
    policy = compiled(*documents)
    assert [rule.value.path for rule in policy.files.read_deny] == [f"{CWD}/secret", "/nowhere/secret"]


def test_nobody_takes_a_deny_of_the_policy_away_by_repeating_it() -> None:
    policy = document(Layer.POLICY, {"sandbox.filesystem.denyRead": ("/nowhere/keys",)})
    given = {"sandbox.filesystem.denyRead": ("/nowhere/keys",), "sandbox.filesystem.allowRead": ("/nowhere/keys/one",)}
    for layer in (Layer.COMMAND_LINE, Layer.FLAG, Layer.USER):
        rules = compiled(*sorted((policy, document(layer, given)), key=lambda one: -one.layer)).files
        assert not judge(rules, Access.READ, "/nowhere/keys/one", Disk()).allowed


DENIES = {
    "sandbox.filesystem.denyRead": "~/zz",
    "sandbox.filesystem.denyWrite": "~/zz",
    "sandbox.network.denyUnixSockets": "~/zz",
    "permissions.deny": "Read(~/zz)",
}
ALLOWS = {
    "sandbox.filesystem.allowWrite": "~/zz",
    "sandbox.filesystem.allowRead": "~/zz",
    "sandbox.filesystem.allowProtected": "~/zz",
    "sandbox.network.allowUnixSockets": "~/zz",
    "permissions.allow": "Edit(~/zz)",
}


def places_of(policy: SandboxPolicy) -> list[str]:
    files, sockets = policy.files, policy.sockets
    lists = (
        files.write_deny,
        files.read_deny,
        sockets.denied_unix,
        files.write_allow[1:],
        files.read_allow,
        files.left_allow,
        sockets.unix,
    )
    return [rule.value.path for rules in lists for rule in rules]


@pytest.mark.parametrize(
    ("name", "text"), [*DENIES.items(), ("permissions.deny", "Edit(~/zz)"), ("permissions.deny", "Read:~/zz")]
)
def test_a_deny_of_the_policy_in_home_means_every_home(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    policy = document(Layer.POLICY, {name: (text,)})
    for known, expected in (
        ("/nowhere/real", [f"{HOME}/zz", "/nowhere/real/zz"]),
        (HOME, [f"{HOME}/zz"]),
        ("", [f"{HOME}/zz"]),
        ("/", [f"{HOME}/zz", "/zz"]),
    ):
        monkeypatch.setattr(home, "database_home", lambda known=known: known)
        assert places_of(compiled(policy)) == expected
        assert places_of(compiled(document(Layer.USER, {name: (text,)}))) == [f"{HOME}/zz"]


@pytest.mark.parametrize("text", ["~", "~/", "~/**", "~/."])
def test_a_home_that_is_the_root_of_the_disk_is_not_denied_whole(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(home, "database_home", lambda: "/")
    policy = document(Layer.POLICY, {"sandbox.filesystem.denyRead": (text,)})
    assert places_of(compiled(policy)) == [HOME]


@pytest.mark.parametrize(("name", "text"), ALLOWS.items())
def test_an_allow_of_the_policy_in_home_does_not_follow_a_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    policy = document(Layer.POLICY, {name: (text, text.replace("~/zz", "/nowhere/x"))})
    for known, expected in ((HOME, [f"{HOME}/zz", "/nowhere/x"]), ("", [f"{HOME}/zz", "/nowhere/x"])):
        monkeypatch.setattr(home, "database_home", lambda known=known: known)
        assert places_of(compiled(policy)) == expected
        assert compiled(policy).notes == ()
    monkeypatch.setattr(home, "database_home", lambda: "/nowhere/real")
    assert places_of(compiled(policy)) == ["/nowhere/x"]
    why = f"HOME is {HOME}, which is not your home in the user database"
    assert compiled(policy).notes == (f'/nowhere/policy.json: "{text}" allows nothing: {why}',)
    lower = compiled(document(Layer.USER, {name: (text,)}))
    assert (places_of(lower), lower.notes) == ([f"{HOME}/zz"], ())


def test_a_mistake_in_the_policys_home_is_one_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "database_home", lambda: "/nowhere/real")
    with pytest.raises(SettingsError) as caught:
        compiled(document(Layer.POLICY, {"sandbox.filesystem.denyRead": ("~/*/../x",)}))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("spelling", ["/nowhere/home", "/nowhere/home/", "//nowhere/home", "/nowhere/home/."])
def test_however_home_is_spelled_its_files_are_the_users(spelling: str) -> None:
    local = document(
        Layer.LOCAL,
        {"sandbox.filesystem.allowWrite": (".",), "sandbox.filesystem.denyWrite": ("./secret",)},
        f"{spelling}/.stockade/settings.local.json",
    )
    claude = document(Layer.USER, {"permissions.deny": ("Read(/x)",)}, f"{spelling}/.claude/settings.json")
    policy = compile_policy(merge([local, claude]), cwd=CWD, home=spelling)
    assert places_of(policy) == [f"{CWD}/secret", "/nowhere/home/.claude/x", CWD]


@pytest.mark.parametrize(
    ("file", "name", "text", "own", "projects"),
    [
        (".stockade/settings.json", "sandbox.filesystem.denyRead", "./key", f"{CWD}/key", f"{HOME}/key"),
        (".stockade/settings.local.json", "sandbox.filesystem.denyWrite", "key", f"{CWD}/key", f"{HOME}/key"),
        (".stockade/settings.json", "permissions.deny", "Read(key)", f"{CWD}/key", f"{HOME}/key"),
        (".claude/settings.json", "permissions.deny", "Edit(/key)", f"{HOME}/.claude/key", f"{HOME}/key"),
        (".stockade/settings.json", "sandbox.filesystem.denyRead", "~/key", f"{HOME}/key", ""),
        (".stockade/settings.json", "sandbox.filesystem.denyRead", "/key", "/key", ""),
        (".stockade/settings.json", "sandbox.filesystem.allowWrite", "key", f"{CWD}/key", ""),
    ],
)
def test_a_deny_in_a_home_that_may_be_a_project_holds_by_either_reading(
    monkeypatch: pytest.MonkeyPatch, file: str, name: str, text: str, own: str, projects: str
) -> None:
    layer = Layer.LOCAL if "local" in file else Layer.USER
    said = document(layer, {name: (text,)}, f"{HOME}/{file}")
    for known in (HOME, ""):
        monkeypatch.setattr(home, "database_home", lambda known=known: known)
        assert places_of(compiled(said)) == [own]
    monkeypatch.setattr(home, "database_home", lambda: "/nowhere/real")
    assert places_of(compiled(said)) == ([own, projects] if projects else [own])


@pytest.mark.parametrize(
    ("cwd", "home", "known", "closed"),
    [
        pytest.param("/h/u", "/h/u", "/h/u", "is your home directory", id="home"),
        pytest.param("/h", "/h/u", "/h/u", "holds your home directory", id="above"),
        pytest.param("/", "/h/u", "/h/u", "holds your home directory", id="root"),
        pytest.param("/h/u", "/elsewhere", "/h/u", "is your home directory", id="by-the-database"),
        pytest.param("/h/u/p", "/h/u", "/h/u", "", id="in-home"),
        pytest.param("/h/u2", "/h/u", "/h/u", "", id="beside"),
        pytest.param("/p", "/h/u", "", "", id="elsewhere"),
    ],
)
def test_a_working_directory_that_holds_the_home_is_opened_by_settings_only(
    monkeypatch: pytest.MonkeyPatch, cwd: str, home: str, known: str, closed: str
) -> None:
    monkeypatch.setattr("stockade.policy.compile.database_home", lambda: known)
    files = compile_policy(merge([]), cwd=cwd, home=home).files
    assert bool(files.write_allow) == (not closed)
    assert closed in files.closed
    assert bool(files.closed) == bool(closed)
    opened = compile_policy(
        merge([document(Layer.USER, {"sandbox.filesystem.allowWrite": (".",)})]), cwd=cwd, home=home
    ).files
    assert (cwd in {rule.value.path for rule in opened.write_allow}, opened.closed) == (True, "")


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/h/u/.ssh", ".ssh"),
        ("/h/u/.SSH/deep/er", ".ssh"),
        ("/h/u/.config/systemd/user", ".config/systemd"),
        ("/h/u/.config/nvim/lua", ".config/nvim"),
        ("/h/u/.emacs.d", ".emacs.d"),
        ("/h/u/.dotfiles/vim", ".dotfiles"),
        ("/h/u/bin", "bin"),
        ("/h/u/.config", ""),
        ("/h/u/.config/app", ""),
        ("/h/u/projects/.ssh", ""),
        ("/h/other/.ssh", ""),
    ],
)
@pytest.mark.parametrize("home", ["/h/u", "/elsewhere"], ids=["variable", "database"])
def test_a_working_directory_in_a_name_of_the_home_is_opened_by_its_own_word_only(
    monkeypatch: pytest.MonkeyPatch, cwd: str, name: str, home: str
) -> None:
    monkeypatch.setattr("stockade.policy.compile.database_home", lambda: "/h/u")

    def files(*allowed: str, lifted: tuple[str, ...] = ()) -> FileRules:
        said = {"sandbox.filesystem.allowWrite": allowed, "sandbox.filesystem.allowProtected": lifted}
        return compile_policy(merge([document(Layer.USER, said)]), cwd=cwd, home=home).files

    assert bool(files().write_allow) == (not name)
    assert (f"for it lies in {name} of your home" in files().closed, "--allow-write ." in files().closed) == (
        (True, True) if name else (False, False)
    )
    assert files(".").closed == ""
    assert bool(files("/h/u/*").closed) == bool(name)
    assert (f"--allow-protected {name}" in files("/h/u", ".").closed) == bool(name)
    for lifted in ((name,), (cwd,)) if name else ():
        assert [rule.value.path for rule in files(lifted=lifted).write_allow] == [cwd]
        assert files(lifted=lifted).closed == ""


def test_protected_names_and_paths_are_told_apart() -> None:
    texts = (".VSCode", ".git/config", "packages/*", "./.idea")
    files = compiled(document(Layer.USER, {"sandbox.filesystem.allowProtected": texts})).files
    assert files.lifted == {".vscode", ".git/config", ".git/config.worktree"}
    assert [rule.value.path for rule in files.left_allow] == [f"{CWD}/packages/*", f"{CWD}/.idea"]
    assert files.search.lifted == files.lifted


@pytest.mark.parametrize(
    "text", [".claude/settings.json", ".Claude/Settings.local.json", "./.claude/settings.json", "./.stockade"]
)
def test_who_names_settings_of_the_walls_hears_at_once_that_they_stay_closed(text: str) -> None:
    said = document(Layer.COMMAND_LINE, {"sandbox.filesystem.allowProtected": (text,)})
    files = [f"{CWD}/{folder}/{name}" for folder in (".stockade", ".claude") for name in ("settings.json",)]
    (note,) = compiled(said, guarded=tuple(files)).notes
    assert note.startswith(f'"{text}" in allowProtected opens nothing here: Stockade takes its settings from there')
    other = document(Layer.COMMAND_LINE, {"sandbox.filesystem.allowProtected": (".claude", "./.claude", ".vscode")})
    assert compiled(other, guarded=tuple(files)).notes == ()


def test_the_short_form_for_configs_is_the_long_one() -> None:
    short = compiled(document(Layer.USER, {"sandbox.filesystem.allowGitConfig": True})).files
    long = compiled(document(Layer.USER, {"sandbox.filesystem.allowProtected": (".git/config",)})).files
    assert short.search == long.search


def test_a_name_that_protects_nothing_is_named_with_its_place() -> None:
    with pytest.raises(SettingsError) as raised:
        compiled(document(Layer.USER, {"sandbox.filesystem.allowProtected": (".idea", ".vscod")}))
    (problem,) = raised.value.problems
    assert problem.path == "$.sandbox.filesystem.allowProtected[1]"
    assert "Did you mean .vscode?" in problem.hint
