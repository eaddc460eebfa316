"""What the inspection does about a path that commands may write: words for ``stockade explain``.

A command may write a nested repository's config, for one, and it is judged afterwards. The verdict alone would not say
so. The inspection itself is ``stockade.filesystem.inspection``.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.files import allowed_forms
from stockade.policy.git_judgement import ASIDE
from stockade.policy.path_pattern import names_of
from stockade.policy.protected_names import OBEYED, UNKEPT, UNSEARCHED, left_over

if TYPE_CHECKING:
    from stockade.policy.files import FileRules, FileVerdict
    from stockade.policy.places import Places

_GIT: Final = {
    "config": "a setting that git could run programs by, or that is not known to be harmless",
    "config.worktree": "a setting that git could run programs by, or that is not known to be harmless",
    "hooks": "a hook that git could run",
    "commondir": "a way to another repository's hooks and config",
}


def inspection_of(verdict: FileVerdict, root: str, rules: FileRules, places: Places) -> str:
    """Return what happens to what a command makes at a path in the writable tree at ``root``; empty if nothing does."""
    names = names_of(verdict.place)[len(names_of(root)) :]
    what = _watched(names, rules) if verdict.allowed else ""
    if not what:
        return ""
    if any(form.depth_on(verdict.place) is not None for form in allowed_forms(rules.left_allow, rules, places)):
        return "the inspection leaves it alone, by sandbox.filesystem.allowProtected"
    return (
        f"what a command leaves there is inspected while it runs and when it ends: {what} is set aside under a name "
        f"that ends in {ASIDE}1, and told; to leave it, name its directory in sandbox.filesystem.allowProtected"
    )


def _watched(names: list[str], rules: FileRules) -> str:
    """Return what is set aside at these names below a root."""
    for level, name in enumerate(names[: rules.search_depth + 1]):
        below = names[level + 1 :]
        if name == ".git":
            return _in_git(below, rules)
        if name in UNSEARCHED:
            return ""
        if name in OBEYED and (level or name in UNKEPT):
            return _in_obeyed(name, below, rules)
    return ""


def _in_git(below: list[str], rules: FileRules) -> str:
    if not below:
        return "a link or file that leads to another repository"
    if f".git/{below[-1]}" in rules.search.lifted:
        return ""
    kept = rules.search.inner(".git")
    return next((what for name, what in _GIT.items() if name in below and name in kept), "")


def _in_obeyed(name: str, below: list[str], rules: FileRules) -> str:
    entries = left_over(OBEYED[name], name, rules.search.lifted)
    if not entries or "" in entries:
        return name if entries else ""
    if below:
        return f"{name}/{below[0]}" if below[0] in entries else ""
    return f"any of {', '.join(entries)} in {name}"
