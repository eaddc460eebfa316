"""What a command may use up: memory, processes, open files, processor time, output.

A limit of the session holds for each of its commands; a limit of the call replaces it. Where control
groups are writable, memory and processes are counted for the command's whole tree; elsewhere the kernel
counts memory per process and processes per user, and says less when one is hit.
"""

from __future__ import annotations

from stockade.annotation import Final
from stockade.enumeration import Enum
from stockade.errors import InvalidTextError
from stockade.value import Value

_SIGXCPU: Final = 24
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Limit(Enum):
    """Which limit ended a command."""

    MEMORY = "memory"
    PROCESSES = "processes"
    CPU = "cpu"
    OUTPUT = "output"
    TIME = "time"


class Limits(Value):
    """The limits of one command; ``None`` is no limit of ours."""

    memory: int | None = None
    processes: int | None = None
    open_files: int | None = None
    cpu_seconds: int | None = None
    output_bytes: int | None = None

    def check(self) -> None:
        """Refuse what could not be meant."""
        for name in self._fields:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                message = f"the limit {name} must be a whole number above 0, not {value!r}"
                raise InvalidTextError(message, "leave it out for no limit")

    def over(self, lower: Limits) -> Limits:
        """Return these limits, with those of ``lower`` where this says nothing."""
        return Limits(
            **{
                name: getattr(lower, name) if getattr(self, name) is None else getattr(self, name)
                for name in self._fields
            }
        )

    def rlimits(self, *, grouped: bool) -> tuple[tuple[int, int], ...]:
        """Return what setrlimit(2) enforces; ``grouped``: memory and processes are counted by a control group."""
        if self == _NO_LIMITS:
            return ()
        import resource  # a library to load, for which most commands have no use

        pairs = [
            (resource.RLIMIT_NOFILE, self.open_files),
            (resource.RLIMIT_CPU, self.cpu_seconds),
            (resource.RLIMIT_AS, None if grouped else self.memory),
            (resource.RLIMIT_NPROC, None if grouped else self.processes),
        ]
        return tuple((kind, value) for kind, value in pairs if value is not None)

    def hit_by(self, signal: int | None, cpu_time: float) -> Limit | None:
        """Tell from how a command ended whether its processor time had run out."""
        if self.cpu_seconds is None:
            return None
        exceeded = signal == _SIGXCPU or (signal is not None and cpu_time >= self.cpu_seconds)
        return Limit.CPU if exceeded else None


_NO_LIMITS: Final = Limits()


def parse_size(text: str) -> int:
    """Read a number of bytes such as ``512M`` or ``2g``."""
    digits = text.rstrip("kKmMgGtT")
    unit = text[len(digits) :].lower()
    if not (digits.isascii() and digits.isdigit() and unit in _UNITS):
        message = f"not a size: {text!a}"
        raise InvalidTextError(message, "write a number of bytes, or one with K, M, G or T: 512M")
    return int(digits) * _UNITS[unit]
