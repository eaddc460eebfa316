"""What was set aside, in the words of a report: what, why, and how to take it back."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.platforms.backend import Report
from stockade.policy.file_remedy import for_lifting

if TYPE_CHECKING:
    from stockade.filesystem.finding import Finding


#: What to think of first.
BEWARE: Final = "beware: git on the host then obeys its config and runs its hooks, so read these first"


def report(ticket: int, finding: Finding) -> Report:
    """Return the report of one finding."""
    if not finding.path:
        remedy = "look at what it left before you use git, an editor or an agent there"
        return Report(ticket, "leave", "what it made", why=f"{finding.why}: {finding.failure}", remedy=remedy)
    if finding.kept:
        name = finding.kept.rpartition("/")[2]
        why = f'it was set aside as "{escape(name)}", for {finding.why}'
        if finding.back:
            return Report(ticket, "leave", finding.path, why=why, remedy=f"{way_back(finding.back)}; {BEWARE}")
        back = f"to take it back, run: mv -nT -- {shell_word(finding.kept)} {shell_word(finding.path)}"
    else:
        why = f"it could not be set aside ({finding.failure}), and {finding.why}"
        back = "remove it before you use git, an editor or an agent there"
    return Report(ticket, "leave", finding.path, why=why, remedy=f"{_setting(finding.path)}; {back}")


def way_back(line: str) -> str:
    """Return a line of a shell that takes something back, with words."""
    return f"to have it there after all, run: {line}"


def _setting(path: str) -> str:
    """Return what lets commands leave such things there from now on."""
    return for_lifting(path)


def shell_word(text: str) -> str:
    """Return a text as one word of a shell, on one line."""
    if text.isascii() and text.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum():
        return text
    if text.isprintable():
        return "'" + text.replace("'", "'\\''") + "'"
    encoded = text.encode(errors="surrogateescape")
    return "$'" + "".join(_ansi(byte) for byte in encoded) + "'"


def _ansi(byte: int) -> str:
    char = chr(byte)
    return char if char.isascii() and char.isprintable() and char not in "\\'" else f"\\x{byte:02x}"
