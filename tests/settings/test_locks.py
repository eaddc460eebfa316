from __future__ import annotations

import pytest

from stockade.errors import LockedError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.rule import Rule
from stockade.settings.catalog import AUTO_ALLOW, LEAVING, LOCKING
from stockade.settings.document import Document
from stockade.settings.layer import Layer, Origin
from stockade.settings.locks import Confined, Lock, admit_command_line, confine, find_lock, require_unlocked
from stockade.settings.merge import merge

ENABLED, AUTO, UNSANDBOXED = (key.name for key in LOCKING)
POLICY = Document(Layer.POLICY, "/etc/p.json", {ENABLED: True, "sandbox.excludedCommands": ("docker *",)})
LOCK = Lock(Origin(Layer.POLICY, "/etc/p.json", "$.sandbox.enabled"), (ENABLED,))
FLAG_LOCK = Lock(Origin(Layer.FLAG, "/flag.json", "$.sandbox.enabled"), (ENABLED,))
#: A loose value of each way out.
WAYS_OUT: dict[str, object] = {
    "sandbox.enabled": False,
    "sandbox.excludedCommands": ("npm",),
    "sandbox.failIfUnavailable": False,
    "sandbox.enableWeakerNestedSandbox": True,
    "sandbox.network.allowUnixSockets": ("/run/docker.sock",),
    "sandbox.network.allowAllUnixSockets": True,
    "sandbox.network.httpProxyPort": 8080,
    "sandbox.network.socksProxyPort": 8081,
    "sandbox.filesystem.allowGitConfig": True,
    "sandbox.filesystem.allowProtected": (".",),
    "sandbox.filesystem.dangerouslyAllowOwnInstallation": True,
    "sandbox.mandatoryDenySearchDepth": 1,
}


@pytest.mark.parametrize("name", [ENABLED, AUTO, UNSANDBOXED])
@pytest.mark.parametrize("layer", list(Layer))
@pytest.mark.parametrize("value", [True, False])
def test_any_locking_key_in_policy_or_flag_locks(name: str, layer: Layer, *, value: bool) -> None:
    locks = layer in (Layer.POLICY, Layer.FLAG)
    origin = Origin(layer, "f", f"$.{name}")
    expected = Lock(origin, (name,), origin if name == AUTO and not value else None) if locks else None
    assert find_lock([Document(layer, "f", {name: value})]) == expected


def test_who_wants_commands_asked_for_is_the_highest_that_speaks_of_it() -> None:
    flag = Document(Layer.FLAG, "/flag.json", {AUTO: False})
    user = Document(Layer.USER, "u", {AUTO: False})
    for documents, asking in (
        ([POLICY, flag], flag.origin(AUTO_ALLOW)),
        ([POLICY.but(values={AUTO: True}), flag], None),
        ([POLICY, user], None),
    ):
        lock = find_lock(documents)
        assert lock is not None
        assert lock.asking == asking


EVERY = ("Bash", "Bash(*)", "Bash:*", "Bash(*:*)", "Bash(**)", "Bash(* *)", "Bash(*\t*)", "Bash:* **")
NARROW = ("Bash(ls)", "Bash(:)", "Bash(A=1 *)", "Bash(* main)", "Bash(a*)", "Bash:ls:*", "Edit(*)", "Edit", "Bashful")


@pytest.mark.parametrize("rule", EVERY)
def test_what_allows_every_command_is_what_the_policy_takes_for_it(rule: str) -> None:
    """Settings do not know the language of rules; so they agree on this one question."""
    content = Rule.parse(rule).content
    assert CommandPattern.parse("*" if content is None else content).is_universal


@pytest.mark.parametrize("layer", [layer for layer in Layer if layer > Layer.DEFAULTS])
def test_below_a_lock_that_asks_no_rule_allows_every_command(layer: Layer) -> None:
    asking = Lock(Origin(Layer.FLAG, "/flag.json", "$.x"), (AUTO,), Origin(Layer.FLAG, "/flag.json", "$.x"))
    document = Document(layer, "f", {"permissions.allow": (*EVERY, *NARROW), "permissions.deny": ("Bash",)})
    found = confine(document, asking)
    if layer >= Layer.FLAG:
        assert found == Confined(document, ())
        return
    assert found.document.values == {"permissions.allow": NARROW, "permissions.deny": ("Bash",)}
    assert found.dropped[:2] == ('permissions.allow "Bash"', 'permissions.allow "Bash(*)"')
    assert len(found.dropped) == len(EVERY)
    assert confine(document, asking.but(asking=None)).dropped == ()


def test_other_keys_do_not_lock() -> None:
    assert find_lock([Document(Layer.POLICY, "f", {"permissions.deny": ("x",)})]) is None


def test_the_highest_file_is_named_and_all_keys_are() -> None:
    flag = Document(Layer.FLAG, "/flag.json", {ENABLED: False, UNSANDBOXED: False})
    user = Document(Layer.USER, "u", {AUTO: True})
    assert find_lock([POLICY, flag, user]) == LOCK.but(keys=(ENABLED, UNSANDBOXED))


