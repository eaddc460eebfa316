"""``stockade doctor`` on macOS."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.platforms.macos.diagnosis import Finding, diagnose

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.cli.doctor import Options
    from stockade.cli.terminal import Terminal
    from stockade.settings.sources import Locations

_STYLES: Final = {"ok": "green", "note": "green", "missing": "yellow", "blocked": "red"}
_WIDTH: Final = max(map(len, _STYLES))


def run_macos(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Say what was found; 1 if no walls can be built."""
    findings = (*diagnose(), *_notes(locations))
    blocked = any(finding.level == "blocked" for finding in findings)
    if options.json:
        facts = [{"level": one.level, "what": one.what, "why": one.why, "remedy": one.remedy} for one in findings]
        shown.json({"enforceable": "no" if blocked else "full", "findings": facts})
        return int(blocked)
    for one in findings:
        shown.line(
            f"{shown.paint(one.level, _STYLES[one.level])}{' ' * (_WIDTH - len(one.level))}  {one.what}: {one.why}"
        )
        if one.remedy:
            shown.line(f"{' ' * _WIDTH}    {one.remedy}")
    shown.line()
    text = "No walls can be built here, and so nothing is run." if blocked else "Walls can be built here."
    shown.line(shown.paint(text, "red" if blocked else "green"))
    if options.prove:
        shown.line("The attacks on the walls of macOS are run by: scripts/test tests/seatbelt")
    return int(blocked)


def _notes(locations: Locations | None) -> Iterator[Finding]:
    from stockade.cli.context import here
    from stockade.cli.doctor import bare_repositories, uncounted_entries
    from stockade.errors import StockadeError
    from stockade.escape import escape
    from stockade.policy.effective import effective

    try:
        policy = effective(here(locations)).policy
    except StockadeError as error:
        yield Finding("missing", "settings", error.message, "stockade check")
        return
    for why, hint in uncounted_entries(policy):
        yield Finding("note", "PATH", escape(why, 400), hint)
    for why, hint in bare_repositories(policy):
        yield Finding("note", "git", why, hint)
