"""Stockade in a writable place: no command changes what the next ``stockade`` runs on the host.

The project has an environment of its own from which Stockade runs, as the README has it in a clone.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import h11
import idna
import pytest

import stockade

PATH: Final = "/usr/local/bin:/usr/bin:/bin"
SETTING: Final = "dangerouslyAllowOwnInstallation"
#: A planted program or module does this.
EVIL: Final = "open('{mark}', 'w').close()"
#: Attempts on the environment; ``{site}`` is its site directory, ``{package}`` the package.
ATTACKS: Final = {
    "the program": "printf '#!/bin/sh\\ntouch {mark}\\n' > .venv/bin/stockade",
    "the package": 'echo "{evil}" >> {package}/__init__.py',
    "a module": 'echo "{evil}" >> {package}/cli/main.py',
    "compiled code": (
        'mkdir -p {package}/__pycache__; echo "{evil}" > evil.py;'
        "python3 -c \"import py_compile, sys; py_compile.compile('evil.py', '{package}/__pycache__/x.pyc')\";"
        "cp {package}/__pycache__/x.pyc {package}/__init__.pyc; rm {package}/__init__.py"
    ),
    "a path file": 'echo "import os; {evil}" > {site}/evil.pth',
    "a start-up module": 'echo "{evil}" > {site}/sitecustomize.py',
    "a start-up module beside the package": 'echo "{evil}" > {package}/../sitecustomize.py',
    "the environment's settings": "mv .venv/pyvenv.cfg aside",
    "the interpreter": "printf '#!/bin/sh\\ntouch {mark}\\n' > fake; chmod +x fake; mv fake .venv/bin/python",
    "the environment moved aside": (
        "mv .venv aside; mkdir -p .venv/bin; printf '#!/bin/sh\\ntouch {mark}\\n' > .venv/bin/stockade;"
        "chmod +x .venv/bin/stockade"
    ),
    "a library moved aside": 'mv {site} aside; mkdir {site}; cp -r aside/* {site}; echo "{evil}" > {site}/a.py;'
    'echo "import a" > {site}/a.pth',
}


class Place:
    """A project with an environment, from which Stockade runs."""

    def __init__(self, root: Path, layout: str) -> None:
        self.project, self.home, self.mark = root / "project", root / "home", root / "mark"
        self.home.mkdir(parents=True)
        self.environment = {"PATH": PATH, "HOME": str(self.home), "LANG": "C.UTF-8"}
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.project / ".venv")], check=True)
        (self.site,) = (self.project / ".venv/lib").glob("python*/site-packages")
        for module in (h11, idna):
            shutil.copytree(Path(module.__file__ or "").parent, self.site / module.__name__)
        self.package = (self.project / "src" if layout == "editable" else self.site) / "stockade"
        shutil.copytree(Path(stockade.__file__).parent, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        if layout == "editable":
            (self.site / "_editable.pth").write_text(f"{self.project}/src\n")
        self.program = self.project / ".venv/bin/stockade"
        self.program.write_text(f"#!{self.project}/.venv/bin/python\nfrom stockade.cli.main import start\nstart()\n")
        self.program.chmod(0o755)

    def host(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.project, env=self.environment, capture_output=True, text=True, check=False, timeout=100
        )

    def attack(self, name: str) -> str:
        evil = EVIL.format(mark=self.mark)
        return ATTACKS[name].format(mark=self.mark, evil=evil, site=self.site, package=self.package)

    def say_version(self) -> str:
        return self.host(str(self.program), "--version").stdout


@pytest.fixture(params=["copied", "editable"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path.resolve() / "place", request.param)


@pytest.mark.parametrize("name", ATTACKS)
def test_no_command_changes_what_runs_next(place: Place, tmp_path: Path, name: str) -> None:
    version = place.say_version()
    assert version.startswith("stockade ")
    kept = tmp_path / "kept"
    shutil.copytree(place.project, kept, symlinks=True)
    place.host("/bin/sh", "-c", place.attack(name))
    place.say_version()
    # Some systems have a start-up module of their own, which comes first.
    taken = "start-up" in name and place.host(
        str(place.program.with_name("python")), "-S", "-c", "import sitecustomize"
    )
    planted = place.mark.exists() or place.say_version() != version
    assert planted or (taken and not taken.returncode), "the attack does nothing without walls"
    place.mark.unlink(missing_ok=True)
    shutil.rmtree(place.project)
    shutil.copytree(kept, place.project, symlinks=True)

    done = place.host(str(place.program), "run", "-c", place.attack(name) + "; :")
    assert done.returncode == 0, done.stderr
    assert place.say_version() == version
    assert not place.mark.exists()


def test_a_refusal_and_explain_name_the_protection(place: Place) -> None:
    done = place.host(str(place.program), "run", "--violations=full", "-c", "echo x >> .venv/pyvenv.cfg")
    assert done.returncode != 0
    assert "Stockade's own installation" in done.stderr
    assert SETTING in done.stderr
    said = place.host(str(place.program), "explain", ".venv/pyvenv.cfg").stdout
    assert "Stockade's own installation" in said
    assert "pipx" in said
    assert "because Stockade itself runs from it" in place.host(str(place.program), "doctor").stdout


def test_nothing_is_said_while_nothing_is_refused(place: Place) -> None:
    done = place.host(str(place.program), "run", "-c", "echo x > new; ls .venv")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_setting_lifts_it_for_developers(place: Place) -> None:
    settings = place.home / "settings.json"
    settings.write_text(json.dumps({"sandbox": {"enabled": True, "filesystem": {SETTING: True}}}))
    done = place.host(str(place.program), "run", "--settings", str(settings), "-c", "echo x >> .venv/pyvenv.cfg")
    assert done.returncode == 0, done.stderr
    assert os.path.getsize(place.project / ".venv/pyvenv.cfg")


def test_another_environment_of_the_project_stays_writable(place: Place) -> None:
    shutil.copytree(place.project / ".venv", place.project / "other", symlinks=True)
    done = place.host(str(place.program), "run", "-c", "echo x >> other/pyvenv.cfg")
    assert done.returncode == 0, done.stderr
