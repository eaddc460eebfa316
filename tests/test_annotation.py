"""The stand-ins for the words of ``typing``: all there, usable wherever the real ones are."""

from __future__ import annotations

import subprocess
import sys
import typing

import pytest

from stockade import annotation
from stockade.annotation import Generic, Literal, Protocol, TypeVar, cast


def test_every_word_is_one_of_typing() -> None:
    assert [name for name in annotation.__all__ if not hasattr(typing, name)] == []
    assert [name for name in annotation.__all__ if not hasattr(annotation, name)] == []


def test_typing_is_not_imported() -> None:
    program = "import sys, stockade.annotation; sys.exit('typing' in sys.modules)"
    assert subprocess.run([sys.executable, "-S", "-c", program], env=_path(), check=False).returncode == 0


@pytest.mark.parametrize(
    "alias",
    [
        pytest.param("Literal['a', 'b']", id="literals"),
        pytest.param("Literal['a'] | None", id="one of two"),
        pytest.param("None | Literal['a']", id="the other of two"),
        pytest.param("dict[str, Literal['a']]", id="inside another type"),
    ],
)
def test_an_alias_can_be_made_of_them(alias: str) -> None:
    assert eval(alias, {"Literal": Literal}) is not None  # noqa: S307 - the texts are those above


def test_a_class_can_have_parameters() -> None:
    kind = TypeVar("kind")

    class Box(Generic[kind]):
        """A class with a parameter."""

    class Open(Protocol):
        """A class that says what others can do."""

    assert (isinstance(Box[int](), Box), Open.__mro__[-1]) == (True, object)


def test_a_cast_is_no_change() -> None:
    value = object()
    assert cast("int", value) is value


def _path() -> dict[str, str]:
    return {"PYTHONPATH": str(annotation.__file__).rpartition("/stockade/")[0]}
