"""Every workflow of the catalogue behind real walls, from each start, as whoever runs this."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catalog import WORKFLOWS
from command import Ending, run, run_in_terminal
from place import STOCKADE
from workflow import ON_HOST, ROOT, USER

if TYPE_CHECKING:
    from place import Place
    from workflow import Workflow

WHO = USER if os.geteuid() else ROOT
CHOSEN = os.environ.get("STOCKADE_COMPATIBILITY", "").split()
CONTROL = bool(os.environ.get("STOCKADE_COMPATIBILITY_CONTROL"))


def _step(place: Place, workflow: Workflow, line: str, *, last: bool) -> Ending:
    words = ["bash", "-c", place.words(line)]
    if line.startswith(ON_HOST):
        path = f"{STOCKADE.parent}:{place.environment['PATH']}"
        return run(["bash", "-ec", place.words(line[2:])], place.project, place.environment | {"PATH": path})
    if not CONTROL:
        flags = map(place.words, workflow.flags())
        words = [str(STOCKADE), "run", "--violations=full", *flags, "-c", place.words(line)]
    if workflow.keys and last:
        return run_in_terminal(words, place.project, place.environment, workflow.keys)
    return run(words, place.project, place.environment | ({"TMPDIR": str(place.temporary)} if CONTROL else {}))


def _try(place: Place, workflow: Workflow, start: str) -> None:
    place.begin(start)
    if workflow.before:
        place.on_host(workflow.before)
    said = ""
    for number, line in enumerate(workflow.steps, 1):
        last = number == len(workflow.steps)
        if CONTROL and (line.startswith(ON_HOST) or (workflow.refused and last)):
            return
        ending = _step(place, workflow, line if line.startswith(ON_HOST) else f"set -e\n{line}", last=last)
        said += ending.said
        refused = bool(workflow.refused) and last
        assert (ending.code not in (0, None)) if refused else ending.code == 0, (
            f"step {number} ended with {ending.code}:\n{ending.said}"
        )
    assert re.search(place.words(workflow.says), said, re.MULTILINE), (
        f"{workflow.says!r} is not in what was said:\n{said}"
    )
    assert not workflow.hides or workflow.hides not in said, f"{workflow.hides!r} was shown:\n{said}"
    if workflow.after:
        place.on_host(workflow.after, said)
    assert CONTROL or place.remains(workflow) == []


def _record(workflow: Workflow, start: str, failure: str, seconds: float) -> None:
    folder = os.environ.get("STOCKADE_COMPATIBILITY_RESULTS")
    if folder and not CONTROL:
        row = {"name": workflow.name, "start": start, "user": WHO, "failure": failure, "seconds": round(seconds, 1)}
        # One file for each, so that a later run replaces what an earlier one showed.
        name = re.sub(r"[^a-z0-9]+", "-", f"{WHO} {workflow.name} {start}".lower())
        Path(folder, f"{name}.json").write_text(json.dumps(row))


def _selected() -> list[pytest.param]:  # type: ignore[valid-type] # pytest keeps the type to itself
    return [
        pytest.param(workflow, start, id=f"{workflow.part}: {workflow.name} ({start})")
        for workflow in WORKFLOWS
        if ("all" in CHOSEN or workflow.part in CHOSEN) and WHO in workflow.users
        for start in workflow.starts
    ]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("workflow", "start"), _selected())
def test_a_workflow_behind_the_walls(place: Place, workflow: Workflow, start: str) -> None:
    path = place.environment["PATH"]
    missing = [program for program in workflow.needs if not shutil.which(program, path=path)]
    assert not missing, f"not installed: {missing}"
    began = time.monotonic()
    try:
        _try(place, workflow, start)
    except AssertionError as error:
        _record(workflow, start, str(error), time.monotonic() - began)
        raise
    _record(workflow, start, "", time.monotonic() - began)
