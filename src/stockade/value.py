"""Immutable records, cheap to define.

Everything that is decided here exists first as a value: frozen, compared whole, printed whole.
``dataclasses`` would do the same, but costs 8 ms to import and 0.5 ms for each class it builds,
and ``stockade run`` is started once per command. Defining a ``Value`` costs about 10 microseconds.

Rules: fields are the annotated names of the class, base first; a field with a default may be left
out; ``check`` is called once all fields are set and may raise; nothing can be set afterwards.
"""

from __future__ import annotations

from stockade.annotation import Any, ClassVar, NoReturn, Self, dataclass_transform


@dataclass_transform(frozen_default=True, eq_default=True)
class Value:
    """Base of all immutable records."""

    _fields: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}
    #: Whether there is a ``check`` to call: most have none, and thousands of values are made for one plan.
    _checked: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Collect the fields of the class and of its bases, in order."""
        super().__init_subclass__()  # a value may be generic as well
        own = tuple(
            name
            for name, kind in cls.__annotations__.items()
            if not name.startswith("_") and "ClassVar" not in str(kind)
        )
        cls._checked = cls.check is not Value.check
        inherited = cls._fields
        cls._fields = inherited + tuple(name for name in own if name not in inherited)
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Bind arguments to fields, as a function with those parameters would."""
        fields = self._fields
        # Fields stand in their order, however they were given: in that order values are printed and hashed.
        bound = self.__dict__
        bound.update(zip(fields, args))  # noqa: B905 - strict= costs a sixth of the time
        if len(args) != len(fields):
            defaults = self._defaults
            for name in fields[len(args) :]:
                if name in kwargs:
                    bound[name] = kwargs.pop(name)
                elif name in defaults:
                    bound[name] = defaults[name]
            if len(bound) != len(fields) or len(args) > len(fields):
                self._refuse(len(args), kwargs)
        if kwargs:
            self._refuse(len(args), kwargs)
        if self._checked:
            self.check()

    def _refuse(self, given: int, unused: dict[str, Any]) -> NoReturn:
        name, fields = type(self).__name__, self._fields
        if given > len(fields):
            message = f"{name} takes {len(fields)} values, not {given}"
        elif unused:
            message = f"{name} got an unexpected or repeated field {next(iter(unused))!r}"
        else:
            message = f"{name} lacks {', '.join(field for field in fields if field not in self.__dict__)}"
        raise TypeError(message)

    def check(self) -> None:
        """Raise if the fields do not fit together; called once, after all are set."""

    def but(self, **changes: Any) -> Self:
        """Return a copy in which some fields differ."""
        return type(self)(**(self.__dict__ | changes))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse: values do not change."""
        message = f"{type(self).__name__} is immutable: make another with .but({name}=...)"
        raise AttributeError(message)

    def __delattr__(self, name: str) -> NoReturn:
        """Refuse: values do not change."""
        message = f"{type(self).__name__} is immutable"
        raise AttributeError(message)

    def __eq__(self, other: object) -> bool:
        """Compare by type and by every field."""
        if type(self) is not type(other):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """Hash by type and by every field."""
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        """Print as the call that would build it, without the fields left at their default."""
        shown = (
            f"{name}={value!r}"
            for name, value in self.__dict__.items()
            if name not in self._defaults or self._defaults[name] != value
        )
        return f"{type(self).__name__}({', '.join(shown)})"
