"""A denied read is an error at that place, for whoever asks and however it is reached."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from stockade.platforms.linux.warden import DEVICE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground, MakeTrial, Trial

SECRET = "what-nobody-inside-may-read"  # noqa: S105 - the bait
DENIED = (
    "{project}/*/denied",
    "{project}/*/secret.txt",
    "{outside}/*/denied",
    "{outside}/*/secret.txt",
    "{outside}/*/mixed",
    "{outside}/*/mixed/open/closed",
)

READS = {
    "a denied file": "say(read(f'{there}/secret.txt'))",
    "a denied file in the project": "say(read('secret.txt'))",
    "a file in a denied directory": "say(read(f'{there}/denied/secret'))",
    "a file in a denied directory of the project": "say(read('denied/secret'))",
    "a symlink made before": "say(read('link/denied/secret'))",
    "a symlink made inside": "os.symlink('denied/secret', 'alias'); say(read('alias'))",
    "a symlink to the directory": "os.symlink(f'{there}/denied', 'alias'); say(read('alias/secret'))",
    "/proc/self/root": "say(read(f'/proc/self/root{there}/denied/secret'))",
    "/proc/self/cwd": "say(read('/proc/self/cwd/denied/secret'))",
    "/proc/self/fd of a path": "say(read(f'/proc/self/fd/{os.open(\"secret.txt\", os.O_PATH)}'))",
    "a directory as descriptor": "folder = os.open('denied', os.O_PATH);"
    "say(os.read(os.open('secret', os.O_RDONLY, dir_fd=folder), 99))",
    "..": "say(read('denied/../denied/secret'))",
    "listing": "say(SECRET := os.listdir('denied'))",
    "listing outside": "os.listdir(f'{there}/denied')",
    "entering": "os.chdir('denied'); say(read('secret'))",
    "asking about what is in it": "os.stat('denied/secret')",
    "mapping": "import mmap; say(mmap.mmap(os.open('secret.txt', os.O_RDONLY), 5, prot=mmap.PROT_READ)[:])",
    "executing": "os.execv('secret.txt', ['x'])",
    "a hard link made inside, from a denied directory": "os.link('denied/secret', 'alias'); say(read('alias'))",
    "copying by a program": "out = subprocess.run(['cat', 'secret.txt'], capture_output=True, text=True);"
    "say(out.stdout); out.returncode and call(-1 + 0 * (ctypes.set_errno(13) or 0))",
    "a deny inside a re-allow": "say(read(f'{there}/mixed/open/closed/secret'))",
    "listing around a re-allow": "os.listdir(f'{there}/mixed')",
    "many spellings": "say(read(f'/{there}//./denied/./secret'))",
}
CHANGES = {
    "reading by openat2": (
        "say(os.read(kernel('openat2', -100, f'{here}/secret.txt', struct.pack('QQQ', 0, 0, 0), 24), 99))",
        "ENOSYS",
    ),
    "writing": ("write('secret.txt')", "EACCES"),
    "appending": ("write('secret.txt', flags=os.O_WRONLY | os.O_APPEND)", "EACCES"),
    "creating in a denied directory": ("make('denied/new')", "EACCES"),
    "creating in a denied directory outside": ("make(f'{there}/denied/new')", "EACCES"),
    "making a directory in it": ("os.mkdir('denied/new')", "EACCES"),
    "removing what is in it": ("os.unlink('denied/secret')", "EACCES"),
    "removing a denied file": ("os.unlink('secret.txt')", "EBUSY"),
    "renaming a denied file": ("os.rename('secret.txt', 'aside'); say(read('aside'))", "EBUSY"),
    "renaming a denied directory": ("os.rename('denied', 'aside'); say(read('aside/secret'))", "EBUSY"),
    "renaming its parent": ("os.rename(here, here + '-aside'); say(read(here + '-aside/secret.txt'))", "EBUSY"),
    "exchanging it": (
        (
            "os.mkdir('other'); kernel('renameat2', -100, f'{here}/denied', -100, f'{here}/other', 2);"
            "say(read('other/secret'))"
        ),
        "EBUSY",
    ),
    "a hard link made inside, to a denied file": ("os.link('secret.txt', 'alias'); say(read('alias'))", "EXDEV"),
    "replacing it": ("os.rename('mine', 'secret.txt')", "EBUSY"),
    # The way to what is shown again leads through a directory that has only that in it.
    "a neighbour of a re-allow": ("say(read(f'{there}/mixed/secret'))", "ENOENT"),
    "creating beside a re-allow": ("make(f'{there}/mixed/new')", "EROFS"),
    "opening it up": ("os.chmod('denied', 0o777); say(read('denied/secret'))", "EROFS"),
    "opening a file up": ("os.chmod('secret.txt', 0o666); say(read('secret.txt'))", "EROFS"),
    "taking it over": ("os.chown('secret.txt', os.getuid(), -1); say(read('secret.txt'))", "EROFS"),
}
ATTACKS: dict[str, tuple[str, ...]] = {
    **{f"reading by {name}": (script, "EACCES") for name, script in READS.items()},
    **CHANGES,
}
# A mask, where there can be one, knows no neighbours, and lets the kernel refuse changes by itself.
MASKED = {
    "removing what is in it": "EROFS",
    "a neighbour of a re-allow": "EACCES",
    "creating beside a re-allow": "EACCES",
}
OPEN = {
    "a re-allow inside a deny": "say(read(f'{there}/mixed/open/shown'))",
    "listing a re-allow": "say(sorted(os.listdir(f'{there}/mixed/open')))",
    "the name in its parent": "say(sorted(os.listdir(there)))",
    "the name of a file in its parent": "say('secret.txt' in os.listdir('.'))",
    "a neighbour": "say(read(f'{there}/victim'))",
}


def _furnish(here: Path, there: Path) -> None:
    for place in (here, there):
        (place / "secret.txt").write_text(SECRET)
        (place / "secret.txt").chmod(0o755)
        (place / "denied").mkdir()
        (place / "denied" / "secret").write_text(SECRET)
    (there / "mixed" / "open" / "closed").mkdir(parents=True)
    (there / "mixed" / "open" / "shown").write_text("shown")
    for secret in ("secret", "open/closed/secret"):
        (there / "mixed" / secret).write_text(SECRET)


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial) -> Trial:
    scripts = {name: (script, "ok") for name, script in OPEN.items()}
    return make_trial(
        ATTACKS | scripts,
        furnish=_furnish,
        filesystem__denyRead=DENIED,
        filesystem__allowRead=("{outside}/*/mixed/open",),
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_a_denied_place_is_an_error(trial: Trial, name: str) -> None:
    row = ATTACKS[name]
    if name == "reading by executing":
        row = (*row, "ENOEXEC")
    if name in MASKED and os.access(DEVICE, os.R_OK | os.W_OK):
        row = (row[0], MASKED[name])
    trial.judge(name, row)
    assert SECRET not in trial.inside.endings[name].said


@pytest.mark.parametrize("name", [name for name, row in ATTACKS.items() if "say(" in row[0] and "execut" not in name])
def test_without_walls_the_secret_is_read(trial: Trial, name: str) -> None:
    assert SECRET[:4] in trial.control.endings[name].said or "SECRET" in ATTACKS[name][0]


@pytest.mark.parametrize("name", OPEN)
def test_what_no_rule_denies_stays_readable(trial: Trial, name: str) -> None:
    control, inside = trial.control.endings[name], trial.inside.endings[name]
    assert (inside.end, inside.said) == (control.end, control.said)
    assert control.said


def test_the_words_are_permission_denied(ground: Ground) -> None:
    (ground.home / "keys").mkdir()
    (ground.home / "keys" / "id").write_text(SECRET)
    assert ground.bare(f"cat {ground.home}/keys/id").stdout == SECRET.encode()
    done = ground.sandbox(filesystem__denyRead=("~/keys",)).run(f"cat {ground.home}/keys/id; ls {ground.home}/keys")
    assert (done.exit_code, done.stdout) == (2, b"")
    assert done.stderr.count(b"Permission denied") == 2


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_denied_place_that_is_made_on_the_host_is_denied_to_the_next_command(ground: Ground, kind: str) -> None:
    place = ground.home / "later"
    sandbox = ground.sandbox(filesystem__denyRead=("~/later",))
    assert sandbox.run(f"cat {place} {place}/secret").exit_code == 1
    secret = place
    if kind == "directory":
        place.mkdir()
        secret = place / "secret"
    secret.write_text(SECRET)
    done = sandbox.run(f"cat {secret}")
    assert (done.stdout, b"Permission denied" in done.stderr) == (b"", True)


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_denied_place_that_the_host_replaces_is_denied_again(ground: Ground, kind: str) -> None:
    """What is replaced on the host takes the wall on it away, in every namespace: the next command needs a new one."""
    place = ground.home / "keys"
    secret = place / "id" if kind == "directory" else place
    _replace(place, secret)
    sandbox = ground.sandbox(filesystem__denyRead=("~/keys",))
    assert sandbox.run(f"cat {secret}").stdout == b""
    _replace(place, secret)
    assert ground.bare(f"cat {secret}").stdout == SECRET.encode()
    assert sandbox.run(f"cat {secret}").stdout == b""


def _replace(place: Path, secret: Path) -> None:
    """Put another file or directory where one is, as an editor does that saves."""
    new = place.with_name("new")
    if secret == place:
        new.write_text(SECRET)
    else:
        new.mkdir()
        (new / "id").write_text(SECRET)
        if place.exists():
            place.rename(place.with_name("old"))
    new.rename(place)


def test_a_missing_denied_place_in_the_project_cannot_be_made(ground: Ground) -> None:
    assert ground.bare("mkdir vault && rmdir vault").returncode == 0
    sandbox = ground.sandbox(filesystem__denyRead=("vault/inner/key",))
    assert sandbox.run("mkdir vault").exit_code == 1
    sandbox.close()
    assert os.listdir(ground.project) == []


def test_the_file_of_another_session_is_not_seen(ground: Ground) -> None:
    first, second = ground.sandbox(), ground.sandbox()
    assert first.run("echo private > $TMPDIR/file").ok
    assert ground.bare(f"cat {first.temporary}/file").stdout == b"private\n"
    done = second.run(f"cat {first.temporary}/file; ls {os.path.dirname(first.temporary)}")
    assert (done.exit_code, done.stdout) == (2, b"")
    assert second.run(f"echo x > {first.temporary}/file").exit_code != 0
    assert first.run("cat $TMPDIR/file").output == "private\n"
