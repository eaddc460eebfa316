"""The page ``docs/compatibility.md``: every workflow with what the last run of it showed.

    python tests/compatibility/outcome_table.py PAGE RESULTS

reads the results of a run (a directory of files, each with one JSON object) and writes the page anew. A workflow that
did not run keeps the outcome that the page has for it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from workflow import Workflow

    #: Words, and as whom it ran.
    Outcome = tuple[str, str]

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
UNTRIED, NOBODY = "not tried yet", "nobody"
BROKEN = "does not work yet"
TITLES = {
    "git": "Git",
    "node": "Node",
    "python": "Python",
    "compiled": "Compilers, build systems, debuggers, interpreters",
    "servers": "Servers and databases",
    "desktop": "Browsers, pictures, films",
    "system": "The shell's everyday programs, and what is refused",
}
HEAD = """\
# Compatibility

What everyday tools do behind the walls. `scripts/test-compatibility --write` made this page: each workflow ran by the
`stockade` command line in a fresh project under a fresh home, and afterwards the host was looked at (`git fsck`,
`git status`, hooks and configuration, what was left in the project and in the home, what was still running).
`--control` runs the same without walls.

- *works*: with the default settings.
- *works with …*: with that flag for one run, or the setting of the same name.
- *refused by design*: why, and what to do.

Registries, remotes and other hosts of the run are servers on loopback. Git has the setting that `stockade doctor`
recommends (`safe.bareRepository=explicit`); without it, the name `refs` is taken in every directory. "From" says where
a workflow started, "as" who ran it.
"""


class Results:
    """What runs showed, by the name of the workflow."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            self._rows.setdefault(row["name"], []).append(row)

    def outcome(self, workflow: Workflow) -> Outcome | None:
        """Return the words for a workflow that ran, and who ran it."""
        rows = self._rows.get(workflow.name)
        if not rows:
            return None
        users = ", ".join(user for user in workflow.users if any(row["user"] == user for row in rows))
        failed = [row for row in rows if row["failure"]]
        if not failed:
            return workflow.expectation(), users
        where = sorted({f"{row['start']}, {row['user']}" for row in failed})
        return f"{BROKEN} ({'; '.join(where)}); expected: {workflow.expectation()}", users


def read_results(folder: Path) -> Results:
    """Return what the files of a directory tell."""
    return Results(json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json")))


def read_outcomes(page: str) -> dict[str, Outcome]:
    """Return the outcomes that a page shows and as whom, by the name of the workflow."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+? \| (.+?) \|$", page, re.MULTILINE)
    return {_plain(name): (_plain(outcome), users) for name, outcome, users in rows if name != "what"}


def render(workflows: Iterable[Workflow], outcomes: Mapping[str, Outcome]) -> str:
    """Return the page, with these outcomes."""
    every = list(workflows)
    parts = [HEAD]
    for part, title in TITLES.items():
        rows = [_row(each, outcomes.get(each.name, (UNTRIED, NOBODY))) for each in every if each.part == part]
        parts.append("\n".join((f"## {title}", "", "| what | outcome | from | as |", "|---|---|---|---|", *rows, "")))
    return "\n".join(parts)


def _row(workflow: Workflow, outcome: Outcome) -> str:
    cells = (workflow.name, outcome[0], ", ".join(workflow.starts), outcome[1])
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*") for cell in cells) + " |"


def _plain(cell: str) -> str:
    return cell.replace("\\|", "|").replace("&lt;", "<").replace("\\*", "*")


def _write(page: Path, folder: Path) -> None:
    from catalog import WORKFLOWS

    results = read_results(folder)
    outcomes = read_outcomes(page.read_text("utf-8")) if page.exists() else {}
    for workflow in WORKFLOWS:
        if (outcome := results.outcome(workflow)) is not None:
            outcomes[workflow.name] = outcome
    page.write_text(render(WORKFLOWS, outcomes), "utf-8")


if __name__ == "__main__":
    _write(Path(sys.argv[1]), Path(sys.argv[2]))
