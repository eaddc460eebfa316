"""The examples, and the block of README.md, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.tool.conftest import Yard

ROOT = Path(__file__).parents[2]


def run(yard: Yard, *words: str) -> str:
    yard.user({"sandbox": {"enabled": True}})
    environment = {"PATH": os.environ["PATH"], "HOME": str(yard.home), "PYTHONWARNINGS": "error"}
    ran = subprocess.run(
        [sys.executable, *words], cwd=yard.project, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_an_agent_host(yard: Yard) -> None:
    text = run(yard, str(ROOT / "examples" / "agent_host.py"))
    assert text.startswith("$ echo 'print(6 * 7)' > answer.py && python3 answer.py\n42\n")
    assert re.search(r"\[stockade (\w{12}): exit status 1\]\n\[stockade \1: This failure looks like the sandbox", text)
    assert "Run OUTSIDE the sandbox, in " in text
    assert re.search(r"\[stockade \w{12}: The command did not run: the person said no\]\n", text)
    assert text.endswith("model: The answer is 42; I was not let outside.\n")
    assert not (yard.project.parent / "outside.txt").exists()


def test_an_agent_host_is_short() -> None:
    lines = (ROOT / "examples" / "agent_host.py").read_text("utf-8").split('"""', 2)[2].splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith(("import ", "from ", '"""'))]
    assert len(code) <= 40


def test_an_existing_tool_is_wrapped(yard: Yard) -> None:
    line = "echo hello > greeting; cat greeting; echo x > ../outside.txt"
    text = run(yard, str(ROOT / "examples" / "wrap_existing_tool.py"), line)
    assert text.startswith("hello\n")
    assert "Read-only file system" in text
    assert text.endswith("[1]\n")
    assert (yard.project / "greeting").read_text() == "hello\n"
    assert not (yard.project.parent / "outside.txt").exists()


def test_the_readme(yard: Yard) -> None:
    page = (ROOT / "README.md").read_text("utf-8").split("## As an agent's shell tool", 1)[1]
    block = page.split("```python\n", 1)[1].split("```", 1)[0]
    text = run(yard, "-c", block)
    assert text.startswith("# The sandbox\n")
    mark = re.search(r"carries the id (\w{12}) ", text)
    assert mark is not None
    ours = f"[stockade {mark[1]}: "
    job = f"{ours}nothing new]\n{ours}job-1: runs, inside the sandbox: sleep 60]"
    assert f"\nhello\n\n{job}\nsandbox: on, in {yard.project}\n" in text
