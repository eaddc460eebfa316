"""Whether git would pass over a new file: an ignore file names it plainly, that of the user or one in the repository.

Asked for a file that is held by one of its kind while commands run. In sight of git it would show as a new one, and
``git add -A`` would take it. Only patterns that name the file or its directory count. With a pattern that takes back
(``!``) anywhere the answer is no: the safe side.

Source of truth: gitignore(5).
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stockade.filesystem.terrain import Terrain


def is_unseen(path: str, home: str, terrain: Terrain) -> bool:
    """Tell whether git does not see a file that would be made at a path."""
    folder, _, name = path.rpartition("/")
    above = [*_upwards(folder)]
    # Where there is no repository a command may make one, at the directory that holds the folder.
    top = next((place for place in above if terrain.exists(f"{place}/.git")), above[1] if above[1:] else folder)
    files = [f"{place}/.gitignore" for place in above[: above.index(top) + 1]]
    texts = [terrain.config(file) for file in (*files, f"{top}/.git/info/exclude", f"{home}/.config/git/ignore")]
    lines = {line.strip().decode("utf-8", "replace") for text in texts if text for line in text.splitlines()}
    if any(line.startswith("!") for line in lines):
        return False
    last = folder.rpartition("/")[2]
    plain = {name, *(f"{start}{last}{end}" for start in ("", "**/") for end in ("", "/", "/*", "/**", f"/{name}"))}
    return not lines.isdisjoint(plain)


def _upwards(place: str) -> Iterator[str]:
    while place:
        yield place
        place = place.rpartition("/")[0]
