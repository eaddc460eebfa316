from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os
from stockade.platforms.standard_streams import hold_standard_streams
hold_standard_streams()
reader, writer = os.pipe()
def works(what, number):
    try:
        what(number)
    except OSError as error:
        return error.strerror
    return "works"
results = [works(lambda n: os.read(n, 1), 0), *(works(lambda n: os.write(n, b""), n) for n in (1, 2))]
with open(os.environ["ANSWER"], "w") as file:
    file.write(f"{min(reader, writer) > 2} {results}")
"""
BAD = "Bad file descriptor"


@pytest.mark.parametrize(
    ("redirection", "expected"),
    [
        pytest.param("", ["works", "works", "works"], id="all open"),
        pytest.param("<&-", [BAD, "works", "works"], id="no input"),
        pytest.param(">&-", ["works", BAD, "works"], id="no output"),
        pytest.param("<&- 2>&-", [BAD, "works", BAD], id="output alone"),
        pytest.param("<&- >&- 2>&-", [BAD, BAD, BAD], id="none"),
    ],
)
def test_closed_ones_stay_useless_and_their_numbers_taken(
    tmp_path: object, redirection: str, expected: list[str]
) -> None:
    answer = f"{tmp_path}/answer"
    subprocess.run(
        ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-c", PROGRAM],
        env={"ANSWER": answer},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    with open(answer, encoding="utf-8") as file:
        assert file.read() == f"True {expected}"
