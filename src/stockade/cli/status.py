"""``stockade status``: the settings in force, who set them, locks, and what this machine lacks."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.cli import flags
from stockade.cli.context import context
from stockade.cli.reach import reach
from stockade.escape import escape

if TYPE_CHECKING:
    from stockade.cli.context import Context
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.platforms.requirements import Missing
    from stockade.settings.layer import Origin
    from stockade.settings.sources import Locations

Options = flags.PolicyOptions


def configure(parser: Parser) -> None:
    """Add the arguments."""
    flags.add_json(parser)
    flags.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Print the state."""
    from stockade.platforms.requirements import missing_here

    found = context(options, shown, locations)
    lacking = missing_here()
    if options.json:
        shown.json(_facts(found, lacking))
    else:
        _print(found, lacking, shown)
    return 0


def _facts(found: Context, lacking: tuple[Missing, ...]) -> dict[str, object]:
    lock = found.loaded.lock
    return {
        "enabled": found.policy.mode.enabled,
        "directory": found.policy.cwd,
        "network": reach(found.policy, os.environ).facts(),
        "settings": {
            name: [{"value": value, "layer": str(origin.layer), "file": origin.file} for value, origin in entries]
            for name, entries in _effective(found).items()
        },
        "locked": None if lock is None else {"layer": str(lock.origin.layer), "file": lock.origin.file},
        "files": [document.file for document in found.loaded.documents if document.file],
        "warnings": list(found.loaded.warnings),
        "missing": [
            {"program": one.requirement.program, "need": one.requirement.need.value, "install": one.install}
            for one in lacking
        ],
    }


def _effective(found: Context) -> dict[str, list[tuple[object, Origin]]]:
    """Return every setting: what somebody set with who set it, else the default."""
    from stockade.settings.catalog import CATALOG
    from stockade.settings.merge import DEFAULT

    entries = found.loaded.settings.entries
    return {
        name: [(entry.value, entry.origin) for entry in entries.get(name, ())] or [(key.default, DEFAULT)]
        for name, key in CATALOG.items()
    }


def _print(found: Context, lacking: tuple[Missing, ...], shown: Terminal) -> None:
    mode = found.policy.mode
    state = shown.paint("on", "green") if mode.enabled else shown.paint("off", "yellow")
    shown.line(f"sandbox: {state} in {found.tilde(found.policy.cwd)}")
    if found.loaded.lock is not None:
        shown.line(f"locked by {found.origin(found.loaded.lock.origin)}: the sandbox settings cannot be changed here")
    for line in reach(found.policy, os.environ).lines():
        shown.line(line)
    shown.line()
    rows = [(name, _worded(value), origin) for name, entries in _effective(found).items() for value, origin in entries]
    name_width = max(len(name) for name, _, _ in rows)
    value_width = min(max(len(value) for _, value, _ in rows), 40)
    for name, value, origin in rows:
        setter = shown.paint(found.origin(origin), "dim")
        shown.line(f"  {name.ljust(name_width)}  {value.ljust(value_width)}  {setter}")
    shown.line()
    for one in lacking:
        what = f"{one.requirement.program} ({one.requirement.need.value}: {one.requirement.purpose})"
        shown.line(f"missing: {what}; to get it: {one.install}")
    if not lacking:
        shown.line("nothing is missing on this machine")


def _worded(value: object) -> str:
    if isinstance(value, tuple) and len(value) == 2:  # noqa: PLR2004 - a pair of ignoreViolations
        return f"{escape(str(value[0]))}: {escape(str(value[1]))}"
    words = {True: "true", False: "false", None: "not set"}
    if value is None or isinstance(value, bool):
        return words[value]
    return escape(str(value)) if value not in ((), {}) else "nothing"
