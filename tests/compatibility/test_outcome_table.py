from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from catalog import WORKFLOWS
from outcome_table import BROKEN, NOBODY, PAGE, UNTRIED, Results, read_outcomes, render
from workflow import EMPTY, PARTS, REPOSITORY, Workflow

if TYPE_CHECKING:
    from collections.abc import Mapping

ONE = Workflow("a | b", "git", ("true",), reaches="HOST", allows=(".x",))
NO = Workflow("rm *", "system", ("false",), refused="because; do this")


def row(name: str, failure: str = "", start: str = EMPTY) -> Mapping[str, object]:
    return {"name": name, "start": start, "user": "root", "failure": failure, "seconds": 1}


def test_the_page_has_the_rows_of_the_catalogue() -> None:
    page = PAGE.read_text("utf-8")
    assert page == render(WORKFLOWS, read_outcomes(page)), "run: scripts/test-compatibility --write"


def test_every_outcome_on_the_page_is_what_the_catalogue_expects_for_everybody() -> None:
    shown = read_outcomes(PAGE.read_text("utf-8"))
    expected = {workflow.name: (workflow.expectation(), ", ".join(workflow.users)) for workflow in WORKFLOWS}
    assert shown == expected, "run: scripts/test-compatibility --write"


def test_names_are_one_of_a_kind_and_there_are_many() -> None:
    assert len({workflow.name for workflow in WORKFLOWS}) == len(WORKFLOWS) >= 45


@pytest.mark.parametrize(
    ("workflow", "rows", "outcome"),
    [
        pytest.param(ONE, [], None, id="did not run"),
        pytest.param(
            ONE, [row("a | b")], ("works with `--allow-domain HOST` `--allow-protected .x`", "root"), id="with flags"
        ),
        pytest.param(NO, [row("rm *")], ("refused by design: because; do this", "root"), id="refused"),
        pytest.param(
            ONE,
            [row("a | b"), row("a | b", "oh", REPOSITORY)],
            (f"{BROKEN} (repository, root); expected: works with `--allow-domain HOST` `--allow-protected .x`", "root"),
            id="from one start it fails",
        ),
    ],
)
def test_an_outcome_is_what_the_run_showed(
    workflow: Workflow, rows: list[Mapping[str, object]], outcome: tuple[str, str] | None
) -> None:
    assert Results(rows).outcome(workflow) == outcome


def test_what_a_page_shows_can_be_read_back() -> None:
    outcomes = {
        "a | b": ("works with `--allow-domain HOST` `--allow-protected .x`", "user, root"),
        "rm *": (UNTRIED, NOBODY),
    }
    assert read_outcomes(render((ONE, NO), outcomes)) == outcomes


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"setting": "`--x`"}, id="words for a flag that no line has"),
        pytest.param({"setting": "`--x`", "steps": ("$ true",), "refused": "because"}, id="works and is refused"),
        pytest.param({"part": "cooking"}, id="no such part"),
        pytest.param({"steps": ()}, id="nothing to do"),
    ],
)
def test_a_workflow_that_is_not_well_described(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="workflow"):
        Workflow(**({"name": "x", "part": "git", "steps": ("true",)} | fields))


def test_the_scripts_know_the_parts() -> None:
    scripts = PAGE.parents[1] / "scripts"
    assert f"    {' | '.join(PARTS)})" in (scripts / "test-compatibility").read_text("utf-8")
    table = (scripts / "system-packages").read_text("utf-8").partition("table='\n")[2].partition("\n'\n")[0]
    purposes = {purpose for row in table.splitlines() for purpose in row.split()[1].split(",")}
    assert purposes <= {"demo", "test", *PARTS}
    assert {workflow.part for workflow in WORKFLOWS} == set(PARTS)
