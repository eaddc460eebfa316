"""What `allow` and `deny` have in common: a path goes into one list and out of the opposite one."""

from __future__ import annotations

import os.path

from stockade.annotation import TYPE_CHECKING
from stockade.cli import editing
from stockade.cli.context import here
from stockade.escape import escape

if TYPE_CHECKING:
    from stockade.cli.parser import Parser
    from stockade.cli.terminal import Terminal
    from stockade.policy.model import SandboxPolicy
    from stockade.settings.sources import Locations


class Options(editing.EditOptions):
    """What the command line parses to."""

    path: str
    read: bool


def configure(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument("path", metavar="PATH", help="a path; *, **, ? and [a-z] are wildcards")
    parser.add_argument("--read", action="store_true", help="about reading instead of writing")
    editing.configure(parser)


def change(options: Options, shown: Terminal, locations: Locations | None, *, allow: bool) -> int:
    """Put the path into the list, take it out of the opposite one, and say if another rule still decides."""
    from stockade.settings.catalog import ALLOW_READ, ALLOW_WRITE, DENY_READ, DENY_WRITE
    from stockade.settings.edit import AddItems, RemoveItems

    place = here(locations)
    text = _spelled(options.path, place)
    allowing, denying = (ALLOW_READ, DENY_READ) if options.read else (ALLOW_WRITE, DENY_WRITE)
    chosen, opposite = (allowing, denying) if allow else (denying, allowing)
    edits = [AddItems(chosen, (text,)), RemoveItems(opposite, (text,))]
    verb = "may" if allow else "may not"
    deed = "read" if options.read else "write"
    done = f"commands {verb} {deed} {escape(text)}"
    status = editing.change(options, shown, locations, edits, done)
    if allow:
        editing.warn_if(shown, place, lambda policy: _refusal(policy, text, read=options.read))
    return status


def _refusal(policy: SandboxPolicy, text: str, *, read: bool) -> str | None:
    """Return why the path is refused all the same, if it is."""
    from stockade.policy.files import Access, judge
    from stockade.policy.path_pattern import PathPattern
    from stockade.policy.places import Disk

    pattern = PathPattern.parse(text, cwd=policy.cwd, home=policy.home)
    if pattern.is_glob:
        return None
    verdict = judge(policy.files, Access.READ if read else Access.WRITE, pattern.path, Disk())
    return None if verdict.allowed else str(verdict)


def _spelled(text: str, place: Locations) -> str:
    """Return the path as it is stored: absolute, because what is relative would move with the session.

    A name that exists as it stands is a name, even if its characters could be wildcards.
    """
    from stockade.policy.name_glob import escaped
    from stockade.policy.path_pattern import PathPattern

    in_home = text == "~" or text.startswith("~/")
    anchor, rest = (place.home, text[1:]) if in_home else ("", os.path.normpath(os.path.join(place.cwd, text)))
    exists = bool(text) and "\0" not in text and os.path.lexists(anchor + rest)
    if not exists:
        PathPattern.parse(text, cwd=place.cwd, home=place.home)
    return ("~" if in_home else "") + (escaped(rest) if exists else rest)
