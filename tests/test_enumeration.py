"""Each rule holds for the real enumerations too: whoever knows those knows ours."""

from __future__ import annotations

import copy
import enum
import pickle
from typing import Any

import pytest

from stockade import enumeration


class OurColour(enumeration.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"
    AZURE = "blue"

    @property
    def short(self) -> str:
        return self.name[0]


class TheirColour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"
    AZURE = "blue"  # noqa: PIE796 - two names for one member

    @property
    def short(self) -> str:
        return self.name[0]


class OurLevel(enumeration.IntEnum):
    """A level."""

    LOW = 1
    HIGH = 2


class TheirLevel(enum.IntEnum):
    """A level."""

    LOW = 1
    HIGH = 2


COLOURS = [pytest.param(OurColour, id="ours"), pytest.param(TheirColour, id="theirs")]
LEVELS = [pytest.param(OurLevel, id="ours"), pytest.param(TheirLevel, id="theirs")]
BOTH = [*COLOURS, *LEVELS]


@pytest.mark.parametrize("colour", COLOURS)
def test_members_are_found_by_attribute_value_and_name(colour: Any) -> None:
    assert colour("red") is colour["RED"] is colour.RED
    assert (colour.RED.name, colour.RED.value, colour.RED.short) == ("RED", "red", "R")
    assert isinstance(colour.RED, colour)


@pytest.mark.parametrize("colour", COLOURS)
def test_each_is_there_once_and_in_order(colour: Any) -> None:
    assert list(colour) == [colour.RED, colour.BLUE]
    assert (len(colour), colour.AZURE is colour.BLUE) == (2, True)
    assert list(colour.__members__) == ["RED", "BLUE", "AZURE"]
    assert colour.RED in colour


@pytest.mark.parametrize("colour", COLOURS)
def test_members_differ_from_each_other_and_from_their_values(colour: Any) -> None:
    assert colour.RED not in {colour.BLUE, "red"}
    assert {colour.RED: 1}[colour.RED] == 1


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("value", [pytest.param("green", id="unknown"), pytest.param([], id="of no use")])
def test_no_member_has_another_value(colour: Any, value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a valid \w+Colour"):
        colour(value)


@pytest.mark.parametrize("colour", COLOURS)
def test_no_member_has_another_name(colour: Any) -> None:
    with pytest.raises(KeyError, match="GREEN"):
        colour["GREEN"]


@pytest.mark.parametrize("colour", COLOURS)
def test_they_print_as_they_are_written(colour: Any) -> None:
    name = colour.__name__
    assert (str(colour.RED), repr(colour.RED), f"{colour.RED}") == (
        f"{name}.RED",
        f"<{name}.RED: 'red'>",
        f"{name}.RED",
    )


@pytest.mark.parametrize("level", LEVELS)
def test_numbers_are_numbers(level: Any) -> None:
    assert (level.LOW < level.HIGH, level.LOW == 1, level.HIGH + 1, str(level.LOW)) == (True, True, 3, "1")
    assert (max(level), level(2), {1: "a"}[level.LOW]) == (level.HIGH, level.HIGH, "a")
    assert repr(level.LOW) == f"<{level.__name__}.LOW: 1>"


@pytest.mark.parametrize("kind", BOTH)
def test_copies_are_the_same_member(kind: Any) -> None:
    for member in kind:
        copies = (copy.copy(member), copy.deepcopy(member), pickle.loads(pickle.dumps(member)))  # noqa: S301 - our own
        assert all(same is member for same in copies)


@pytest.mark.parametrize("kind", BOTH)
def test_members_cannot_be_replaced(kind: Any) -> None:
    with pytest.raises(AttributeError):
        setattr(kind, next(iter(kind)).name, 3)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("name", ["name", "value"])
def test_members_cannot_be_changed(kind: Any, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(next(iter(kind)), name, 3)
