"""Enumerations, cheap to define: those of ``enum``, without what that imports.

Type checkers see ``enum`` itself. To import it costs 4 ms and each of its classes 80 microseconds, and ``stockade run``
is started once per command. Here is what this package uses of it: members by attribute, by value and by name, in
order, each there once; ``name`` and ``value``; methods and properties of members. Nothing can be changed or added.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import Enum, IntEnum
else:

    def _is_member(word: str, value: object) -> bool:
        return not word.startswith("_") and not hasattr(type(value), "__get__")

    def _member(kind: type, name: str, value: object) -> object:
        member = int.__new__(kind, value) if issubclass(kind, int) else object.__new__(kind)
        member.__dict__.update(name=name, value=value)
        return member

    class _Enumeration(type):
        """The class of enumerations."""

        def __new__(meta, name: str, bases: tuple[type, ...], body: dict[str, object]) -> _Enumeration:
            values = {word: value for word, value in body.items() if _is_member(word, value)}
            made = super().__new__(meta, name, bases, {word: body[word] for word in body if word not in values})
            members: dict[str, object] = {}
            by_value: dict[object, object] = {}
            for word, value in values.items():
                if value not in by_value:
                    by_value[value] = _member(made, word, value)
                members[word] = by_value[value]
                type.__setattr__(made, word, members[word])
            type.__setattr__(made, "__members__", members)
            type.__setattr__(made, "_by_value", by_value)
            return made

        def __call__(cls, value: object) -> object:
            """Return the member with a value."""
            try:
                return cls._by_value[value]
            except (KeyError, TypeError):
                message = f"{value!r} is not a valid {cls.__name__}"
                raise ValueError(message) from None

        def __getitem__(cls, name: str) -> object:
            """Return the member with a name."""
            return cls.__members__[name]

        def __iter__(cls) -> Iterator[object]:
            """Go through the members in order."""
            return iter(cls._by_value.values())

        def __len__(cls) -> int:
            """Count the members."""
            return len(cls._by_value)

        def __bool__(cls) -> bool:
            """Be there, even without members."""
            return True

        def __contains__(cls, value: object) -> bool:
            """Tell whether something is a member."""
            return isinstance(value, cls)

        def __setattr__(cls, name: str, value: object) -> NoReturn:
            """Refuse: enumerations do not change."""
            message = f"{cls.__name__} is immutable: {name}"
            raise AttributeError(message)

    class Enum(metaclass=_Enumeration):
        """Base of enumerations."""

        def __setattr__(self, name: str, value: object) -> NoReturn:
            """Refuse: members do not change."""
            message = f"{self!s} is immutable: {name}"
            raise AttributeError(message)

        def __repr__(self) -> str:
            """Print name and value."""
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __str__(self) -> str:
            """Print the name."""
            return f"{type(self).__name__}.{self.name}"

        def __hash__(self) -> int:
            """Hash by name."""
            return hash(self.name)

        def __reduce_ex__(self, _protocol: object) -> tuple[type, tuple[object]]:
            """Be the same member again after copying, and in another process."""
            return type(self), (self.value,)

    class IntEnum(int, Enum):
        """Base of enumerations whose members are numbers."""

        __repr__ = Enum.__repr__
        __str__ = int.__repr__
        __hash__ = int.__hash__


__all__ = ["Enum", "IntEnum"]
