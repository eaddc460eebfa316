from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError, StockadeError
from stockade.policy.files import Access, FileRules, FileVerdict, Ground, Reason, judge, survey
from stockade.policy.name_glob import escaped
from stockade.policy.path_pattern import PathPattern
from stockade.policy.places import Disk, follow
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DISK = Disk()
READ, WRITE = Access.READ, Access.WRITE
USER = Origin(Layer.USER, "settings.json")
POLICY = Origin(Layer.POLICY, "managed.json")

DIRECTORIES = (
    "w/src/deep",
    "w/.git/hooks",
    "w/secret/pub/private",
    "w/sub/.git/hooks",
    "w/one/two/three/.vscode",
    "w/one/two/three/four/.vscode",
    "w/store/hooks",
    "w/node_modules/pkg/.vscode",
    "w/fresh",
    "w/odd *[name\\",
    "outside/.git/hooks",
    "other/.git/hooks",
    "bare",
)
FILES = (
    "w/src/a.py",
    "w/src/key.pem",
    "w/src/deep/key.pem",
    "w/.git/config",
    "w/secret/key",
    "w/secret/pub/x",
    "w/module/.git",
    "outside/file",
    "outside/key.pem",
    "other/file",
)
LINKS = {
    "w/in": "src",
    "w/out": "../outside",
    "w/out-file": "../outside/file",
    "w/dangling-in": "src/new",
    "w/dangling-out": "../outside/new",
    "w/loop": "loop",
    "w/to-secret": "secret/key",
    "w/to-hooks": ".git/hooks",
    "w/secret/link": "../src",
    "w/src/up": "..",
    "w/linked/.git": "../store",
    "outside/link": "../other",
    "elsewhere": "other",
    "to-bare": "bare",
}


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A disk on which ``w`` is the working directory."""
    top = tmp_path_factory.mktemp("disk").resolve()
    for directory in DIRECTORIES:
        (top / directory).mkdir(parents=True)
    for path in (*FILES, *LINKS):
        (top / path).parent.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        (top / file).touch()
    for link, target in LINKS.items():
        (top / link).symlink_to(target)
    return top


Texts = tuple[str, ...]


class Setup(Value):
    """Rules as texts; a leading ``policy:`` makes the administrator their author."""

    write_allow: Texts = ()
    write_deny: Texts = ()
    read_deny: Texts = ()
    read_allow: Texts = ()
    search_depth: int = 3
    allow_git_config: bool = False

    def rules(self, top: Path) -> FileRules:
        def sourced(texts: Texts) -> tuple[Sourced[PathPattern], ...]:
            return tuple(
                Sourced(
                    PathPattern.parse(text.removeprefix("policy:"), cwd=f"{top}/w", home=f"{top}/home"),
                    POLICY if text.startswith("policy:") else USER,
                )
                for text in texts
            )

        return FileRules(
            cwd=f"{top}/w",
            home=f"{top}/home",
            write_allow=sourced((".", *self.write_allow)),
            write_deny=sourced(self.write_deny),
            read_deny=sourced(self.read_deny),
            read_allow=sourced(self.read_allow),
            search_depth=self.search_depth,
            allow_git_config=self.allow_git_config,
        )


PLAIN = Setup()
HIDDEN = Setup(read_deny=("secret",))
REOPENED = Setup(read_deny=("secret", "secret/pub/private"), read_allow=("secret/pub",))
FROZEN = Setup(write_deny=("src/deep",))


@pytest.mark.parametrize(
    ("setup", "path", "reason"),
    [
        pytest.param(PLAIN, "p/new", Reason.PRIVATE, id="in-it"),
        pytest.param(PLAIN, "p", Reason.PRIVATE, id="itself"),
        pytest.param(PLAIN, "p/.bashrc", Reason.PRIVATE, id="nothing-is-protected"),
        pytest.param(PLAIN, "other", Reason.OUTSIDE_WRITABLE, id="beside"),
        pytest.param(PLAIN, "w/../p/new", Reason.PRIVATE, id="spelled-otherwise"),
        pytest.param(Setup(write_deny=("../p/new",)), "p/new", Reason.DENIED_WRITE, id="denied"),
        pytest.param(Setup(write_deny=("../p",)), "p/new", Reason.DENIED_WRITE, id="denied-above"),
        pytest.param(Setup(write_deny=("../p/a/b",)), "p/a", Reason.HOLDS_DENIED, id="would-hold-a-denied-place"),
        pytest.param(Setup(read_deny=("../p/new",)), "p/new", Reason.READ_DENIED_HENCE_NO_WRITE, id="hidden"),
        pytest.param(
            Setup(read_deny=("../p/s",), read_allow=("../p/s/a",)), "p/s/a", Reason.OUTSIDE_WRITABLE, id="shown-again"
        ),
        pytest.param(Setup(write_allow=("../p/w",)), "p/w/x", Reason.IN_WRITABLE_ROOT, id="a-real-root-in-it"),
    ],
)
def test_a_private_place_is_written_unless_a_rule_is_about_it(
    tmp_path: Path, setup: Setup, path: str, reason: Reason
) -> None:
    top = tmp_path.resolve()
    for name in ("w", "p", "p/s", "p/w"):
        (top / name).mkdir()
    (top / "p" / "s" / "a").touch()
    verdict = judge(setup.rules(top).but(private=f"{top}/p"), WRITE, f"{top}/{path}", Disk())
    assert (verdict.reason, verdict.allowed) == (reason, reason in (Reason.PRIVATE, Reason.IN_WRITABLE_ROOT))


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        pytest.param("p/.stockade/settings.json", Reason.PRIVATE, id="commands-write-a-copy"),
        pytest.param("p/w/.stockade/settings.json", Reason.DENIED_WRITE, id="in-a-root-it-is-the-hosts"),
        pytest.param("w/link/settings.json", Reason.DENIED_WRITE, id="by-a-link-in-a-root"),
        pytest.param("p/to-root/settings.json", Reason.DENIED_WRITE, id="by-a-link-to-a-root"),
        pytest.param("p/s/settings.json", Reason.DENIED_WRITE, id="a-re-allow-shows-the-hosts"),
    ],
)
def test_settings_files_in_a_private_place_need_no_guard(tmp_path: Path, file: str, reason: Reason) -> None:
    top = tmp_path.resolve()
    for name in ("w", "p", "p/s", "p/w"):
        (top / name).mkdir()
    (top / "w" / "link").symlink_to("../p")
    (top / "p" / "to-root").symlink_to("../w")
    setup = Setup(write_allow=("../p/w",), read_deny=("../p/s",), read_allow=("../p/s/settings.json",))
    guarded = Sourced(PathPattern.literal(f"{top}/{file}"), Origin(Layer.DEFAULTS))
    rules = setup.rules(top).but(private=f"{top}/p", write_deny=(guarded,))
    assert judge(rules, WRITE, f"{top}/{file}", Disk()).reason is reason


@pytest.mark.parametrize(
    ("setup", "access", "path", "reason"),
    [
        pytest.param(PLAIN, READ, "/etc/hostname", Reason.OPEN, id="reading-is-open"),
        pytest.param(PLAIN, WRITE, "src/a.py", Reason.IN_WRITABLE_ROOT, id="write-in-cwd"),
        pytest.param(PLAIN, WRITE, "src/no/such/dir", Reason.IN_WRITABLE_ROOT, id="write-what-is-missing"),
        pytest.param(PLAIN, WRITE, ".", Reason.IN_WRITABLE_ROOT, id="the-root-itself"),
        pytest.param(PLAIN, WRITE, "..", Reason.OUTSIDE_WRITABLE, id="above-the-root"),
        pytest.param(PLAIN, WRITE, "../w/src/a.py", Reason.IN_WRITABLE_ROOT, id="out-and-in-again"),
        pytest.param(PLAIN, WRITE, "src/../../outside/file", Reason.OUTSIDE_WRITABLE, id="dot-dot"),
        pytest.param(PLAIN, WRITE, "no/../../outside/file", Reason.OUTSIDE_WRITABLE, id="dot-dot-after-nothing"),
        pytest.param(PLAIN, WRITE, "../wx", Reason.OUTSIDE_WRITABLE, id="a-longer-name-beside"),
        pytest.param(PLAIN, WRITE, "/proc/self/root/etc/x", Reason.OUTSIDE_WRITABLE, id="proc-self-root"),
        pytest.param(PLAIN, WRITE, "out/file", Reason.OUTSIDE_WRITABLE, id="directory-link-out"),
        pytest.param(PLAIN, WRITE, "out-file", Reason.OUTSIDE_WRITABLE, id="file-link-out"),
        pytest.param(PLAIN, WRITE, "out/../w/src/a.py", Reason.IN_WRITABLE_ROOT, id="dot-dot-after-a-link"),
        pytest.param(PLAIN, WRITE, "in/a.py", Reason.IN_WRITABLE_ROOT, id="link-inside"),
        pytest.param(PLAIN, WRITE, "src/up/src/up/src/a.py", Reason.IN_WRITABLE_ROOT, id="round-and-round"),
        pytest.param(PLAIN, WRITE, "dangling-in", Reason.IN_WRITABLE_ROOT, id="dangling-link-inside"),
        pytest.param(PLAIN, WRITE, "dangling-out", Reason.OUTSIDE_WRITABLE, id="dangling-link-out"),
        pytest.param(PLAIN, WRITE, "loop", Reason.UNRESOLVABLE, id="write-a-loop"),
        pytest.param(PLAIN, READ, "loop/x", Reason.UNRESOLVABLE, id="read-through-a-loop"),
        pytest.param(PLAIN, WRITE, ".git/index", Reason.IN_WRITABLE_ROOT, id="commits-work"),
        pytest.param(PLAIN, WRITE, ".git/hooks/pre-commit", Reason.PROTECTED, id="hooks"),
        pytest.param(PLAIN, WRITE, ".git/HOOKS", Reason.PROTECTED, id="hooks-in-more-capitals"),
        pytest.param(PLAIN, WRITE, "src/../.git/hooks/x", Reason.PROTECTED, id="hooks-by-dot-dot"),
        pytest.param(PLAIN, WRITE, "to-hooks/x", Reason.PROTECTED, id="hooks-by-a-link"),
        pytest.param(PLAIN, WRITE, "src/up/.git/hooks/x", Reason.PROTECTED, id="hooks-by-a-link-above"),
        pytest.param(PLAIN, WRITE, ".git/config", Reason.PROTECTED, id="git-config"),
        pytest.param(Setup(allow_git_config=True), WRITE, ".git/config", Reason.IN_WRITABLE_ROOT, id="config-lifted"),
        pytest.param(Setup(allow_git_config=True), WRITE, ".git/hooks", Reason.PROTECTED, id="hooks-not-lifted"),
        pytest.param(PLAIN, READ, ".git/hooks", Reason.OPEN, id="protected-is-readable"),
        pytest.param(PLAIN, WRITE, ".vscode", Reason.PROTECTED, id="missing-at-the-root"),
        pytest.param(PLAIN, WRITE, ".bashrc", Reason.IN_WRITABLE_ROOT, id="missing-at-a-root-that-is-no-home"),
        pytest.param(PLAIN, WRITE, "fresh/.bashrc", Reason.IN_WRITABLE_ROOT, id="missing-below-the-root"),
        pytest.param(PLAIN, WRITE, "fresh/.git/hooks/x", Reason.IN_WRITABLE_ROOT, id="git-init-below-the-root"),
        pytest.param(PLAIN, WRITE, "sub/.git/hooks/x", Reason.PROTECTED, id="repository-below"),
        pytest.param(PLAIN, WRITE, "module/.git", Reason.PROTECTED, id="git-file"),
        pytest.param(PLAIN, WRITE, "linked/.git", Reason.PROTECTED, id="git-link"),
        pytest.param(PLAIN, WRITE, "linked/.git/hooks/x", Reason.PROTECTED, id="hooks-of-a-linked-repository"),
        pytest.param(PLAIN, WRITE, "store/hooks/x", Reason.PROTECTED, id="the-same-by-their-own-name"),
        pytest.param(PLAIN, WRITE, "store/index", Reason.IN_WRITABLE_ROOT, id="commits-in-a-linked-repository"),
        pytest.param(PLAIN, WRITE, "one/two/three/.vscode/x", Reason.PROTECTED, id="at-the-search-depth"),
        pytest.param(PLAIN, WRITE, "one/two/three/four/.vscode", Reason.IN_WRITABLE_ROOT, id="below-the-search-depth"),
        pytest.param(
            Setup(search_depth=4), WRITE, "one/two/three/four/.vscode", Reason.PROTECTED, id="a-greater-search-depth"
        ),
        pytest.param(
            Setup(write_allow=("one/two",)),
            WRITE,
            "one/two/three/four/.vscode",
            Reason.PROTECTED,
            id="a-deeper-root-reaches-deeper",
        ),
        pytest.param(PLAIN, WRITE, "node_modules/pkg/.vscode", Reason.IN_WRITABLE_ROOT, id="node_modules"),
        pytest.param(Setup(write_allow=(".git/hooks",)), WRITE, ".git/hooks/x", Reason.PROTECTED, id="no-allow-helps"),
        pytest.param(
            Setup(write_allow=("../outside/.git/hooks/x",)),
            WRITE,
            "../outside/.git/hooks/x",
            Reason.PROTECTED,
            id="not-even-an-allow-of-that-alone",
        ),
        pytest.param(Setup(write_allow=("../other",)), WRITE, "../other/file", Reason.IN_WRITABLE_ROOT, id="two-roots"),
        pytest.param(
            Setup(write_allow=("../other",)), WRITE, "../other/.git/hooks/x", Reason.PROTECTED, id="two-roots-guarded"
        ),
        pytest.param(
            Setup(write_allow=("../other",)), WRITE, "../other/.idea", Reason.PROTECTED, id="two-roots-missing"
        ),
        pytest.param(
            Setup(write_allow=("../bare",)), WRITE, "../bare/.git", Reason.IN_WRITABLE_ROOT, id="git-init-at-a-root"
        ),
        pytest.param(
            Setup(write_allow=("../bare",)),
            WRITE,
            "../bare/.git/hooks/x",
            Reason.IN_WRITABLE_ROOT,
            id="hooks-on-a-stage-at-a-root",
        ),
        pytest.param(
            Setup(write_allow=("../elsewhere",)), WRITE, "../other/file", Reason.IN_WRITABLE_ROOT, id="allow-on-a-link"
        ),
        pytest.param(
            Setup(write_allow=("../elsewhere/*",)),
            WRITE,
            "../other/f",
            Reason.IN_WRITABLE_ROOT,
            id="glob-behind-a-link",
        ),
        pytest.param(Setup(write_allow=("out",)), WRITE, "out/file", Reason.OUTSIDE_WRITABLE, id="a-planted-link"),
        pytest.param(Setup(write_allow=("out/*",)), WRITE, "out/file", Reason.OUTSIDE_WRITABLE, id="planted-and-glob"),
        pytest.param(Setup(write_allow=("..",)), WRITE, "out/file", Reason.IN_WRITABLE_ROOT, id="place-allowed-anyway"),
        pytest.param(
            Setup(write_allow=("../outside/*.log",)),
            WRITE,
            "../outside/x.log",
            Reason.IN_WRITABLE_ROOT,
            id="allow-glob",
        ),
        pytest.param(
            Setup(write_allow=("../outside/*.log",)), WRITE, "../outside/x", Reason.OUTSIDE_WRITABLE, id="allow-glob-no"
        ),
        pytest.param(
            Setup(write_allow=("*",)), WRITE, "out/x", Reason.OUTSIDE_WRITABLE, id="a-glob-allows-links-not-targets"
        ),
        pytest.param(FROZEN, WRITE, "src/deep/x", Reason.DENIED_WRITE, id="deny-inside-allow"),
        pytest.param(FROZEN, READ, "src/deep/x", Reason.OPEN, id="write-deny-is-readable"),
        pytest.param(FROZEN, WRITE, "in/deep/x", Reason.DENIED_WRITE, id="deny-through-a-link"),
        pytest.param(
            FROZEN.but(write_allow=("src/deep/x",)),
            WRITE,
            "src/deep/x",
            Reason.DENIED_WRITE,
            id="deny-beats-deeper-allow",
        ),
        pytest.param(Setup(write_deny=("in",)), WRITE, "src/a.py", Reason.DENIED_WRITE, id="deny-on-a-link-place"),
        pytest.param(Setup(write_deny=("in",)), WRITE, "in", Reason.DENIED_WRITE, id="deny-on-a-link-itself"),
        pytest.param(
            Setup(write_deny=("secret",)), WRITE, "secret/link", Reason.DENIED_WRITE, id="link-in-a-denied-directory"
        ),
        pytest.param(
            Setup(write_deny=("secret",)),
            WRITE,
            "secret/link/a.py",
            Reason.IN_WRITABLE_ROOT,
            id="through-a-link-in-a-denied-directory",
        ),
        pytest.param(Setup(write_deny=("**/*.pem",)), WRITE, "src/deep/key.pem", Reason.DENIED_WRITE, id="deny-glob"),
        pytest.param(
            Setup(write_deny=("**/*.pem",)), WRITE, "src/new.pem", Reason.DENIED_WRITE, id="deny-glob-missing"
        ),
        pytest.param(Setup(write_deny=("*/a.py",)), WRITE, "in/a.py", Reason.DENIED_WRITE, id="deny-glob-over-a-link"),
        pytest.param(
            Setup(write_deny=("in/*.py",)), WRITE, "src/a.py", Reason.DENIED_WRITE, id="deny-glob-after-a-link"
        ),
        pytest.param(Setup(write_deny=("i?",)), WRITE, "in/a.py", Reason.DENIED_WRITE, id="deny-glob-on-the-link"),
        pytest.param(Setup(write_deny=("loop",)), WRITE, "loop", Reason.UNRESOLVABLE, id="deny-on-a-loop"),
        pytest.param(Setup(write_deny=("no/a/b",)), WRITE, "no/a/b", Reason.DENIED_WRITE, id="deny-what-is-missing"),
        pytest.param(Setup(write_deny=("no/a/b",)), WRITE, "no/x", Reason.HOLDS_DENIED, id="directories-on-the-way"),
        pytest.param(Setup(write_deny=("src/no",)), WRITE, "src/x", Reason.IN_WRITABLE_ROOT, id="beside-the-missing"),
        pytest.param(HIDDEN, READ, "secret", Reason.DENIED_READ, id="denied-directory"),
        pytest.param(HIDDEN, READ, "secret/key", Reason.DENIED_READ, id="denied-file"),
        pytest.param(HIDDEN, READ, "to-secret", Reason.DENIED_READ, id="link-to-a-denied-file"),
        pytest.param(HIDDEN, READ, "secret/link/a.py", Reason.DENIED_READ, id="link-inside-a-denied-directory"),
        pytest.param(HIDDEN, READ, "src/../secret/key", Reason.DENIED_READ, id="denied-by-dot-dot"),
        pytest.param(HIDDEN, WRITE, "secret/key", Reason.READ_DENIED_HENCE_NO_WRITE, id="denied-read-is-no-write"),
        pytest.param(HIDDEN, WRITE, "to-secret", Reason.READ_DENIED_HENCE_NO_WRITE, id="nor-by-a-link"),
        pytest.param(Setup(read_deny=("no/a",)), WRITE, "no/x", Reason.HOLDS_DENIED, id="missing-read-deny"),
        pytest.param(Setup(read_deny=("to-secret",)), READ, "secret/key", Reason.DENIED_READ, id="read-deny-on-a-link"),
        pytest.param(Setup(read_deny=("to-secret",)), READ, "secret/pub/x", Reason.OPEN, id="and-on-nothing-else"),
        pytest.param(Setup(read_deny=("/**/*.pem",)), READ, "../outside/key.pem", Reason.DENIED_READ, id="read-glob"),
        pytest.param(Setup(read_deny=("**/*.pem",)), READ, "../outside/key.pem", Reason.OPEN, id="read-glob-elsewhere"),
        pytest.param(
            Setup(read_deny=("**/*.pem",)), READ, "out/key.pem", Reason.DENIED_READ, id="read-glob-over-a-link"
        ),
        pytest.param(REOPENED, READ, "secret/pub/x", Reason.REALLOWED, id="re-allow"),
        pytest.param(REOPENED, WRITE, "secret/pub/x", Reason.IN_WRITABLE_ROOT, id="re-allow-is-writable"),
        pytest.param(
            Setup(read_deny=("../outside",), read_allow=("../outside/link",)),
            READ,
            "../outside/link/file",
            Reason.OPEN,
            id="re-allow-of-a-link-in-a-denied-directory",
        ),
        pytest.param(REOPENED, READ, "secret/key", Reason.DENIED_READ, id="beside-the-re-allow"),
        pytest.param(REOPENED, READ, "secret/pub/private/x", Reason.DENIED_READ, id="deny-inside-the-re-allow"),
        pytest.param(
            Setup(read_deny=("secret",), read_allow=("secret",)),
            READ,
            "secret/key",
            Reason.DENIED_READ,
            id="deny-wins-a-tie",
        ),
        pytest.param(
            Setup(read_deny=("..",), read_allow=(".",)),
            WRITE,
            "src/a.py",
            Reason.IN_WRITABLE_ROOT,
            id="cwd-in-a-read-deny",
        ),
        pytest.param(
            Setup(read_deny=("..",)),
            WRITE,
            "src/a.py",
            Reason.READ_DENIED_HENCE_NO_WRITE,
            id="writable-root-inside-a-read-deny",
        ),
        pytest.param(
            Setup(read_deny=("../outside",), read_allow=("out",)),
            READ,
            "out/file",
            Reason.DENIED_READ,
            id="planted-re-allow",
        ),
        pytest.param(
            Setup(read_deny=("policy:secret",), read_allow=("secret/pub",)),
            READ,
            "secret/pub/x",
            Reason.DENIED_READ,
            id="policy-deny-stands",
        ),
        pytest.param(
            Setup(read_deny=("policy:secret",), read_allow=("policy:secret/pub",)),
            READ,
            "secret/pub/x",
            Reason.REALLOWED,
            id="policy-opens-its-own-deny",
        ),
        pytest.param(
            Setup(read_deny=("policy:secret", "secret/pub"), read_allow=("policy:secret/pub",)),
            READ,
            "secret/pub/x",
            Reason.DENIED_READ,
            id="a-user-may-still-deny",
        ),
        pytest.param(
            Setup(write_deny=(escaped("odd *[name\\"),)),
            WRITE,
            "odd *[name\\/x",
            Reason.DENIED_WRITE,
            id="names-that-look-like-patterns",
        ),
        pytest.param(Setup(write_deny=("a\nb",)), WRITE, "a\nb", Reason.DENIED_WRITE, id="newline"),
        pytest.param(Setup(write_deny=("\udcff",)), WRITE, "\udcff", Reason.DENIED_WRITE, id="not-utf-8"),
        pytest.param(
            Setup(write_deny=("é",)), WRITE, "\udcc3\udca9", Reason.DENIED_WRITE, id="another-spelling-of-a-name"
        ),
    ],
)
def test_verdicts(top: Path, setup: Setup, access: Access, path: str, reason: Reason) -> None:
    verdict = judge(setup.rules(top), access, path, DISK)
    allowed = reason in (Reason.OPEN, Reason.REALLOWED, Reason.IN_WRITABLE_ROOT)
    assert (verdict.reason, verdict.allowed, verdict.access) == (reason, allowed, access)
    assert bool(verdict.remedy) is not allowed


def test_a_verdict_tells_everything(top: Path) -> None:
    rules = Setup(write_deny=("in",)).rules(top)
    assert judge(rules, WRITE, "./in/a.py", DISK) == FileVerdict(
        allowed=False,
        access=WRITE,
        path=f"{top}/w/in/a.py",
        place=f"{top}/w/src/a.py",
        reason=Reason.DENIED_WRITE,
        rule=rules.write_deny[0],
        remedy='remove "in" from sandbox.filesystem.denyWrite in settings.json',
    )


@pytest.mark.parametrize(
    ("setup", "access", "path", "line"),
    [
        pytest.param(PLAIN, READ, "/x", 'may read "/x": open to reading', id="open"),
        pytest.param(
            PLAIN,
            WRITE,
            "/x y",
            'may not write "/x y": outside every writable place; '
            "add \"/x y\" to sandbox.filesystem.allowWrite, or run: stockade allow '/x y'",
            id="outside",
        ),
        pytest.param(
            PLAIN,
            WRITE,
            "/x/.zshrc",
            'may not write "/x/.zshrc": outside every writable place; '
            "cannot be allowed by allowWrite: .zshrc is protected because a shell on the host runs it at its start",
            id="never-proposed",
        ),
        pytest.param(
            Setup(read_deny=("policy:/x",)),
            READ,
            "/x/\x1b",
            'may not read "/x/\\x1b": reading is denied by "/x" of managed.json (policy); '
            "only the administrator can allow it (managed.json)",
            id="policy",
        ),
        pytest.param(
            Setup(read_deny=("/x",)),
            WRITE,
            "/x/y",
            'may not write "/x/y": reading is denied, hence writing too by "/x" of settings.json (user); '
            'add "/x/y" to sandbox.filesystem.allowRead',
            id="read-deny",
        ),
    ],
)
def test_a_verdict_is_one_line(top: Path, setup: Setup, access: Access, path: str, line: str) -> None:
    assert str(judge(setup.rules(top), access, path, DISK)) == line


def test_a_protected_verdict_names_what_protects(top: Path) -> None:
    verdict = judge(PLAIN.rules(top), WRITE, ".git/config", DISK)
    assert (verdict.protected_name, verdict.rule) == (".git/config", None)
    assert verdict.remedy.startswith('add ".git/config" to sandbox.filesystem.allowProtected, or run with ')


@pytest.mark.parametrize("path", [pytest.param("", id="empty"), pytest.param("a\0", id="nul")])
def test_what_is_no_path_is_our_own_error(top: Path, path: str) -> None:
    with pytest.raises(InvalidTextError):
        judge(PLAIN.rules(top), READ, path, DISK)


class Tree:
    """A disk in memory: ``None`` is a file, a text the target of a link; what is above an entry is a directory."""

    def __init__(self, entries: Mapping[str, str | None]) -> None:
        self._links = {path: target for path, target in entries.items() if target is not None}
        self._files = {path for path, target in entries.items() if target is None}
        self._directories = {"/"}
        for path in entries:
            parts = path.split("/")[1:-1]
            self._directories |= {"/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))}
        self._links = {path: target for path, target in self._links.items() if path not in self._directories}
        self._files -= self._directories

    def link(self, path: str) -> str | None:
        return self._links.get(path)

    def exists(self, path: str) -> bool:
        return path in self._directories or path in self._files or path in self._links

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def names(self, path: str) -> tuple[str, ...]:
        start = path.rstrip("/") + "/"
        every = (*self._directories, *self._files, *self._links)
        if path not in self._directories:
            return ()
        return tuple(sorted({each[len(start) :].split("/")[0] for each in every if each.startswith(start)} - {""}))

    def text(self, _path: str) -> str | None:
        return None

    def config(self, _path: str) -> bytes | None:
        return None

    def gitlinks(self, _path: str, _hash_size: int) -> tuple[str, ...]:
        return ()


def test_a_deny_on_a_link_outlives_the_link() -> None:
    rules = FileRules(
        cwd="/w",
        home="/home",
        write_allow=(Sourced(PathPattern.literal("/w"), USER),),
        write_deny=(Sourced(PathPattern.literal("/w/link"), USER),),
        read_deny=(),
        read_allow=(),
        search_depth=3,
        allow_git_config=False,
    )
    ground = survey(rules, Tree({"/w/link": "a", "/w/a": None}))
    after = Tree({"/w/link": None, "/w/a": None})
    assert [ground.judge(WRITE, path, after).reason for path in ("link", "a")] == [Reason.DENIED_WRITE] * 2


# Few names, so that rules, links and questions meet.
NAMES = ("a", "b", "*", "w", ".git", "hooks", ".bashrc", "node_modules", "x y\n", "[\\", "\udcff")
names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=4).map(lambda some: "/" + "/".join(some))
targets = paths | st.lists(names | st.just(".."), min_size=1, max_size=3).map("/".join)
trees = st.dictionaries(paths, st.none() | targets, max_size=8).map(Tree)
questions = st.lists(names | st.sampled_from(["..", "."]), min_size=1, max_size=5).map("/".join)
asked = st.tuples(st.sampled_from(["", "/"]), questions).map("".join)
patterns = paths.map(PathPattern.literal) | st.lists(
    names.map(escaped) | st.sampled_from(["*", "**", "?", "[a-w]*"]), min_size=1, max_size=4
).map(lambda some: PathPattern.parse("/" + "/".join(some), cwd="/w", home="/home"))
sourced = st.builds(Sourced[PathPattern], patterns, st.sampled_from([USER, POLICY]))
lists = st.lists(sourced, max_size=2).map(tuple)
rule_sets = st.builds(
    FileRules, st.just("/w"), st.just("/home"), lists, lists, lists, lists, st.integers(1, 3), st.booleans()
)
accesses = st.sampled_from(list(Access))


def allowed(rules: FileRules, access: Access, path: str, tree: Tree) -> bool:
    return judge(rules, access, path, tree).allowed


@given(rule_sets, accesses, asked, trees, sourced, st.sampled_from(["write_deny", "read_deny"]))
def test_a_deny_never_loosens(
    rules: FileRules, access: Access, path: str, tree: Tree, deny: Sourced[PathPattern], field: str
) -> None:
    tighter = rules.but(**{field: (*getattr(rules, field), deny)})
    assert allowed(tighter, access, path, tree) <= allowed(rules, access, path, tree)


@given(rule_sets, accesses, asked, trees, sourced)
def test_a_read_allow_never_tightens(
    rules: FileRules, access: Access, path: str, tree: Tree, allow: Sourced[PathPattern]
) -> None:
    looser = rules.but(read_allow=(*rules.read_allow, allow))
    assert allowed(looser, access, path, tree) >= allowed(rules, access, path, tree)


@given(rule_sets, accesses, asked, trees, sourced)
def test_a_write_allow_tightens_only_by_what_it_protects_and_by_links_that_become_movable(
    rules: FileRules, access: Access, path: str, tree: Tree, allow: Sourced[PathPattern]
) -> None:
    looser = rules.but(write_allow=(allow, *rules.write_allow))
    before, after = survey(rules, tree), survey(looser, tree)
    assume((before.write_allow, before.read_allow) == (after.write_allow[1:], after.read_allow))
    verdict = after.judge(access, path, tree)
    if verdict.reason is not Reason.PROTECTED:
        assert verdict.allowed >= before.judge(access, path, tree).allowed


@given(rule_sets, asked, trees)
def test_what_can_be_written_can_be_read(rules: FileRules, path: str, tree: Tree) -> None:
    assert allowed(rules, WRITE, path, tree) <= allowed(rules, READ, path, tree)


@given(rule_sets, accesses, asked, trees)
def test_no_spelling_gains_anything_over_the_place(rules: FileRules, access: Access, path: str, tree: Tree) -> None:
    verdict = judge(rules, access, path, tree)
    if verdict.reason is not Reason.UNRESOLVABLE:
        assert verdict.allowed <= allowed(rules, access, verdict.place, tree)


@given(rule_sets, accesses, st.text(), trees)
def test_nothing_raises_but_our_own_errors(rules: FileRules, access: Access, path: str, tree: Tree) -> None:
    try:
        verdict = judge(rules, access, path, tree)
    except StockadeError:
        return
    assert str(verdict).isprintable()


@given(rule_sets, accesses, paths, trees)
def test_a_literal_deny_holds_for_every_name(rules: FileRules, access: Access, path: str, tree: Tree) -> None:
    field = "read_deny" if access is READ else "write_deny"
    denied = rules.but(read_allow=(), **{field: (Sourced(PathPattern.literal(path), USER),)})
    assert not allowed(denied, access, path, tree)
    assert not allowed(denied, access, f"{path}/below", tree)


@given(rule_sets, trees)
def test_a_ground_judges_as_the_function_does(rules: FileRules, tree: Tree) -> None:
    ground = survey(rules, tree)
    assert isinstance(ground, Ground)
    for path in ("/w/a", "/w/.git/hooks", "/a/b"):
        for access in Access:
            assert ground.judge(access, path, tree) == judge(rules, access, path, tree)


@given(trees, asked)
def test_the_tree_leads_somewhere(tree: Tree, path: str) -> None:
    trail = follow(f"/w/{path}", tree)
    assert trail.looped or tree.link(trail.place) is None