def test_editing_is_refused_with_the_name_of_the_file() -> None:
    require_unlocked(None)
    with pytest.raises(LockedError) as caught:
        require_unlocked(LOCK)
    assert caught.value.message == "sandbox settings are locked by /etc/p.json (policy)"
    assert caught.value.hint == "Ask the administrator of this machine to change /etc/p.json."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(ENABLED, True, id="repeats the locked value"),
        pytest.param(UNSANDBOXED, False, id="tightens another"),
        pytest.param("sandbox.filesystem.denyRead", ("~",), id="denies more"),
        pytest.param("sandbox.excludedCommands", ("docker *",), id="repeats an exclusion"),
        pytest.param("sandbox.mandatoryDenySearchDepth", 9, id="searches deeper"),
    ],
)
def test_the_command_line_may_tighten(name: str, value: object) -> None:
    admit_command_line(Document(Layer.COMMAND_LINE, "--flag", {name: value}), LOCK, merge([POLICY]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(ENABLED, False, id="off"),
        pytest.param("sandbox.excludedCommands", ("docker *", "npm"), id="one more exclusion"),
        pytest.param("sandbox.filesystem.allowWrite", ("/",), id="writable"),
        pytest.param("sandbox.network.httpProxyPort", 3128, id="another proxy"),
        pytest.param("sandbox.mandatoryDenySearchDepth", 1, id="searches less"),
        pytest.param("permissions.allow", ("Edit(/)",), id="allows"),
    ],
)
def test_the_command_line_may_not_loosen(name: str, value: object) -> None:
    document = Document(Layer.COMMAND_LINE, "--flag", {"permissions.deny": ("x",), name: value})
    with pytest.raises(LockedError) as caught:
        admit_command_line(document, LOCK, merge([POLICY]))
    assert (
        caught.value.message == f"--flag would loosen {name}, but sandbox settings are locked by /etc/p.json (policy)"
    )
    assert caught.value.hint == "Ask the administrator of this machine to change /etc/p.json."
    admit_command_line(document, None, merge([POLICY]))


LEAVES = {"sandbox.excludedCommands": ("npm",), "sandbox.failIfUnavailable": False}
STAYS = {"sandbox.failIfUnavailable": True, "permissions.allow": ("Edit(/)",), "sandbox.network.allowedDomains": ("a",)}


@pytest.mark.parametrize(
    ("layer", "lock", "values", "kept", "dropped"),
    [
        pytest.param(Layer.PROJECT, LOCK, LEAVES, {}, tuple(LEAVES), id="project"),
        pytest.param(Layer.USER, LOCK, LEAVES, {}, tuple(LEAVES), id="user"),
        pytest.param(Layer.LOCAL, LOCK, LEAVES, {}, tuple(LEAVES), id="local"),
        pytest.param(Layer.FLAG, LOCK, LEAVES, {}, tuple(LEAVES), id="flag, which any user can name, below policy"),
        pytest.param(Layer.FLAG, FLAG_LOCK, LEAVES, LEAVES, (), id="flag has locked itself"),
        pytest.param(Layer.USER, FLAG_LOCK, LEAVES, {}, tuple(LEAVES), id="user below flag"),
        pytest.param(Layer.POLICY, LOCK, LEAVES, LEAVES, (), id="policy too"),
        pytest.param(Layer.POLICY, FLAG_LOCK, LEAVES, LEAVES, (), id="policy above the lock of a fleet"),
        pytest.param(Layer.COMMAND_LINE, LOCK, LEAVES, LEAVES, (), id="the command line is refused elsewhere"),
        pytest.param(Layer.USER, None, LEAVES, LEAVES, (), id="no lock"),
        pytest.param(Layer.USER, LOCK, STAYS, STAYS, (), id="other lists merge, and to fail is no way out"),
        pytest.param(
            Layer.USER, LOCK, {"sandbox.excludedCommands": ()}, {"sandbox.excludedCommands": ()}, (), id="none"
        ),
    ],
)
def test_under_a_lock_only_who_may_lock_lets_commands_out(
    layer: Layer, lock: Lock | None, values: dict[str, object], kept: dict[str, object], dropped: tuple[str, ...]
) -> None:
    document = Document(layer, "f", values)
    assert confine(document, lock) == Confined(Document(layer, "f", kept), dropped)


def test_a_lock_keeps_the_installation_closed() -> None:
    name = "sandbox.filesystem.dangerouslyAllowOwnInstallation"
    for layer in (Layer.USER, Layer.PROJECT, Layer.LOCAL):
        document = Document(layer, "f", {name: True, "permissions.deny": ("Read(./x)",)})
        assert confine(document, LOCK) == Confined(document.but(values={"permissions.deny": ("Read(./x)",)}), (name,))
        assert confine(document, None) == Confined(document, ())


def test_the_ways_out_are_all_tried_here() -> None:
    assert list(WAYS_OUT) == [key.name for key in LEAVING]


@pytest.mark.parametrize("layer", [Layer.PROJECT, Layer.USER, Layer.LOCAL, Layer.FLAG])
@pytest.mark.parametrize("name", WAYS_OUT)
def test_a_lock_takes_every_way_out(name: str, layer: Layer) -> None:
    document = Document(layer, "/f", {name: WAYS_OUT[name]})
    assert confine(document, LOCK) == Confined(document.but(values={}), (name,))


@pytest.mark.parametrize("name", WAYS_OUT)
def test_under_a_lock_the_command_line_opens_no_way_out(name: str) -> None:
    document = Document(Layer.COMMAND_LINE, "", {name: WAYS_OUT[name]})
    with pytest.raises(LockedError, match=f"the command line would loosen {name}, but"):
        admit_command_line(document, LOCK, merge([Document(Layer.POLICY, "/etc/p.json", {ENABLED: True})]))


def test_the_same_path_of_a_project_is_another_place() -> None:
    name = "sandbox.filesystem.allowRead"
    project = Document(Layer.PROJECT, "/p/.stockade/settings.json", {name: ("x",)})
    given = Document(Layer.COMMAND_LINE, "", {name: ("x",)})
    with pytest.raises(LockedError):
        admit_command_line(given, LOCK, merge([POLICY, project]))
    admit_command_line(given, LOCK, merge([POLICY, Document(Layer.POLICY, "/etc/q.json", {name: ("x",)})]))
