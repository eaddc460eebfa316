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


class Options(flags.PolicyOptions):
    """What the command line parses to."""

    quick: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("--quick", action="store_true", help="leave out what takes time: the size of the cache")
    flags.add_json(parser)
    flags.configure(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Print the state."""
    from stockade.platforms.requirements import missing_here

    found = context(options, shown, locations)
    lacking = missing_here()
    cache = _cache(found, measured=not options.quick)
    if options.json:
        shown.json(_facts(found, lacking) | {"cache": cache})
    else:
        _print(found, lacking, cache, shown)
    return 0


def _cache(found: Context, *, measured: bool) -> dict[str, object]:
    """Return where this project's cache is, what it takes, and whether the policy lets it be kept."""
    from stockade.platforms.kept_caches import cache_of, obstacle, size_of
    from stockade.sandbox.environment import is_kept

    wanted = is_kept(found.policy, os.environ)
    hindered = obstacle(found.policy.home, os.environ)
    facts: dict[str, object] = {"kept": wanted and not hindered, "path": None}
    if not facts["kept"]:
        facts["why"] = hindered if wanted else "a setting says so: privateCache is false, or a deny is about the place"
    cache = cache_of(found.policy.cwd, found.policy.home, os.environ)
    if cache is not None:
        facts["path"] = cache.path
        if measured:
            size = size_of(cache)
            facts |= {"bytes": size.bytes, "whole": size.whole, "size": str(size)}
    return facts


def _cache_line(cache: dict[str, object], found: Context) -> str:
    words = "kept for this project" if cache["kept"] else f"gone with each session ({cache['why']})"
    if cache["path"] is None:
        return f"caches of package managers: {words}; nothing is there yet"
    size = f", {cache['size']}" if "size" in cache else ""
    return f"caches of package managers: {words}; {found.tilde(str(cache['path']))}{size}"


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


def _print(found: Context, lacking: tuple[Missing, ...], cache: dict[str, object], shown: Terminal) -> None:
    mode = found.policy.mode
    state = shown.paint("on", "green") if mode.enabled else shown.paint("off", "yellow")
    others = "" if mode.enabled else ", for agents and other programs; `stockade run` and `shell` use it in any case"
    shown.line(f"sandbox: {state} in {found.tilde(found.policy.cwd)}{others}")
    if found.loaded.lock is not None:
        shown.line(f"locked by {found.origin(found.loaded.lock.origin)}: the sandbox settings cannot be changed here")
    for line in reach(found.policy, os.environ).lines():
        shown.line(line)
    shown.line(_cache_line(cache, found))
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
