"""The layers that settings come from, and where one value came from."""

from __future__ import annotations

import os.path

from stockade.annotation import Generic, TypeVar
from stockade.enumeration import IntEnum
from stockade.escape import escape
from stockade.value import Value

T_co = TypeVar("T_co", covariant=True)


class Layer(IntEnum):
    """Who wrote a setting. A higher layer wins over a lower one."""

    DEFAULTS = 0
    PROJECT = 1
    USER = 2
    LOCAL = 3
    FLAG = 4
    POLICY = 5
    COMMAND_LINE = 6

    def __str__(self) -> str:
        """Return the name that people see."""
        return self.name.lower().replace("_", " ")


class Origin(Value):
    """Where a value was set: layer, file (or a word such as ``--allow-write``), path inside it."""

    layer: Layer
    file: str = ""
    path: str = ""

    @property
    def scope(self) -> str:
        """Where the same text means the same: two files of one folder agree on paths, those of two may not."""
        return scope_of(self.layer, self.file)

    @property
    def is_policy(self) -> bool:
        """Whether the administrator said it, so that what others say in the same words does not take its place."""
        return self.layer is Layer.POLICY

    def __str__(self) -> str:
        """Return ``/etc/x.json (policy)``, safe to show, or just the layer where there is no file."""
        return f"{escape(self.file)} ({self.layer})" if self.file else str(self.layer)


def scope_of(layer: Layer, file: str) -> str:
    """Return the folder that gives a file's relative paths (and slashes, in Claude Code's) their meaning, or ""."""
    return os.path.dirname(file) if Layer.DEFAULTS < layer < Layer.FLAG else ""


class Sourced(Value, Generic[T_co]):
    """A value that remembers who set it."""

    value: T_co
    origin: Origin
