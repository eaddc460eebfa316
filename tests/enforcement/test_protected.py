"""What programs on the host obey at their start cannot be changed, made, moved or replaced, under any writable root."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.enforcement.conftest import Ground, MakeTrial, Trial

#: The roots are those of a second writable tree: the first one is not special.
ROOTS = "{outside}/*/root"

FILES = (".bashrc", ".git/config", ".git/hooks/pre-commit", ".vscode/settings.json", ".claude/commands/go.md")
MISSING = [
    ".mcp.json",
    ".idea",
    ".claude/agents",
    ".git/config.worktree",
]
#: Those of them that are kept by an empty directory.
DIRECTORIES = (".mcp.json", ".idea", ".claude/agents")
#: What programs of the host obey in a home only, or not at all: protected where it exists.
FREE = (".gitconfig", ".gitmodules", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc")
HOLDERS = (".git", ".claude")
#: An index without entries. What no git would write does not stay (``test_inspection``).
INDEX = "DIRC\0\0\0\2" + "\0" * 24
NESTED = ("one", "one/two", "one/two/three")


def _at(script: str) -> str:
    return f"os.chdir(f'{{there}}/root'); {script}"


def _beside(name: str, other: str) -> str:
    """A name in the same directory: directories that hold protected names are file systems of their own inside."""
    return os.path.join(os.path.dirname(name), other)


ATTACKS: dict[str, tuple[str, ...]] = {
    **{f"writing {name}": (_at(f"write({name!r})"), "EROFS") for name in FILES},
    **{f"removing {name}": (_at(f"os.unlink({name!r})"), "EBUSY") for name in (".bashrc", ".git/config")},
    **{
        f"renaming {name}": (_at(f"os.rename({name!r}, {_beside(name, 'aside')!r})"), "EBUSY")
        for name in (".bashrc", ".git/config")
    },
    **{
        f"replacing {name}": (_at(f"os.rename({_beside(name, 'plain')!r}, {name!r})"), "EBUSY")
        for name in (".bashrc", ".git/config")
    },
    **{f"linking {name}": (_at(f"os.link({name!r}, 'twin'); write('twin')"), "EXDEV") for name in FILES},
    **{f"mode of {name}": (_at(f"os.chmod({name!r}, 0o777)"), "EROFS") for name in FILES},
    **{f"making {name}": (_at(f"make({name!r})"), "EACCES") for name in MISSING},
    **{
        f"making a file in {name}": (
            _at(f"os.makedirs({name!r}, exist_ok=True); make({name + '/file'!r})"),
            "EACCES",
        )
        for name in DIRECTORIES
    },
    # Git would give up without it: its placeholder is a file.
    "making .git/config.worktree": (_at("make('.git/config.worktree')"), "EROFS"),
    **{f"making the directory {name}": (_at(f"os.mkdir({name!r})"), "EEXIST") for name in MISSING},
    **{f"making the link {name}": (_at(f"os.symlink('plain', {name!r})"), "EEXIST") for name in MISSING},
    **{
        f"renaming to {name}": (
            _at(f"os.rename({_beside(name, 'plain')!r}, {name!r})"),
            "EACCES" if name in DIRECTORIES else "EBUSY",
        )
        for name in MISSING
    },
    **{
        f"renaming a directory to {name}": (_at(f"os.rename('folder', {name!r})"), "EBUSY")
        for name in DIRECTORIES
        if "/" not in name
    },
    **{f"linking to {name}": (_at(f"os.link({_beside(name, 'plain')!r}, {name!r})"), "EEXIST") for name in MISSING},
    **{
        f"renaming {name} aside": (
            _at(f"os.rename({name!r}, {_beside(name, 'aside')!r}); os.makedirs({name!r} + '/hooks')"),
            "EBUSY",
        )
        for name in (*HOLDERS, ".git/hooks", ".vscode", ".claude/commands", ".git/modules", ".git/modules/lib")
    },
    **{
        f"exchanging {name}": (
            _at(f"kernel('renameat2', -100, {name!r}, -100, {_beside(name, 'folder')!r}, 2)"),
            "EBUSY",
        )
        for name in (*HOLDERS, ".git/hooks", ".vscode")
    },
    "a hook in the hooks": (_at("make('.git/hooks/post-checkout')"), "EROFS"),
    "a hook of a submodule": (_at("make('.git/modules/lib/hooks/post-checkout')"), "EROFS"),
    "the config of a submodule": (_at("write('.git/modules/lib/config')"), "EROFS"),
    "a hook in a worktree's own directory": (_at("write('.git/worktrees/tree/commondir')"), "EROFS"),
    "a file of a whole protected directory": (_at("make('.vscode/tasks.json')"), "EROFS"),
    "a command of the agent": (_at("make('.claude/commands/new.md')"), "EROFS"),
    "another spelling that exists": (_at("write('.ZProfile-dir/.ZSHRC')"), "EROFS"),
    "the file that a protected link leads to": (_at("write('linked/real')"), "EROFS"),
    "a protected link": (_at("write('linked/.bashrc')"), "EROFS"),
    "replacing a protected link": (_at("os.rename('linked/plain', 'linked/.bashrc')"), "EBUSY"),
    "removing a protected link": (_at("os.unlink('linked/.bashrc')"), "EBUSY"),
    "renaming what holds a protected link": (_at("os.rename('linked', 'aside')"), "EBUSY"),
    "a dangling protected link": (_at("make('dangling/.bashrc')"), "EACCES"),
    "making what a dangling link leads to": (_at("make('dangling/nowhere')"), "EACCES"),
    "replacing a dangling link": (_at("os.unlink('dangling/.bashrc')"), "EBUSY"),
    "the directory that a .git link leads to": (_at("make('gitlink/real/hooks/pre-commit')"), "EROFS"),
    "through a .git link": (_at("make('gitlink/.git/hooks/pre-commit')"), "EROFS"),
    "replacing a .git link": (_at("os.unlink('gitlink/.git'); os.mkdir('gitlink/.git')"), "EBUSY"),
    "a .git file": (_at("write('module/.git')"), "EROFS"),
    "replacing a .git file": (_at("os.unlink('module/.git'); os.makedirs('module/.git/hooks')"), "EBUSY"),
    "renaming the directory of a .git file": (_at("os.rename('module', 'aside')"), "EBUSY"),
    "recreating the parent": (
        _at("os.rename('one', 'aside'); os.makedirs('one/.git/hooks'); make('one/.git/hooks/pre-commit')"),
        "EBUSY",
    ),
    "removing a hook": (_at("os.unlink('.git/hooks/pre-commit')"), "EROFS"),
    "the root itself": (_at("os.rename(f'{there}/root', f'{there}/aside')"), "EROFS"),
    **{
        f"{what} at {place}": (_at(script.replace("@", place)), end)
        for place in NESTED
        for what, script, end in (
            ("a hook", "make('@/.git/hooks/pre-commit')", "EROFS"),
            ("a config", "write('@/.git/config')", "EROFS"),
            ("a start-up file", "write('@/.profile')", "EROFS"),
            ("renaming the directory", "os.rename('@', '@-aside')", "EBUSY"),
            ("renaming the repository", "os.rename('@/.git', '@/aside')", "EBUSY"),
            ("removing a start-up file", "os.unlink('@/.profile')", "EBUSY"),
            ("renaming the hooks", "os.rename('@/.git/hooks', '@/.git/aside')", "EBUSY"),
        )
    },
}
#: What must work, or nobody would use the walls.
WORK: dict[str, str] = {
    "a plain file": _at("make('new'); os.rename('new', 'plain')"),
    "a commit's files": _at(
        f"make('.git/index.lock', {INDEX!r}); os.rename('.git/index.lock', '.git/index');"
        "os.makedirs('.git/objects/ab'); make('.git/objects/ab/cd'); make('.git/refs-new')"
    ),
    "a commit's files in a submodule": _at(f"make('.git/modules/lib/index', {INDEX!r})"),
    "other files of the agent": _at("make('.claude/notes.md')"),
    "a repository below": _at("os.makedirs('new/.git/hooks'); make('new/.git/config', '[core]')"),
    "a start-up file below": _at("os.mkdir('deep'); make('deep/.bashrc')"),
    "what nobody searches": _at("make('node_modules/pkg/.git/hooks/pre-commit')"),
    "below the search depth": _at("make('one/two/three/four/.bashrc')"),
    **{f"making {name} where it is no home": _at(f"make({name!r})") for name in FREE},
    "a name that only begins so": _at("make('.bashrc2'); make('.gitignore'); make('.vscodeignore')"),
}


def _furnish(here: Path, there: Path) -> None:
    assert here != there
    root = there / "root"
    for name in (
        *FILES,
        "plain",
        ".git/plain",
        ".claude/plain",
        "folder/kept",
        ".git/folder/kept",
        "linked/plain",
        ".ZProfile-dir/.ZSHRC",
        "linked/real",
        "gitlink/real/config",
    ):
        _put(root / name)
    for name in ("lib/config", "lib/hooks/pre-commit"):
        _put(root / ".git" / "modules" / name)
    _put(root / ".git" / "worktrees" / "tree" / "commondir")
    for place in (*NESTED, "one/two/three/four", "node_modules/pkg"):
        _put(root / place / ".git" / "config")
        _put(root / place / ".git" / "hooks" / "post-merge")
    for place in NESTED:
        _put(root / place / ".profile")
    (root / "linked" / ".bashrc").symlink_to("real")
    (root / "dangling").mkdir()
    (root / "dangling" / ".bashrc").symlink_to("nowhere")
    (root / "gitlink" / "real" / "hooks").mkdir()
    (root / "gitlink" / ".git").symlink_to("real")
    _put(root / "module" / ".git", "gitdir: ../.git/modules/lib")


def _put(path: Path, text: str = "unchanged") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(scope="module")
def trial(make_trial: MakeTrial) -> Trial:
    work = {name: (script, "ok") for name, script in WORK.items()}
    return make_trial(ATTACKS | work, furnish=_furnish, at_once=10, filesystem__allowWrite=(ROOTS,))


@pytest.mark.parametrize("name", ATTACKS)
def test_a_protected_place_stays_as_it_is(trial: Trial, name: str) -> None:
    trial.judge(name, ATTACKS[name])
    assert trial.control.endings[name].changed


@pytest.mark.parametrize("name", WORK)
def test_work_beside_protected_places_goes_on(trial: Trial, name: str) -> None:
    control, inside = trial.control.endings[name], trial.inside.endings[name]
    assert (control.end, inside.end) == ("ok", "ok")
    assert inside.changed == control.changed != ()


@pytest.mark.parametrize("name", [".bashrc", ".git/config", ".git/hooks", ".stockade/settings.json"])
def test_what_the_host_replaces_is_protected_for_the_next_command(ground: Ground, name: str) -> None:
    """Programs save by renaming; what is replaced on the host loses the wall on it, in every namespace."""
    place = ground.project / name
    for part in (".git/config", ".git/hooks/kept", ".bashrc", ".stockade/settings.json"):
        _put(ground.project / part, "{}")
    denied = (f"{ground.project}/.stockade/settings.json",)
    sandbox = ground.sandbox(filesystem__denyWrite=denied)
    victim = place / "kept" if place.is_dir() else place
    assert sandbox.run(f"echo 1 > {victim}").exit_code != 0
    if place.is_dir():
        place.rename(place.with_name("old-hooks"))
    _put(place.with_name("new") if victim is place else place.with_name("new") / "kept", "replaced")
    place.with_name("new").rename(place)
    done = sandbox.run(f"echo 2 > {victim}")
    assert (done.exit_code != 0, victim.read_text()) == (True, "replaced")


def test_a_repository_that_appeared_is_protected_for_the_next_command(ground: Ground) -> None:
    sandbox = ground.sandbox()
    line = "mkdir -p new/.git/hooks && echo bad > new/.git/hooks/pre-commit"
    assert sandbox.run("mkdir -p new/.git/hooks").ok
    assert ground.bare("echo x > new/.git/hooks/x && rm new/.git/hooks/x").returncode == 0
    assert sandbox.run(line).exit_code == 1
    assert os.listdir(ground.project / "new" / ".git" / "hooks") == []


def test_home_as_a_writable_root_keeps_its_start_up_files(ground: Ground) -> None:
    _put(ground.home / ".bashrc")
    _put(ground.home / ".config" / "git" / "config")
    sandbox = ground.sandbox(filesystem__allowWrite=("~",))
    assert sandbox.run("echo ok > ~/plain", env={"HOME": str(ground.home)}).ok
    for name in (".bashrc", ".zshrc", ".profile", ".gitconfig", ".mcp.json"):
        assert sandbox.run(f"echo bad > {ground.home}/{name}").exit_code != 0, name
    sandbox.close()
    assert sorted(os.listdir(ground.home)) == [".bashrc", ".config", "plain"]
    assert (ground.home / ".bashrc").read_text() == "unchanged"


def test_the_writable_root_inside_another_is_protected_too(ground: Ground) -> None:
    inner = ground.project / "a" / "b" / "c" / "d" / "e"
    inner.mkdir(parents=True)
    assert ground.bare(f"echo x > {inner}/.mcp.json && rm {inner}/.mcp.json").returncode == 0
    sandbox = ground.sandbox(filesystem__allowWrite=(str(inner),))
    assert sandbox.run(f"echo bad > {inner}/.mcp.json").exit_code != 0
    sandbox.close()
    assert os.listdir(inner) == []


def test_many_writable_roots_are_protected_at_once(ground: Ground) -> None:
    """Each root has several names that must stay missing; a session has to hold them all."""
    roots = [ground.outside / f"{number:02}" for number in range(40)]
    for root in roots:
        root.mkdir()
    sandbox = ground.sandbox(filesystem__allowWrite=(f"{ground.outside}/*",))
    line = 'echo > "$root/.mcp.json" && echo "$root"; touch "$root/ok"'
    done = sandbox.run(f"for root in {ground.outside}/*; do {line}; done")
    assert done.stdout == b""
    sandbox.close()
    assert [os.listdir(root) for root in roots] == [["ok"] for _ in roots]


@pytest.mark.parametrize("rule", ["denyRead", "denyWrite", "protected"])
def test_a_second_name_that_a_closed_file_had_before_is_closed_too(ground: Ground, rule: str) -> None:
    """A hard link is the same file; none can be made inside, but one may have been there."""
    closed = ground.project / (".bashrc" if rule == "protected" else "closed")
    closed.write_text("unchanged")
    twin = ground.project / "twin"
    os.link(closed, twin)
    settings: dict[str, Any] = {} if rule == "protected" else {f"filesystem__{rule}": (str(closed),)}
    sandbox = ground.sandbox(**settings)
    done = sandbox.run("cat twin; echo changed > twin")
    assert (done.exit_code != 0, done.output) == (True, "" if rule == "denyRead" else "unchanged")
    assert twin.read_text() == "unchanged"
    assert ground.bare("echo changed > twin").returncode == 0
    assert closed.read_text() == "changed\n"
