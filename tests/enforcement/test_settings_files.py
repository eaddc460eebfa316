"""No command writes the settings of any layer, and no call widens what the settings opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stockade
from stockade.policy.effective import effective
from stockade.sandbox.blocking import BlockingSandbox
from stockade.settings.sources import Locations, settings_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.enforcement.conftest import Ground

    from stockade.settings.document import Document


def _locations(ground: Ground) -> Locations:
    return Locations(
        str(ground.project),
        str(ground.home),
        managed=str(ground.home / "managed" / "managed-settings.json"),
        flag_file=str(ground.home / "flag.json"),
        settings_file=str(ground.project / "given.json"),
    )


@pytest.fixture(params=["existing", "missing"])
def files(request: pytest.FixtureRequest, ground: Ground) -> list[Path]:
    """Every settings file of every layer up to the root of the test's own; home is writable too."""
    (ground.project / ".git").mkdir()
    locations = _locations(ground)
    paths = [Path(file) for file in settings_files(locations) if Path(file).is_relative_to(ground.root)]
    assert ground.root / ".stockade" / "settings.json" in paths
    named = {locations.flag_file, locations.settings_file}
    for path in paths:
        if request.param == "existing" or str(path) in named:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.name.endswith(".d"):
                path.mkdir()
            else:
                path.write_text("{}")
    return paths


@pytest.fixture
def sandbox(ground: Ground, files: list[Path]) -> Iterator[BlockingSandbox]:
    assert files
    policy = effective(_locations(ground), flags=_open_home(ground)).policy
    with BlockingSandbox(policy) as opened:
        yield opened


def _open_home(ground: Ground) -> Document:
    from stockade.settings.document import Document
    from stockade.settings.layer import Layer

    return Document(Layer.COMMAND_LINE, "", {"sandbox.filesystem.allowWrite": (str(ground.home),)})


def test_no_settings_file_is_written(ground: Ground, sandbox: BlockingSandbox, files: list[Path]) -> None:
    before = {path: path.read_text() if path.is_file() else path.exists() for path in files}
    assert sandbox.run(f"touch {ground.home}/plain {ground.project}/plain").ok
    for path in files:
        target = path / "x.json" if path.name.endswith(".d") else path
        for line in (
            f"mkdir -p {target.parent} && echo bad > {target}",
            f"echo bad > {ground.project}/bad && mv -f {ground.project}/bad {target}",
            f"ln -sfn {ground.project}/plain {target}",
            f"rm -rf {path} && ! test -e {path} && test {int(path.exists())} = 1",
            f"mv {path.parent} {path.parent}-aside && mkdir -p {path.parent} && echo bad > {target}",
            f"chmod 777 {target} && test -f {target}",
        ):
            assert sandbox.run(line).exit_code != 0, line
    sandbox.close()
    assert {path: path.read_text() if path.is_file() else path.exists() for path in files} == before


def test_outside_they_can_be_written(ground: Ground, files: list[Path]) -> None:
    for path in files:
        target = path / "x.json" if path.name.endswith(".d") else path
        assert ground.bare(f"mkdir -p {target.parent} && echo bad > {target}").returncode == 0


@pytest.mark.parametrize("folder", [".stockade", "above/.stockade"])
def test_what_is_missing_beside_settings_is_made_by_the_host_while_a_command_runs(ground: Ground, folder: str) -> None:
    """By an editor and by ``stockade allow-domain``: nothing is put in their way, and no command can do the same."""
    holder = ground.project / ".stockade" if folder == ".stockade" else ground.root / ".stockade"
    holder.mkdir()
    (holder / "settings.json").write_text("{}")
    policy = effective(Locations(str(ground.project), str(ground.home))).policy
    tries = f"echo bad > {holder}/settings.local.json; echo bad > {holder}/other; mv {holder} {holder}-aside"
    source = os.path.dirname(os.path.dirname(stockade.__file__))
    environment = {"PATH": os.environ["PATH"], "HOME": str(ground.home), "PYTHONPATH": source}
    command = [sys.executable, "-m", "stockade", "allow-domain", "example.org"]
    with BlockingSandbox(policy) as sandbox, sandbox.spawn("echo ready; read -r _", stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        assert os.listdir(holder) == ["settings.json"]
        assert sandbox.run(tries).exit_code != 0
        (holder / "other.json").write_text("an editor's")
        done = subprocess.run(command, cwd=holder.parent, env=environment, capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        assert sandbox.run(tries).exit_code != 0
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.wait(timeout=60).exit_code == 0
    assert sorted(os.listdir(holder)) == [".gitignore", "other.json", "settings.json", "settings.local.json"]
    assert "example.org" in (holder / "settings.local.json").read_text()


def test_the_directory_of_a_call_becomes_no_writable_root(ground: Ground) -> None:
    line = "pwd; touch made"
    assert ground.bare(line, cwd=ground.outside).returncode == 0
    (ground.outside / "made").unlink()
    sandbox = ground.sandbox()
    done = sandbox.run(line, cwd=str(ground.outside))
    assert (done.exit_code, done.output) == (1, f"{ground.outside}\n")
    assert b"Read-only file system" in done.stderr
    assert os.listdir(ground.outside) == []
    assert sandbox.run("touch made", cwd=str(ground.project)).ok


def test_a_relative_rule_is_about_the_sessions_directory(ground: Ground) -> None:
    for place in (ground.project, ground.outside):
        (place / "data").mkdir()
    sandbox = ground.sandbox(filesystem__denyWrite=("data",))
    assert sandbox.run("touch data/made", cwd=str(ground.project)).exit_code == 1
    assert sandbox.run(f"touch {ground.outside}/data/made", cwd=str(ground.outside)).exit_code == 1
    assert [os.listdir(place / "data") for place in (ground.project, ground.outside)] == [[], []]


def test_a_write_deny_wins_over_every_allow(ground: Ground) -> None:
    inner = ground.project / "data" / "deep"
    inner.mkdir(parents=True)
    assert ground.bare("touch data/deep/x && rm data/deep/x").returncode == 0
    sandbox = ground.sandbox(filesystem__allowWrite=(str(inner),), filesystem__denyWrite=("data",))
    assert sandbox.run("touch data/deep/x").exit_code == 1
    assert sandbox.run("mv data aside").exit_code == 1
    assert os.listdir(inner) == []


def test_a_missing_place_that_is_denied_cannot_be_made(ground: Ground) -> None:
    sandbox = ground.sandbox(filesystem__denyWrite=("a/b/c",))
    for line in ("mkdir a", "mkdir -p a/b/c", "echo > a", "ln -s . a", "mkdir x && mv x a", "mkfifo a"):
        assert sandbox.run(line).exit_code != 0, line
    sandbox.close()
    assert sorted(os.listdir(ground.project)) == ["x"]
    assert ground.bare("mkdir -p a/b/c && touch a/b/c/made").returncode == 0


def test_the_temporary_directory_is_private_and_usable(ground: Ground) -> None:
    sandbox = ground.sandbox()
    done = sandbox.run('stat -c "%a %u" "$TMPDIR"; f=$(mktemp) && echo "$f"; printf "%s\\n" "$TMP" "$TEMP"')
    mode, made, *same = done.output.splitlines()
    assert (mode, same) == (f"700 {os.geteuid()}", [sandbox.temporary] * 2)
    assert made.startswith(f"{sandbox.temporary}/")
    assert sandbox.run(f"test -f {made}").ok, "later commands find it"
    sandbox.close()
    assert not os.path.exists(made)
