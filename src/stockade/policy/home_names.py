"""What is protected in the user's home, in a writable tree that holds the home, is it, or lies in it above the name.

The home is not writable unless somebody opens it, and then most of what programs of the host obey lies in reach. Each
name here is one that a program runs or obeys without being asked, or holds credentials that no command may change.
The rules:

- A name covers all below it. It is compared without case.
- A name of ``OBEYED_AT_HOME`` is protected whether it exists or not: a program obeys it as soon as it appears. Where a
  directory on the way is missing, the first missing one must not be made: without ``~/.config`` no command can make
  ``~/.config/systemd``, nor anything else there. To make the directory outside is the way out.
- A name of ``SET_UP_AT_HOME`` is protected where it exists: it is obeyed once its owner has set it up, and to keep all
  of them from being made would fill the home. So are those of a Mac in a home that is none.
- A writable tree that begins at a name, or inside it, is the user's own word: ``allowWrite: ["~/.local/bin"]`` opens
  it, unless a wider tree is writable too. Shell start-up files and ``.gitconfig`` stay closed even then
  (``stockade.policy.protected``). A wildcard is no such word: ``~/*`` does not open ``~/.ssh``. Nor is a working
  directory: in ``~/.ssh``, and anywhere below it, nothing is writable unless somebody says so.

Source of truth: bash(1), zsh(1), systemd.unit(5), environment.d(5), git-config(1), ssh(1), gpg(1), crontab(1),
launchd.plist(5), the XDG autostart and desktop entry specifications, and the manuals of the programs that are named.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.policy.path_pattern import is_at_or_below, joined, names_of
from stockade.policy.places import first_missing, follow
from stockade.policy.protected import Protection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stockade.policy.places import Places
    from stockade.policy.protected import Search


def _table(groups: Mapping[str, str]) -> dict[str, str]:
    return {name: why for why, names in groups.items() for name in names.split()}


_SHELL: Final = "a shell on the host runs it at its start"
_SESSION: Final = "the host runs what is in it when you log in, or in the background"
_DESKTOP: Final = "the desktop of the host runs what it names"
_PATH: Final = "the host looks for programs in it"
_LOADED: Final = "programs of the host load code from it"
_GIT: Final = "git on the host obeys it and can be made to run programs by it"
_VERSIONS: Final = "other systems for versions obey it on the host and can be made to run programs by it"
_KEYS: Final = "it holds keys or passwords, and what decides who gets in"
_EDITOR: Final = "an editor on the host runs what is in it"
_TERMINAL: Final = "a terminal on the host runs what it names"
_PACKAGES: Final = "package managers and builds on the host obey it: where code comes from, and what is run"
_TOOL: Final = "a program of the host obeys it at its start and can be made to run others by it"
_AGENT: Final = "an agent on the host obeys it"
_BROWSER: Final = "it holds a browser's passwords and the programs that it starts"
_KEPT: Final = "builds and tools on the host run code from it without looking at it again"
_COLLECTED: Final = "files that programs of the host obey are kept in it"
_CACHES: Final = "sandboxed commands of other projects run code from it"

#: Names in a home that are protected whether they exist or not, and why.
OBEYED_AT_HOME: Final[Mapping[str, str]] = _table(
    {
        _SHELL: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zprofile .zshenv "
        ".zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc .config/fish .local/share/fish "
        # zsh runs the compiled form of a file in its place, and compinit runs what it has dumped.
        ".zshenv.zwc .zprofile.zwc .zshrc.zwc .zlogin.zwc .zlogout.zwc .zcompdump .zcompdump.zwc .bashrc.d "
        ".bash_completion .config/bash_completion .local/share/bash-completion .i18n .alias",
        _SESSION: ".pam_environment .config/environment.d .config/systemd .local/share/systemd .config/autostart "
        ".config/autostart-scripts .config/plasma-workspace .xprofile .xinitrc .xserverrc .xsession .xsessionrc "
        ".Xresources .Xdefaults .forward .procmailrc .Xclients .xinputrc .gnomerc .config/user-tmpfiles.d "
        ".local/share/user-tmpfiles.d .config/pipewire .config/wireplumber .asoundrc",
        _DESKTOP: ".local/share/applications .local/share/dbus-1 .config/mimeapps.list "
        ".local/share/thumbnailers .config/user-dirs.dirs",
        _PATH: ".local/bin bin",
        _LOADED: ".local/lib .node_modules .node_libraries .ipython .jupyter .julia/config .local/share/nvim",
        _CACHES: ".cache/stockade-projects",
        _GIT: ".gitconfig .config/git .git-credentials .gitk .tigrc",
        _VERSIONS: ".hgrc .config/hg .subversion .config/jj .jjconfig.toml .cvsrc",
        _KEYS: ".ssh .gnupg .aws .azure .kube .docker .netrc .pgpass .config/gcloud .config/gh .config/containers "
        ".rhosts .shosts",
        _EDITOR: ".vimrc .gvimrc .exrc .vim .config/vim .config/nvim .emacs .emacs.el .emacs.d .config/emacs .nanorc "
        ".config/nano .config/helix .config/zed .config/Code/User .config/VSCodium/User .config/Cursor/User "
        ".vscode/extensions .selected_editor",
        _TERMINAL: ".tmux.conf .config/tmux .screenrc",
        _PACKAGES: ".npmrc .yarnrc .yarnrc.yml .bunfig.toml .pypirc .pip .config/pip .config/uv .config/pypoetry "
        ".pydistutils.cfg .condarc .gemrc .bundle .cargo/config .cargo/config.toml .cargo/credentials.toml "
        ".m2/settings.xml .m2/settings-security.xml .mavenrc .gradle/gradle.properties .gradle/init.gradle "
        ".gradle/init.gradle.kts .gradle/init.d .config/go .bazelrc .terraformrc .rpmmacros .makepkg.conf .config/nix "
        ".config/nixpkgs .config/pnpm .mvn .cmake .quiltrc .devscripts .pbuilderrc .sbuildrc .dpkg.cfg",
        _TOOL: ".ripgreprc .curlrc .wgetrc .gdbinit .config/gdb .lldbinit .pdbrc .pythonrc .pythonrc.py .irbrc .pryrc "
        ".Rprofile .Renviron .iex.exs .ghci .psqlrc .sqliterc .my.cnf .lesskey .config/lesskey .lessfilter .ackrc "
        ".mailcap .mailrc .muttrc .latexmkrc .ansible.cfg .direnvrc .config/direnv .config/mise .config/curlrc "
        ".config/irb .config/pry .rspec .pylintrc .config/pylintrc .gnuplot .tclshrc .perldb .valgrindrc .sbclrc "
        ".guile",
        _AGENT: ".claude.json .claude/CLAUDE.md .claude/commands .claude/agents .claude/hooks .claude/skills "
        ".claude/plugins .claude/settings.json .claude/settings.local.json .claude/output-styles .claude/rules "
        ".codex/config.toml .codex/AGENTS.md .codex/AGENTS.override.md .codex/hooks.json .codex/prompts .codex/rules "
        ".codex/skills .agents .copilot .gemini/extensions .gemini/commands .gemini/skills .gemini/.env .cursor/rules "
        ".cursor/commands .cursor/cli-config.json .gemini/settings.json .gemini/GEMINI.md .cursor/mcp.json "
        ".cursor/hooks.json .continue .aider.conf.yml .config/goose .config/opencode .config/github-copilot",
    }
)
#: Names in a home that are protected where they exist, and why.
SET_UP_AT_HOME: Final[Mapping[str, str]] = _table(
    {
        _SHELL: ".oh-my-zsh .oh-my-bash .zsh .config/zsh .config/bash .config/nushell .config/powershell .config/xonsh "
        ".xonshrc .config/starship.toml .fzf .fzf.bash .fzf.zsh .nvm .pyenv .rbenv .nodenv .jenv .goenv .asdf .asdfrc "
        ".sdkman .local/share/mise .local/share/direnv .nix-profile .local/state/nix .cargo/env .ghcup/env",
        _COLLECTED: ".dotfiles .local/share/chezmoi .local/share/yadm .config/yadm",
        _SESSION: ".config/i3 .i3 .config/sway .config/hypr .config/awesome .config/bspwm .config/sxhkd "
        ".config/openbox .fluxbox .config/polybar .config/waybar .config/dconf .crontab "
        ".xmonad .config/xmonad .config/qtile .config/xfce4 .xscreensaver .config/pulse .config/labwc .config/river "
        ".config/niri .config/herbstluftwm .config/rofi .config/dunst .xbindkeysrc",
        _DESKTOP: ".local/share/gnome-shell .local/share/nautilus .local/share/nemo .local/share/plasma "
        ".local/share/kservices5 .local/share/kio .local/share/flatpak .local/share/nautilus-python .config/gtk-3.0 "
        ".config/gtk-4.0 .gtkrc-2.0",
        _PATH: ".cargo/bin go/bin .npm-global .deno/bin .bun/bin .volta .yarn/bin .config/composer .composer "
        ".local/share/pnpm .local/share/pipx .local/pipx .local/share/uv .rye .pixi/bin .dotnet/tools .krew/bin "
        ".ghcup/bin .cabal/bin .opam .juliaup .linuxbrew .local/share/coursier .jbang .rustup .foundry/bin",
        _LOADED: ".local/share/gem .gem .virtualenvs .local/share/virtualenvs .R .conda miniconda3 anaconda3 "
        "miniforge3 .cursor-server .windsurf-server .windsurf/extensions .vscode-insiders/extensions "
        ".local/share/JetBrains .vscode-server .vscode-oss/extensions .cursor/extensions",
        _KEPT: ".cache/pre-commit .cache/pip .cache/uv .cache/pypoetry .cache/ms-playwright .cache/puppeteer "
        ".cache/yarn .cache/go-build .cache/bazel .cache/huggingface .cache/torch .npm .pnpm-store .m2/repository "
        ".m2/wrapper .gradle/caches .gradle/wrapper .cargo/registry .cargo/git go/pkg .nuget .ivy2 .mix .hex .ccache",
        _KEYS: ".k5login .password-store .local/share/keyrings .vault-token .oci .boto .s3cfg .config/rclone "
        ".config/op .config/sops .config/hub .config/glab-cli .terraform.d .config/1Password .msmtprc .fetchmailrc",
        _EDITOR: ".config/sublime-text .config/JetBrains .ideavimrc .config/micro .config/kak "
        ".config/Windsurf/User .doom.d .config/doom .spacemacs .atom .config/mc .config/geany .local/share/gedit",
        _TERMINAL: ".tmux .config/kitty .config/alacritty .config/wezterm .wezterm.lua .config/ghostty "
        ".config/terminator .config/zellij .config/foot .local/share/konsole .byobu",
        _PACKAGES: ".sbt .lein .config/cabal .cabal/config .stack/config.yaml .vagrant.d .config/home-manager",
        _TOOL: ".config/mpv .config/ranger .config/lf .config/yazi .config/lazygit .config/tig .config/k9s "
        ".config/mutt .config/aerc .config/topgrade.toml .ansible .octaverc .erlang .config/bat .aria2 .config/yt-dlp "
        ".irssi .config/weechat .config/matplotlib .config/mypy .mypy.ini .rubocop.yml",
        _AGENT: ".claude/local .claude/shell-snapshots .codeium .qwen .kiro .factory .augment .roo .cline .junie "
        ".crush .config/crush .config/amp .config/Claude",
        _BROWSER: ".mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware "
        ".config/microsoft-edge .config/vivaldi",
    }
) | dict.fromkeys((".config/Code - OSS/User", ".config/Code - Insiders/User"), _EDITOR)
#: Names in the home of a Mac, and why. Spaces in them are why they stand apart.
ON_A_MAC: Final[Mapping[str, str]] = {
    "Library/LaunchAgents": _SESSION,
    "Library/LaunchDaemons": _SESSION,
    "Library/Application Scripts": _SESSION,
    "Library/Services": _DESKTOP,
    "Library/QuickLook": _DESKTOP,
    "Library/Input Methods": _DESKTOP,
    "Library/Keychains": _KEYS,
    "Library/Application Support/Code/User": _EDITOR,
    "Library/Application Support/Cursor/User": _EDITOR,
    "Library/Application Support/Claude": _AGENT,
    "Library/pnpm": _PATH,
}
#: The name that a Mac's home has, so that the names in it are kept from being made there.
_LIBRARY: Final = "Library"
#: All of them.
AT_HOME: Final[Mapping[str, str]] = {**SET_UP_AT_HOME, **OBEYED_AT_HOME, **ON_A_MAC}
_FOLDED: Final = {name.casefold(): name for name in AT_HOME}
#: What the host runs for a user, outside the home; protected where it exists, in a tree that holds home and all of it.
OUTSIDE: Final[Mapping[str, str]] = dict.fromkeys(("/var/spool/cron", "/var/spool/at", "/var/at"), _SESSION)


def name_above(place: str, home: str) -> str:
    """Return the name that a directory in a home is, or lies in; empty if it is none of these."""
    names = [name.casefold() for name in names_of(place)[len(names_of(home)) :]]
    found = (_FOLDED.get("/".join(names[:length])) for length in range(1, len(names) + 1))
    return next((name for name in found if name is not None), "")


def find_in_home(home: str, root: str, places: Places, search: Search | None = None) -> Iterator[Protection]:
    """Yield every protection in a home that lies in the writable tree at ``root``, or the other way round."""
    if not places.is_directory(home):
        return
    for path, why in OUTSIDE.items():
        if _is_below(path, root) and places.exists(path):
            yield Protection(path, path, follow(path, places).place, why, path)
    for name, why in AT_HOME.items():
        path = joined([*names_of(home), *names_of(name)])
        if not _is_below(path, root):
            if search is not None and _is_unsaid(path, root, search) and places.exists(path):
                yield Protection(name, root, root, why)
            continue
        trail = follow(path, places)
        missing = None if trail.looped else first_missing(trail.place, places)
        if missing is None:
            yield Protection(name, path, trail.place, why)
        elif _is_kept(name, home, places) and not is_at_or_below(root, missing):
            # Where a link leads to what is missing, the link is kept as well.
            yield Protection(name, path if trail.steps else missing, missing, why)


def protected_in_home(place: str, root: str, home: str, search: Search, places: Places) -> Protection | None:
    """Return what protects a place in a home, ``None`` if nothing does; neither has a link in it."""
    if not places.is_directory(home):
        return None
    names = names_of(place)[len(names_of(home)) :]
    for length in range(1, len(names) + 1):
        path = joined([*names_of(home), *names[:length]])
        if not _is_below(path, root) and not _is_unsaid(path, root, search):
            continue
        for name in _protecting(names[:length], path, home, places):
            found = Protection(name, path, path, AT_HOME[name])
            if not search.lifts(found):
                return found
    return None


def _protecting(names: list[str], path: str, home: str, places: Places) -> Iterator[str]:
    """Yield the names that protect a path in a home: its own, or those that it must not hold if it is missing."""
    folded, there = "/".join(names).casefold(), places.exists(path)
    name = _FOLDED.get(folded)
    if name is not None and (there or _is_kept(name, home, places)):
        yield name
    if not there:
        yield from (
            name for name in AT_HOME if name.casefold().startswith(f"{folded}/") and _is_kept(name, home, places)
        )


def _is_kept(name: str, home: str, places: Places) -> bool:
    """Tell whether a name must not be made."""
    if name in ON_A_MAC:
        return places.exists(joined([*names_of(home), _LIBRARY]))
    return name in OBEYED_AT_HOME


def _is_unsaid(path: str, root: str, search: Search) -> bool:
    """Tell whether a writable tree begins at a path, or in it, only because a wildcard matches there."""
    return is_at_or_below(root, path) and not search.says(path)


def _is_below(path: str, root: str) -> bool:
    return path != root and is_at_or_below(path, root)
