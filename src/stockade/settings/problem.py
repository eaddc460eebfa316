"""One thing that is wrong in a settings file, said so that it can be mended at once."""

from __future__ import annotations

from stockade.value import Value


class Problem(Value):
    """Where (``file``, ``path`` inside it), what is wrong, and what to do about it.

    ``path`` is a JSON path such as ``$.sandbox.network.httpProxyPort``; ``$`` is the whole file.
    """

    file: str
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """Return the one line that people see."""
        where = self.file if self.path == "$" else f"{self.file}: {self.path}"
        return f"{where}: {self.message}"
