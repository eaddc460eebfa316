"""What people do with Python and its package managers."""

from __future__ import annotations

from workflow import EMPTY, REPOSITORY, Workflow

USE = "python -c 'import six; print(six.__name__)'"
UV = f"uv add six && uv run {USE}"
TEST = 'printf \'def test_it(tmp_path):\\n    (tmp_path / "x").write_text("x")\\n\' >test_it.py'
NOTEBOOK = (
    'printf \'{"cells":[{"cell_type":"code","execution_count":null,"metadata":{},"outputs":[],"source":"print(6*7)"}],'
    '"metadata":{"kernelspec":{"name":"python3","display_name":"p","language":"python"}},"nbformat":4,"nbformat_minor":4}\' '
    ">it.ipynb"
)
PACKAGE = (
    'printf \'[build-system]\\nrequires = ["setuptools"]\\nbuild-backend = "setuptools.build_meta"\\n'
    '[project]\\nname = "it"\\nversion = "1"\\n[tool.setuptools]\\npy-modules = ["it"]\\n\' >pyproject.toml && '
    "printf 'answer: int = 42\\n' >it.py"
)
PRE_COMMIT = """
printf 'repos:\\n- repo: local\\n  hooks:\\n  - id: no-x\\n    name: no x\\n    entry: ls\\n    language: system\\n' \
  >.pre-commit-config.yaml
git add . && git commit -qm hooks
"""

