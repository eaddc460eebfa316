"""A record is frozen, compared whole, printed as the call that builds it, and binds arguments as a function would."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import pytest

from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Point(Value):
    kind: ClassVar[str] = "point"
    x: int
    y: int = 0


class Named(Point):
    name: str = ""


class Pixel(Value):
    x: int
    y: int = 0


class Box(Value, Generic[T]):
    inside: T


class Even(Value):
    number: int

    def check(self) -> None:
        if self.number % 2:
            message = f"{self.number} is odd"
            raise ValueError(message)


@pytest.mark.parametrize(
    ("value", "same"),
    [
        pytest.param(Point(1, 2), Point(x=1, y=2), id="by position and by name"),
        pytest.param(Point(1), Point(1, 0), id="a default"),
        pytest.param(Named(1, 2, "a"), Named(name="a", y=2, x=1), id="fields of the base come first"),
        pytest.param(Point(1).but(y=5), Point(1, 5), id="a copy with a change"),
        pytest.param(Box(Point(1)), Box(Point(1)), id="a value in a value"),
        pytest.param(Box[int](1), Box(1), id="generic"),
        pytest.param(copy.deepcopy(Point(1)), Point(1), id="a deep copy"),
        pytest.param(pickle.loads(pickle.dumps(Point(1, 2))), Point(1, 2), id="over a pickle"),  # noqa: S301 (our own)
    ],
)
def test_equal_values(value: Value, same: Value) -> None:
    assert (value, hash(value), repr(value)) == (same, hash(same), repr(same))


@pytest.mark.parametrize(
    ("value", "other"),
    [
        pytest.param(Point(1), Point(2), id="another field"),
        pytest.param(Point(1), Pixel(1), id="another type with the same fields"),
        pytest.param(Point(1), Named(1), id="a subclass"),
        pytest.param(Point(1), (1, 0), id="a tuple"),
    ],
)
def test_different_values(value: Value, other: object) -> None:
    assert value != other


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(Point(1), "Point(x=1)", id="without what is left at its default"),
        pytest.param(Named(1, 2, "a"), "Named(x=1, y=2, name='a')", id="all fields, base first"),
        pytest.param(Box(Point(3)), "Box(inside=Point(x=3))", id="nested"),
    ],
)
def test_repr_is_the_call_that_builds_it(value: Value, text: str) -> None:
    assert repr(value) == text
    assert eval(text) == value  # noqa: S307 (the text above)


def _build(record: type[Value], /, *args: Any, **kwargs: Any) -> Callable[[], Value]:
    return lambda: record(*args, **kwargs)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        pytest.param(_build(Point), "Point lacks x", id="a field is missing"),
        pytest.param(_build(Point, 1, 2, 3), "Point takes 2 values, not 3", id="too many"),
        pytest.param(_build(Point, 1, z=2), "Point got an unexpected or repeated field 'z'", id="an unknown field"),
        pytest.param(_build(Point, 1, x=2), "Point got an unexpected or repeated field 'x'", id="a field twice"),
        pytest.param(_build(Point, 1, kind=""), "Point got an unexpected or repeated field 'kind'", id="no field"),
    ],
)
def test_wrong_arguments(build: Callable[[], Value], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        build()
    assert str(caught.value) == message


def test_check_guards_every_way_to_a_value() -> None:
    assert Even(2).but(number=4) == Even(4)
    with pytest.raises(ValueError, match="1 is odd"):
        Even(1)
    with pytest.raises(ValueError, match="3 is odd"):
        Even(2).but(number=3)


def test_a_value_cannot_be_changed() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match=r"Point is immutable: make another with \.but\(x=\.\.\.\)"):
        point.x = 2  # type: ignore[misc]  # what must not work
    with pytest.raises(AttributeError, match="immutable"):
        del point.x
    with pytest.raises(AttributeError, match="immutable"):
        point.new = 1
    assert point == Point(1)
