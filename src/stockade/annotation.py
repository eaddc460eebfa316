"""The words of ``typing``, for annotations alone.

Type checkers read them from ``typing`` itself. A running program gets stand-ins that take whatever is done to them and
mean nothing: no annotation is evaluated here, and to import ``typing`` costs 5 ms, in a program that is started once
per command. A module that asks for types at run time must import the real ones.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import (
        Any,
        BinaryIO,
        ClassVar,
        Final,
        Generic,
        Literal,
        NoReturn,
        Protocol,
        Self,
        TextIO,
        TypeAlias,
        TypeGuard,
        TypeVar,
        cast,
        dataclass_transform,
    )
else:

    class _Word:
        """A word that may stand wherever a type may."""

        def __getitem__(self, _parameters: object) -> _Word:
            return self

        def __or__(self, _other: object) -> _Word:
            return self

        __ror__ = __or__

    class _Base:
        """A base class that may have parameters, and adds nothing."""

        def __class_getitem__(cls, _parameters: object) -> type:
            return cls

    Any = BinaryIO = ClassVar = Final = Literal = NoReturn = Self = TextIO = TypeAlias = TypeGuard = _Word()
    Generic = Protocol = _Base

    def TypeVar(*_: object, **__: object) -> _Word:  # noqa: N802 - named as in typing
        """Return something to write types with."""
        return Any

    def cast(_kind: object, value: object) -> object:
        """Return the value as it is."""
        return value

    def dataclass_transform(**_: object) -> object:
        """Return what leaves a class as it is."""
        return lambda decorated: decorated


__all__ = [
    "TYPE_CHECKING",
    "Any",
    "BinaryIO",
    "ClassVar",
    "Final",
    "Generic",
    "Literal",
    "NoReturn",
    "Protocol",
    "Self",
    "TextIO",
    "TypeAlias",
    "TypeGuard",
    "TypeVar",
    "cast",
    "dataclass_transform",
]
