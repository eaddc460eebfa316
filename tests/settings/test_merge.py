from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.settings.catalog import (
    ALLOW,
    CATALOG,
    ENABLED,
    EXCLUDED_COMMANDS,
    IGNORE_VIOLATIONS,
    RIPGREP_ARGS,
    SEARCH_DEPTH,
    Key,
    Kind,
)
from stockade.settings.document import Document
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.settings.merge import DEFAULT, EMPTY, merge, settings_of

_WORDS = st.sampled_from(["a", "b", "c"])
_TEXTS = st.lists(_WORDS, max_size=3).map(tuple)


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


_DOCUMENTS = st.builds(
    Document,
    st.sampled_from(list(Layer)),
    st.sampled_from(["one", "two"]),
    st.fixed_dictionaries({}, optional={name: _values(key) for name, key in CATALOG.items()}),
)


def _document(layer: Layer, **values: object) -> Document:
    return Document(layer, f"{layer}.json", {CATALOG_BY_WORD[word].name: value for word, value in values.items()})


CATALOG_BY_WORD: dict[str, Key[object]] = {
    "enabled": CATALOG[ENABLED.name],
    "depth": CATALOG[SEARCH_DEPTH.name],
    "excluded": CATALOG[EXCLUDED_COMMANDS.name],
    "args": CATALOG[RIPGREP_ARGS.name],
    "ignore": CATALOG[IGNORE_VIOLATIONS.name],
}
LAYERS = sorted((layer for layer in Layer if layer is not Layer.DEFAULTS), reverse=True)


def test_nothing_set_gives_the_defaults() -> None:
    settings = merge([])
    assert settings == EMPTY
    assert settings.find(SEARCH_DEPTH) == Sourced(3, DEFAULT)
    assert (settings.get(ENABLED), settings.items(ALLOW), settings.pairs(IGNORE_VIOLATIONS)) == (False, (), ())


@pytest.mark.parametrize("above", [pytest.param(count, id=f"{layer} wins") for count, layer in enumerate(LAYERS)])
def test_a_scalar_comes_from_the_highest_layer_that_sets_it(above: int) -> None:
    silent = [_document(layer) for layer in LAYERS[:above]]
    setting = [_document(layer, depth=int(layer)) for layer in LAYERS[above:]]
    winner = LAYERS[above]
    expected = Sourced(int(winner), Origin(winner, f"{winner}.json", SEARCH_DEPTH.path))
    assert merge([*silent, *setting]).find(SEARCH_DEPTH) == expected


def test_false_above_wins_over_true_below() -> None:
    assert merge([_document(Layer.USER, enabled=False), _document(Layer.PROJECT, enabled=True)]).get(ENABLED) is False


def test_a_list_is_concatenated_highest_first_without_duplicates() -> None:
    settings = merge(
        [_document(Layer.USER, excluded=("b", "a", "b", "c")), _document(Layer.PROJECT, excluded=("a", "d"))]
    )
    path = EXCLUDED_COMMANDS.path
    user, project = Origin(Layer.USER, "user.json"), Origin(Layer.PROJECT, "project.json")
    assert settings.items(EXCLUDED_COMMANDS) == (
        Sourced("b", user.but(path=f"{path}[0]")),
        Sourced("a", user.but(path=f"{path}[1]")),
        Sourced("c", user.but(path=f"{path}[3]")),
        Sourced("d", project.but(path=f"{path}[1]")),
    )


def test_an_argument_vector_is_one_value_even_when_empty() -> None:
    assert merge([_document(Layer.USER, args=()), _document(Layer.PROJECT, args=("-x",))]).get(RIPGREP_ARGS) == ()


def test_a_table_is_merged_per_key() -> None:
    high = _document(Layer.USER, ignore={"*": ("x",), "npm": ("y",)})
    low = _document(Layer.PROJECT, ignore={"*": ("x", "z"), "git": ()})
    pairs = [(pair.value, pair.origin.layer) for pair in merge([high, low]).pairs(IGNORE_VIOLATIONS)]
    assert pairs == [(("*", "x"), Layer.USER), (("npm", "y"), Layer.USER), (("*", "z"), Layer.PROJECT)]


@given(_DOCUMENTS, _DOCUMENTS, _DOCUMENTS)
def test_merging_is_associative(high: Document, middle: Document, low: Document) -> None:
    one, two, three = map(settings_of, (high, middle, low))
    assert (one | two) | three == one | (two | three) == merge([high, middle, low])


@given(_DOCUMENTS)
def test_nothing_is_neutral_and_repetition_changes_nothing(document: Document) -> None:
    settings = settings_of(document)
    assert EMPTY | settings == settings | EMPTY == settings | settings == settings


def test_the_same_path_in_two_projects_is_kept_twice_and_in_one_folder_once() -> None:
    name = "sandbox.filesystem.denyRead"
    documents = [
        Document(Layer.LOCAL, "/p/sub/.stockade/settings.local.json", {name: ("secret",)}),
        Document(Layer.PROJECT, "/p/sub/.stockade/settings.json", {name: ("secret",)}),
        Document(Layer.PROJECT, "/p/.stockade/settings.json", {name: ("secret",)}),
    ]
    files = [entry.origin.file for entry in merge(documents).entries[name]]
    assert files == ["/p/sub/.stockade/settings.local.json", "/p/.stockade/settings.json"]


def test_words_of_another_layer_do_not_take_the_place_of_the_policys() -> None:
    name = "sandbox.filesystem.denyRead"
    documents = [Document(layer, "", {name: ("/secret",)}) for layer in (Layer.COMMAND_LINE, Layer.POLICY, Layer.FLAG)]
    assert [entry.origin.layer for entry in merge(documents).entries[name]] == [Layer.COMMAND_LINE, Layer.POLICY]
