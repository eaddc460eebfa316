"""Which settings of a repository's own config are harmless, whoever wrote them.

An allow list, because git grows keys that name programs faster than anybody lists them (``gc.recentObjectsHook`` came
with 2.42). The rules:

- A key that is not listed is not harmless: it may make git run a program, take config, hooks or attributes from
  elsewhere, or send what is fetched and pushed another way. Other programs (git-lfs, say) read this config too.
- Listed keys hold data alone: switches, numbers, names, colours. A few count only with certain values.
- A remote is the name of one in the same config, an absolute path, or an address of a protocol that git speaks.
  ``ext::``, ``fd::`` and any other ``helper::`` run a program, and so does an unknown scheme (gitremote-helpers(7)).
- ``core.worktree`` counts if it leads back to the work tree by which the repository was found, as in submodules.

Source of truth: git-config(1), git 2.39 to 2.51.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.policy.git_config import GitSetting

#: Keys of sections without a subsection.
_PLAIN: Final[Mapping[str, frozenset[str]]] = {
    section: frozenset(keys.split())
    for section, keys in {
        "author": "name email",
        "blame": "coloring date showemail showroot blankboundary",
        "branch": "autosetupmerge autosetuprebase sort",
        "checkout": "guess workers thresholdforparallelism",
        "clone": "rejectshallow filtersubmodules",
        "color": "ui advice branch diff grep interactive pager push remote showbranch status transport",
        "column": "ui branch clean status tag",
        "commit": "cleanup gpgsign status verbose",
        "committer": "name email",
        "core": "abbrev autocrlf bare bigfilethreshold checkstat commentchar commentstring commitgraph compression "
        "deltabasecachelimit eol filemode fsync fsyncmethod fsyncobjectfiles hidedotfiles ignorecase ignorestat "
        "logallrefupdates longpaths loosecompression multipackindex packedgitlimit packedgitwindowsize "
        "precomposeunicode preloadindex quotepath repositoryformatversion safecrlf sharedrepository sparsecheckout "
        "sparsecheckoutcone splitindex symlinks trustctime untrackedcache usereplacerefs warnambiguousrefs whitespace",
        "diff": "algorithm autorefreshindex colormoved colormovedws context dirstat ignoresubmodules indentheuristic "
        "interhunkcontext mnemonicprefix noprefix relative renamelimit renames statgraphwidth submodule "
        "suppressblankempty wserrorhighlight",
        "extensions": "compatobjectformat noop noopv1 objectformat preciousobjects relativeworktrees worktreeconfig",
        "feature": "experimental manyfiles",
        "fetch": "fsckobjects negotiationalgorithm output parallel prune prunetags recursesubmodules showforcedupdates "
        "unpacklimit writecommitgraph",
        "gc": "aggressivedepth aggressivewindow auto autodetach autopacklimit bigpackthreshold cruftpacks "
        "logexpiry packrefs pruneexpire reflogexpire reflogexpireunreachable writecommitgraph worktreepruneexpire",
        "http": "postbuffer lowspeedlimit lowspeedtime maxrequests minsessions version",
        "index": "recordendofindexentries recordoffsettable skiphash sparse threads version",
        "init": "defaultbranch defaultobjectformat defaultrefformat",
        "lfs": "repositoryformatversion",
        "log": "abbrevcommit date decorate follow showroot showsignature mailmap",
        "maintenance": "auto strategy",
        "merge": "autostash branchdesc conflictstyle directoryrenames ff log renamelimit renames renormalize stat "
        "suppressdest verbosity",
        "pack": "allowpackreuse compression deltacachelimit deltacachesize depth indexversion packsizelimit threads "
        "usebitmaps usesparse window windowmemory writebitmaphashcache writebitmaplookuptable writereverseindex",
        "pull": "ff rebase",
        "push": "autosetupremote gpgsign default followtags recursesubmodules useforceifincludes",
        "rebase": "abbreviatecommands autosquash autostash forkpoint missingcommitscheck rebasemerges "
        "reschedulefailedexec stat updaterefs",
        "receive": "denydeletes denynonfastforwards fsckobjects",
        "rerere": "autoupdate enabled",
        "stash": "showincludeuntracked showpatch showstat",
        "status": "aheadbehind branch displaycommentprefix relativepaths renamelimit renames short showstash "
        "showuntrackedfiles submodulesummary",
        "submodule": "active alternateerrorstrategy alternatelocation fetchjobs propagatebranches recurse",
        "tag": "gpgsign sort",
        "transfer": "credentialsinurl fsckobjects unpacklimit",
        "user": "email name useconfigonly",
        "versionsort": "suffix prereleasesuffix",
        "worktree": "guessremote userelativepaths",
    }.items()
}
#: Keys of sections with a subsection, whatever that is.
_WITHIN: Final[Mapping[str, frozenset[str]]] = {
    "branch": frozenset(
        ("description", "gh-merge-base", "github-pr-owner-number", "merge", "rebase", "vscode-merge-base")
    ),
    "color": frozenset(
        [
            "added",
            "ahead",
            "behind",
            "branch",
            "changed",
            "commit",
            "context",
            "current",
            "func",
            "grep",
            "header",
            "local",
            "meta",
            "new",
            "nobranch",
            "old",
            "plain",
            "remote",
            "untracked",
            "updated",
            "upstream",
            "whitespace",
            "worktree",
        ]
    ),
    "lfs": frozenset(("access", "locksverify")),
    "remote": frozenset(
        [
            "fetch",
            "followremotehead",
            "gh-resolved",
            "mirror",
            "partialclonefilter",
            "promisor",
            "prune",
            "prunetags",
            "push",
            "skipdefaultupdate",
            "skipfetchall",
            "tagopt",
        ]
    ),
    "submodule": frozenset(("active", "branch", "fetchrecursesubmodules", "ignore", "path", "shallow")),
}
#: Keys whose value is the address of a remote, and those whose value is one or the name of one.
_REMOTES: Final = frozenset(["remote.*.pushurl", "remote.*.url", "submodule.*.url"])
_NAMED: Final = frozenset(
    [
        "branch.*.pushremote",
        "branch.*.remote",
        "checkout.defaultremote",
        "extensions.partialclone",
        "remote.pushdefault",
    ]
)
#: Keys that count with these values alone.
_VALUES: Final[Mapping[str, frozenset[str]]] = {
    "core.fsmonitor": frozenset(("false", "no", "off", "0", "")),
    "extensions.refstorage": frozenset(("files", "reftable")),
    "receive.denycurrentbranch": frozenset(("refuse", "warn", "ignore", "true", "false")),
    "submodule.*.update": frozenset(("checkout", "merge", "none", "rebase")),
}
_SCHEMES: Final = frozenset(("file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git"))


def is_harmless(setting: GitSetting, remotes: frozenset[str] = frozenset()) -> bool:
    """Tell whether a setting can be left where anybody wrote it; ``core.worktree`` is not judged here.

    ``remotes`` are the names of those that the same config has: any other name is a path.
    """
    keys = _WITHIN if setting.has_subsection else _PLAIN
    if setting.key in keys.get(setting.section, ()):
        return True
    name, value = _generic(setting), setting.value or ""
    if setting.section == "advice":
        return True
    if name in _NAMED:
        return value == "." or value in remotes or is_plain_remote(value)
    if name in _REMOTES:
        return is_plain_remote(value) or (name == "submodule.*.url" and value.startswith(("./", "../")))
    allowed = _VALUES.get(name)
    return allowed is not None and setting.value is not None and setting.value.casefold() in allowed


def is_plain_remote(value: str) -> bool:
    """Tell whether a remote is an address of a protocol that git speaks itself, or a path that means one place.

    A relative path means another place in each work tree, and so does one through ``/proc``. Git decodes percent signs
    in a ``file://`` address, and drops its host.
    """
    if value.startswith("-") or not value.isprintable():
        return False
    helper, colons, _ = value.partition("::")
    if colons and "/" not in helper and "[" not in helper:
        return False
    scheme, separator, rest = value.partition("://")
    if separator and "/" not in scheme:
        if scheme.casefold() == "file":
            return "%" not in rest and _is_plain_path(rest)
        return scheme.casefold() in _SCHEMES
    if ":" in value.partition("/")[0]:
        return True  # ssh's "host:path"
    return _is_plain_path(value)


def _is_plain_path(path: str) -> bool:
    names = path.split("/")
    return names[0] == "" and ".." not in names and names[1:2] not in (["proc"], ["dev"])


def local_path(setting: GitSetting) -> str:
    """Return the path of another repository on this machine that a setting names, empty if it names none."""
    value = setting.value or ""
    if _generic(setting) not in _REMOTES | _NAMED:
        return ""
    if value.casefold().startswith("file://"):
        return value[len("file://") :]
    return value if value.startswith("/") else ""


def _generic(setting: GitSetting) -> str:
    return f"{setting.section}.{'*.' if setting.has_subsection else ''}{setting.key}"
