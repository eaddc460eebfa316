"""``contextlib.suppress``, without what that module imports: 3 ms, in a program that is started once per command."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import suppress
else:

    class suppress:  # noqa: N801 - named as in contextlib
        """Go on behind the block if it raises one of these."""

        __slots__ = ("_kinds",)

        def __init__(self, *kinds: type[BaseException]) -> None:
            """Take the kinds of exceptions."""
            self._kinds = kinds

        def __enter__(self) -> None:
            """Begin."""

        def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
            """Tell whether to go on."""
            return kind is not None and issubclass(kind, self._kinds)


__all__ = ["suppress"]
