"""The names that no command may write in a writable tree, each with why: a program of the host would obey it.

What each of these tables means, and where its names count, stands in ``stockade.policy.protected``. What is protected
in a home directory alone is in ``stockade.policy.home_names``.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHELL: Final = "a shell on the host runs it at its start"
_EDITOR: Final = "an editor on the host runs what it names"
_GIT: Final = "git on the host obeys it and can be made to run programs by it"
_AGENT: Final = "an agent on the host obeys it"
_WALLS: Final = "it holds what a project denies to commands"
_OPENED: Final = "an editor on the host that opens this directory runs programs that it names"
_STARTED: Final = "an agent on the host that starts in this directory obeys it"
_ELSEWHERE: Final = "git on the host takes hooks and config from where it leads"
BARE: Final = "with it the directory would be a repository itself, whose config git on the host obeys"

#: Why each single name is protected.
NAMES: Final[Mapping[str, str]] = {
    ".gitconfig": _GIT,
    ".gitmodules": _GIT,
    ".bashrc": _SHELL,
    ".bash_profile": _SHELL,
    ".zshrc": _SHELL,
    ".zprofile": _SHELL,
    ".profile": _SHELL,
    ".ripgreprc": "ripgrep on the host can be made to run programs by it",
    ".mcp.json": "an agent on the host starts the servers that it names",
    ".vscode": _EDITOR,
    ".idea": _EDITOR,
    ".zed": _EDITOR,
    ".helix": _EDITOR,
}
#: Directories of which only some entries are protected, and why.
INNER: Final[Mapping[str, Mapping[str, str]]] = {
    ".claude": {
        "commands": _AGENT,
        "agents": _AGENT,
        "hooks": "an agent on the host runs what is in it",
        "settings.json": _AGENT,
        "settings.local.json": _AGENT,
    },
    ".stockade": {"settings.json": _WALLS, "settings.local.json": _WALLS},
    ".cursor": {"mcp.json": _AGENT, "hooks.json": _AGENT},
    ".gemini": {"settings.json": _AGENT},
    ".codex": {"config.toml": _AGENT},
    ".git": {
        "hooks": "git on the host runs what is in it",
        "config": _GIT,
        "config.worktree": _GIT,
        "commondir": _ELSEWHERE,
    },
}
#: Names that are protected where they exist, also at the root of a writable tree: programs of the host obey them in a
#: home directory only, where ``stockade.policy.home_names`` keeps them; and git takes no command from ``.gitmodules``.
ONLY_THERE: Final = frozenset(
    {".gitconfig", ".gitmodules", ".bashrc", ".bash_profile", ".zshrc", ".zprofile", ".profile", ".ripgreprc"}
)
#: Names that may be made at the root of a writable tree: these, and others that would fill the directory with
#: placeholders. What a command makes of the latter is set aside, as it is below the root; but not settings of ours, for
#: what nobody has trusted in them can only tighten.
UNKEPT: Final = frozenset({".zed", ".helix", ".cursor", ".gemini", ".codex", ".stockade", *ONLY_THERE})
#: Names that programs of the host obey in whatever directory they are opened in, with why; made below the root of a
#: writable tree, they are set aside (``stockade.filesystem.inspection``). Of a directory with entries only those count.
#: Any setting of an editor may be an extension's that names a program, so its settings count whatever they say. Left
#: out are names that are obeyed in a home only (shell start-up files, ``.gitconfig``, ``.ripgreprc``), and
#: ``.gitmodules``, which is data of every repository with submodules: git takes no command from it.
OBEYED: Final[Mapping[str, Mapping[str, str]]] = {
    ".mcp.json": {"": "an agent on the host that starts in this directory starts the servers that it names"},
    ".idea": {"": _OPENED},
    ".vscode": {"settings.json": _OPENED, "tasks.json": _OPENED, "launch.json": _OPENED, "mcp.json": _OPENED},
    ".claude": {
        "commands": _STARTED,
        "agents": _STARTED,
        "hooks": _STARTED,
        "settings.json": _STARTED,
        "settings.local.json": _STARTED,
    },
    ".zed": {"": _OPENED},
    ".helix": {"": _OPENED},
    ".cursor": {"mcp.json": _STARTED, "hooks.json": _STARTED},
    ".gemini": {"settings.json": _STARTED},
    ".codex": {"config.toml": _STARTED},
}


def left_over(entries: Mapping[str, str], name: str, lifted: frozenset[str]) -> Mapping[str, str]:
    """Return the entries of a name that is obeyed without those that a setting lifts, by the name or one by one."""
    if not lifted:
        return entries
    kept = {} if name in lifted else entries
    return {entry: why for entry, why in kept.items() if f"{name}/{entry}" not in lifted}


#: Every (folded) name at which something is protected.
HELD: Final = frozenset((*NAMES, *INNER))
#: The names that ``sandbox.filesystem.allowGitConfig`` lifts.
CONFIGS: Final = frozenset({".git/config", ".git/config.worktree"})
#: What makes a directory a repository.
REPOSITORY: Final = ("refs", "objects", "HEAD")
#: The directory whose protected entries no setting lifts.
OWN: Final = ".stockade"
#: Directories below which nothing is searched.
UNSEARCHED: Final = frozenset({"node_modules", ".git"})
