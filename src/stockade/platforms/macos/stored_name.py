"""Rules in the spelling of the disk.

Most disks of macOS find a file by its name in any case, accents composed or not, and keep the name as it was made. The
kernel tells Seatbelt the kept name, so a rule that somebody wrote otherwise would match nothing, in silence. Before
rules are laid over a disk, the beginning of each that exists is spelt as the disk has it. What does not exist stays as
written: where it must not be made, case does not count anyway (``place_filter.made``).
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.policy.path_pattern import joined, names_of
from stockade.policy.places import follow

if TYPE_CHECKING:
    from stockade.policy.files import FileRules
    from stockade.policy.model import Sockets
    from stockade.policy.path_pattern import PathPattern
    from stockade.policy.places import Places
    from stockade.settings.layer import Sourced


def stored_rules(rules: FileRules, places: Places) -> FileRules:
    """Return the same rules, with every place in them spelt as the disk has it."""
    spelling = _Spelling(places)

    def stored(listed: tuple[Sourced[PathPattern], ...]) -> tuple[Sourced[PathPattern], ...]:
        return tuple(rule.but(value=spelling.of_pattern(rule.value)) for rule in listed)

    changed = rules.but(
        write_allow=stored(rules.write_allow),
        write_deny=stored(rules.write_deny),
        read_deny=stored(rules.read_deny),
        read_allow=stored(rules.read_allow),
        left_allow=stored(rules.left_allow),
    )
    return rules if changed == rules else changed


def stored_sockets(sockets: Sockets, places: Places) -> Sockets:
    """Return the same rules about unix sockets, with every denied place spelt as the disk has it."""
    spelling = _Spelling(places)
    denied = tuple(rule.but(value=spelling.of_pattern(rule.value)) for rule in sockets.denied_unix)
    return sockets if denied == sockets.denied_unix else sockets.but(denied_unix=denied)


class _Spelling:
    """What is known of a disk's names; each directory is listed once."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._listed: dict[str, dict[str, str]] = {}

    def of_pattern(self, pattern: PathPattern) -> PathPattern:
        prefix = pattern.static_prefix
        stored = self.of_path(prefix)
        return pattern if stored == prefix else pattern.moved_to(stored)

    def of_path(self, path: str) -> str:
        done: list[str] = []
        names = names_of(path)
        for depth, name in enumerate(names):
            directory = follow(joined(done), self._places).place
            if not self._places.exists(joined([*names_of(directory), name])):
                return joined([*done, *names[depth:]])
            listed = self._in(directory)
            done.append(listed.get(name) or listed.get(_key(name), name))
        return joined(done)

    def _in(self, directory: str) -> dict[str, str]:
        """Return the names in a directory: each under itself, and under what is the same to the disk."""
        known = self._listed.get(directory)
        if known is None:
            listed = self._places.names(directory)
            # A name's own spelling comes last: on a disk that tells case apart, it is the one that counts.
            known = self._listed[directory] = {_key(name): name for name in listed} | {name: name for name in listed}
        return known


def _key(name: str) -> str:
    if name.isascii():
        return name.casefold()
    import unicodedata

    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())
