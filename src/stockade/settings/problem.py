"""One thing that is wrong in a settings file, said so that it can be mended at once."""

from __future__ import annotations

from stockade.errors import SettingsError
from stockade.escape import escape
from stockade.value import Value


class Problem(Value):
    """Where (``file``, ``path`` inside it), what is wrong, and what to do about it.

    ``path`` is a JSON path such as ``$.sandbox.network.httpProxyPort``; ``$`` is the whole file. The file is kept as
    it is named; path, message and hint are safe to show as they are: what they quote was escaped when they were made.
    """

    file: str
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """Return the one line that people see, safe to show."""
        file = escape(self.file)
        where = file if self.path == "$" else f"{file}: {self.path}"
        return f"{where}: {self.message}"


def whole_file(file: str, message: str, hint: str) -> SettingsError:
    """Return the error of a file with which something is wrong as a whole."""
    return SettingsError([Problem(file, "$", message, hint)])
