from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.settings.catalog import AUTO_ALLOW, CATALOG, ENABLED, Key, Kind, Loosens
from stockade.settings.document import Document
from stockade.settings.layer import Layer
from stockade.settings.merge import EMPTY, Settings, merge, settings_of
from stockade.settings.tighten import Tightened, tighten

_WORDS = st.sampled_from(["a", "b", "c"])
_TEXTS = st.lists(_WORDS, max_size=3).map(tuple)
EXAMPLES: dict[Kind, tuple[object, object]] = {
    Kind.FLAG: (True, False),
    Kind.NUMBER: (9, 1),
    Kind.TEXT: ("a", "b"),
    Kind.TEXTS: (("a",), ("b",)),
    Kind.ARGV: (("a",), ()),
    Kind.TABLE: ({"*": ("a",)}, {"b": ("c",)}),
}


def _values(key: Key[object]) -> st.SearchStrategy[object]:
    kinds: dict[Kind, st.SearchStrategy[object]] = {
        Kind.FLAG: st.booleans(),
        Kind.NUMBER: st.integers(key.low, key.low + 9),
        Kind.TEXT: _WORDS,
        Kind.TEXTS: _TEXTS,
        Kind.ARGV: _TEXTS,
        Kind.TABLE: st.dictionaries(_WORDS, _TEXTS, max_size=2),
    }
    return kinds[key.kind]


_SAID = st.fixed_dictionaries({}, optional={name: _values(key) for name, key in CATALOG.items()})


def _document(values: dict[str, object], layer: Layer = Layer.PROJECT) -> Document:
    return Document(layer, f"{layer}.json", values)


def _is_looser(key: Key[object], after: Settings, before: Settings) -> bool:
    """Say independently of the code what looser means: more of what loosens, less of what tightens."""
    if key.kind in (Kind.TEXTS, Kind.TABLE):
        new, old = ({entry.value for entry in one.entries.get(key.name, ())} for one in (after, before))
        return not (new >= old if key.loosens is Loosens.NEVER else new <= old)
    new_value, old_value = after.get(key), before.get(key)
    match key.loosens:
        case Loosens.WHEN_TRUE:
            return (new_value, old_value) == (True, False)
        case Loosens.WHEN_FALSE:
            return (new_value, old_value) == (False, True)
        case Loosens.WHEN_LESS:
            return int(str(new_value)) < int(str(old_value))
        case _:
            return new_value != old_value


def _asks(settings: Settings) -> bool:
    """Say whether commands need approval: outside always, inside unless auto-allowed."""
    return not settings.get(ENABLED) or not settings.get(AUTO_ALLOW)


@pytest.mark.parametrize("value", [pytest.param(0, id="first"), pytest.param(1, id="second")])
@pytest.mark.parametrize("name", list(CATALOG))
def test_for_every_key_nothing_gets_looser(name: str, value: int) -> None:
    document = _document({name: EXAMPLES[CATALOG[name].kind][value]}, Layer.LOCAL)
    after = settings_of(tighten(document, EMPTY).document)
    assert not _is_looser(CATALOG[name], after, EMPTY)


@pytest.mark.parametrize(
    ("said", "kept", "dropped"),
    [
        pytest.param({}, {}, (), id="nothing"),
        pytest.param({"permissions.deny": ("a",)}, {"permissions.deny": ("a",)}, (), id="a deny counts"),
        pytest.param({"permissions.allow": ("a",)}, {}, ("permissions.allow",), id="an allow does not"),
        pytest.param({"permissions.allow": ()}, {"permissions.allow": ()}, (), id="an empty allow says nothing"),
        pytest.param(
            {"sandbox.mandatoryDenySearchDepth": 2}, {}, ("sandbox.mandatoryDenySearchDepth",), id="a lesser depth"
        ),
        pytest.param(
            {"sandbox.mandatoryDenySearchDepth": 4}, {"sandbox.mandatoryDenySearchDepth": 4}, (), id="a greater depth"
        ),
        pytest.param({"sandbox.allowUnsandboxedCommands": True}, {}, (), id="repeating a loose default goes unnoticed"),
        pytest.param(
            {"sandbox.enabled": True},
            {"sandbox.enabled": True, "sandbox.autoAllowBashIfSandboxed": False},
            (),
            id="enabling does not end prompts",
        ),
        pytest.param(
            {"sandbox.enabled": True, "sandbox.autoAllowBashIfSandboxed": True},
            {"sandbox.enabled": True, "sandbox.autoAllowBashIfSandboxed": False},
            (),
            id="nor when it says so",
        ),
    ],
)
def test_over_the_defaults(said: dict[str, object], kept: dict[str, object], dropped: tuple[str, ...]) -> None:
    assert tighten(_document(said), EMPTY) == Tightened(_document(kept), dropped)


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        pytest.param(
            {"sandbox.enabled": True}, {"sandbox.enabled": True}, id="enabled already: prompts are as they were"
        ),
        pytest.param(
            {"sandbox.autoAllowBashIfSandboxed": True},
            {"sandbox.enabled": True},
            id="somebody trusted wants no prompts",
        ),
    ],
)
def test_enabling_over_others(others: dict[str, object], kept: dict[str, object]) -> None:
    without = settings_of(_document(others, Layer.USER))
    assert tighten(_document({"sandbox.enabled": True}), without) == Tightened(_document(kept), ())


def test_a_higher_untrusted_document_cannot_undo_a_lower_layer() -> None:
    user = settings_of(_document({"sandbox.mandatoryDenySearchDepth": 9}, Layer.USER))
    said = _document({"sandbox.mandatoryDenySearchDepth": 4}, Layer.LOCAL)
    assert tighten(said, user) == Tightened(_document({}, Layer.LOCAL), ("sandbox.mandatoryDenySearchDepth",))


@given(higher=_SAID, said=_SAID, lower=_SAID)
def test_an_untrusted_document_between_others_never_loosens_anything(
    higher: dict[str, object], said: dict[str, object], lower: dict[str, object]
) -> None:
    above, below = _document(higher, Layer.POLICY), _document(lower, Layer.USER)
    before = merge([above, below])
    after = merge([above, tighten(_document(said, Layer.LOCAL), before).document, below])
    assert [name for name, key in CATALOG.items() if _is_looser(key, after, before)] == []
    explicit = AUTO_ALLOW.name in before.entries
    assert explicit or _asks(after) or not _asks(before)


@given(said=_SAID)
def test_what_is_tightened_stays_as_it_is(said: dict[str, object]) -> None:
    once = tighten(_document(said), EMPTY).document
    assert tighten(once, EMPTY) == Tightened(once, ())