PYTHON = (
    Workflow(
        "python -m venv, pip install",
        "python",
        (
            f"/usr/bin/python3 -m venv env && . env/bin/activate && pip install six && {USE}",
            f". env/bin/activate && {USE} && pip uninstall -y six",
        ),
        reaches="INDEX",
        says="^six$",
    ),
    Workflow(
        "pip install -e . with build isolation",
        "python",
        (
            "/usr/bin/python3 -m venv env && env/bin/pip install -e . && cd env && bin/python -c 'import it; print(it.answer)'",
        ),
        reaches="INDEX",
        before=PACKAGE,
        says="^42$",
    ),
    Workflow(
        "pip install --user",
        "python",
        ("/usr/bin/python3 -m pip install --user --break-system-packages editables",),
        reaches="INDEX",
        refused="programs in the home are started outside the walls, and by everybody; make a virtual environment in the project",
        says="[Rr]ead-only file system|Permission denied",
    ),
    Workflow(
        "uv init ., uv add, uv run",
        "python",
        (
            f"uv init --no-python-downloads . && {UV}",
            "uv lock --check && uv run python -c 'import six'",
        ),
        needs=("uv",),
        reaches="INDEX",
        starts=(EMPTY,),
        says="^six$",
        after="test -f pyproject.toml && test -f uv.lock",
    ),
    Workflow(
        "uv init app",
        "python",
        (f"uv init --no-python-downloads app && cd app && {UV}",),
        needs=("uv",),
        reaches="INDEX",
        after="test -f app/uv.lock",
    ),
    Workflow(
        "uv pip install, the second time from a warm cache",
        "python",
        (
            "uv venv -q && uv pip install six pytest",
            "rm -r .venv && uv venv -q && uv pip install --offline six pytest && .venv/bin/pytest --version",
        ),
        needs=("uv",),
        reaches="INDEX",
        says="^pytest 9",
    ),
    Workflow(
        "poetry new, poetry install",
        "python",
        (
            "poetry new app && cd app && poetry source add --priority=primary loopback http://{host}/simple/ && poetry add six && poetry install",
            "cd app && poetry run python -c 'import six, app; print(six.__name__)'",
        ),
        needs=("poetry",),
        reaches="INDEX",
        says="^six$",
        after="test -f app/poetry.lock",
    ),
    Workflow(
        "hatch new, hatch build",
        "python",
        (
            "hatch new app && cd app && hatch build && hatch version minor",
            "cd app && hatch run python -c 'import app; print(app.__name__)'",
        ),
        needs=("hatch",),
        reaches="INDEX",
        says="^app$",
        after="test -f app/dist/app-0.0.1-py3-none-any.whl",
    ),
    Workflow(
        "tox",
        "python",
        ("tox -e py",),
        needs=("tox",),
        reaches="INDEX",
        before=f"{PACKAGE} && {TEST} && printf '[testenv]\\ndeps = pytest\\ncommands = pytest -q\\n' >tox.ini",
        says="congratulations",
    ),
    Workflow(
        "pre-commit run",
        "python",
        ("pre-commit run --all-files", "pre-commit run --all-files"),
        needs=("pre-commit",),
        reaches="HOST",
        starts=(REPOSITORY,),
        before="""
git init -q --bare ../../repositories/hooks.git
git init -q ../seed
(
cd ../seed
printf -- '- id: greet\\n  name: greet\\n  entry: greet.sh\\n  language: script\\n  verbose: true\\n' >.pre-commit-hooks.yaml
printf '#!/bin/sh\\necho greetings\\n' >greet.sh && chmod +x greet.sh
git add . && git commit -qm hooks && git tag v1 && git push -q ../../repositories/hooks.git main v1
)
rm -rf ../seed
printf 'repos:\\n- repo: http://{host}/git/hooks.git\\n  rev: v1\\n  hooks: [{id: greet}]\\n' >.pre-commit-config.yaml
git add . && git commit -qm hooks
""",
        says="greetings",
    ),
    Workflow(
        "pre-commit install",
        "python",
        ("pre-commit install", "echo fine >fine && git add fine && git commit -qm fine"),
        needs=("pre-commit",),
        allows=(".git/hooks",),
        starts=(REPOSITORY,),
        before=PRE_COMMIT,
        makes=(".git/hooks",),
        after="test -x .git/hooks/pre-commit",
    ),
    Workflow(
        "pre-commit install, without a word from you",
        "python",
        ("pre-commit install",),
        needs=("pre-commit",),
        starts=(REPOSITORY,),
        before=PRE_COMMIT,
        refused="your own git would start the hook, outside the walls; install it yourself, or say "
        "`--allow-protected .git/hooks`",
        says="allow-protected|allowProtected",
    ),
    Workflow("pytest", "python", ("pytest -q", "pytest -q --lf"), needs=("pytest",), before=TEST, says="1 passed"),
    Workflow("mypy", "python", ("mypy it.py", "mypy it.py"), needs=("mypy",), before=PACKAGE, says="Success"),
    Workflow(
        "ruff", "python", ("ruff check . && ruff format .",), needs=("ruff",), before=PACKAGE, says="All checks passed"
    ),
    Workflow(
        "jupyter nbconvert --execute",
        "python",
        ("jupyter nbconvert --to notebook --execute --inplace it.ipynb",),
        needs=("jupyter",),
        before=NOTEBOOK,
        after="grep -q 42 it.ipynb",
    ),
    Workflow(
        "multiprocessing: pools, managers, shared memory",
        "python",
        ("python it.py",),
        before="printf 'import multiprocessing as m\\nfrom multiprocessing import shared_memory\\n"
        'if __name__ == "__main__":\\n'
        '    for kind in "fork", "spawn", "forkserver":\\n'
        "        with m.get_context(kind).Pool(2) as pool: print(kind, pool.map(abs, [-1, 2]))\\n"
        "    with m.Manager() as manager: print(list(manager.list([1, 2])))\\n"
        "    memory = shared_memory.SharedMemory(create=True, size=2); memory.close(); memory.unlink()\\n' >it.py",
        says=r"forkserver \[1, 2\]",
    ),
    Workflow(
        "shutil.copytree, make_archive and rmtree of the whole project",
        "python",
        (
            (
                'python -c \'import os, shutil; t = os.environ["TMPDIR"]; shutil.copytree(".", t + "/copy"); '
                'print(shutil.make_archive(t + "/all", "zip", ".")); print(open(t + "/copy/file").read()); shutil.rmtree(t + "/copy")\''
            ),
        ),
        before="echo kept >file",
        says="^kept$",
    ),
)
