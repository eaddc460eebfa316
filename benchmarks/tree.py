"""A tree with many repositories, and a probe that tells whether their hooks and configuration are protected.

Plain files, no git: what a sandbox looks for is all there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stockade.value import Value

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG = "[core]\n\trepositoryformatversion = 0\n"
_PROOF = "proof"
_HOOK = "post-commit"


class Tree(Value):
    """A directory with repositories one level below."""

    directory: Path
    repositories: tuple[Path, ...]

    def protected(self) -> tuple[Path, ...]:
        """Return what no command may change."""
        return tuple(
            place for each in self.repositories for place in (each / ".git" / "hooks", each / ".git" / "config")
        )


def plant(directory: Path, count: int) -> Tree:
    """Make a tree of that many repositories."""
    repositories = tuple(directory / f"project-{number:03}" for number in range(1, count + 1))
    for repository in repositories:
        git = repository / ".git"
        for folder in (git / "hooks", git / "objects", git / "refs", repository / "src"):
            folder.mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text(_CONFIG)
        (git / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
        (repository / "src" / "main.py").write_text("print('hello')\n")
    return Tree(directory, repositories)


def attack(tree: Tree) -> str:
    """Return a line that writes what it may, and tries to write what it may not, in the first and last repository."""
    tries = [
        f"echo x >>'{each}/.git/config'; echo x >'{each}/.git/hooks/{_HOOK}'"
        for each in (tree.repositories[0], tree.repositories[-1])
    ]
    return f"exec 2>/dev/null; echo x >'{tree.directory}/{_PROOF}'; {'; '.join(tries)}; true"


def verdict(tree: Tree) -> str:
    """Say what came of the attack, and undo it."""
    proof = tree.directory / _PROOF
    wrote = proof.exists()
    proof.unlink(missing_ok=True)
    broken = [place for each in tree.repositories for place in _mend(each)]
    if broken:
        return "no"
    return "yes" if wrote else "yes, but the tree was not writable"


def _mend(repository: Path) -> list[str]:
    broken = []
    config, hook = repository / ".git" / "config", repository / ".git" / "hooks" / _HOOK
    if config.read_text() != _CONFIG:
        config.write_text(_CONFIG)
        broken.append("config")
    if hook.exists():
        hook.unlink()
        broken.append("hooks")
    return broken
