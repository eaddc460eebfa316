"""``stockade clean``: remove what package managers keep for sandboxed commands from one session to the next."""

from __future__ import annotations

import os

from stockade.annotation import TYPE_CHECKING
from stockade.cli.context import here, tilde
from stockade.cli.flags import add_json
from stockade.cli.options import Options as Parsed
from stockade.errors import StockadeError
from stockade.escape import escape

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.platforms.kept_caches import KeptCache, Size
    from stockade.settings.sources import Locations


class Options(Parsed):
    """What the command line parses to."""

    all: bool
    stale: bool
    dry_run: bool
    json: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--all", action="store_true", help="the caches of all your projects, not this directory's only")
    kinds.add_argument("--stale", action="store_true", help="the caches of projects whose directory is gone")
    parser.add_argument("-n", "--dry-run", action="store_true", help="say what would be removed, and remove nothing")
    add_json(parser)


def run(options: Options, shown: Terminal, locations: Locations | None) -> int:
    """Remove caches that no running sandbox uses."""
    from stockade.platforms.kept_caches import size_of, sweep

    place = here(locations)
    found = [(cache, size_of(cache)) for cache in _chosen(options, place)]
    gone, busy = found, []
    if not options.dry_run:
        sweep(place.home, os.environ)
        gone = [pair for pair in found if _is_removed(pair[0])]
        busy = [cache for cache, _ in found if cache not in [one for one, _ in gone]]
    if options.json:
        facts = {"removed": [_facts(*pair) for pair in gone], "used": [cache.path for cache in busy]}
        shown.json(facts | {"dryRun": options.dry_run})
    else:
        _print(gone, busy, shown, place.home, dry=options.dry_run)
    if not busy:
        return 0
    message = f"in use by a running sandbox: the cache of {', '.join(tilde(one.project, place.home) for one in busy)}"
    raise StockadeError(message, "end what runs there, and try again")


def _chosen(options: Options, place: Locations) -> tuple[KeptCache, ...]:
    from stockade.platforms.kept_caches import cache_of, caches_of

    if options.all or options.stale:
        every = caches_of(place.home, os.environ)
        return tuple(cache for cache in every if options.all or cache.is_stale)
    own = cache_of(place.cwd, place.home, os.environ)
    return () if own is None else (own,)


def _is_removed(cache: KeptCache) -> bool:
    from stockade.platforms.kept_caches import remove

    try:
        return remove(cache)
    except OSError as error:
        message = f"cannot remove {escape(cache.folder)}: {error.strerror}"
        raise StockadeError(message, "look at what is there, and remove it yourself") from error


def _print(gone: list[tuple[KeptCache, Size]], busy: list[KeptCache], shown: Terminal, home: str, *, dry: bool) -> None:
    verb = "would remove" if dry else "removed"
    for cache, size in gone:
        of = f" of {tilde(cache.project, home)}" if cache.project else ""
        shown.line(f"{verb} {size}{of}: {tilde(cache.path, home)}")
    if not gone and not busy:
        shown.line("there is nothing to remove")


def _facts(cache: KeptCache, size: Size) -> dict[str, object]:
    return {"project": cache.project, "path": cache.path, "bytes": size.bytes, "whole": size.whole}
