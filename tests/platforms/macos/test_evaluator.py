from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.evaluator import Evaluator, Verdict
from stockade.policy.model import Sockets
from stockade.policy.path_pattern import PathPattern
from stockade.settings.layer import Layer, Origin, Sourced

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.platforms.macos.conftest import Case

W: Final = "/Users/ann/w"
H: Final = "/Users/ann"
ENTRIES: Final = {
    f"{W}/.git/hooks/pre-commit": None,
    f"{W}/.git/config": None,
    f"{W}/deep/repo/.git/hooks/x": None,
    f"{W}/keep/this": None,
    f"{W}/link": "target",
    f"{W}/target": None,
    f"{W}/.env": None,
    f"{H}/secret/public/key": None,
    f"{H}/.ssh/id_rsa": None,
    "/tmp": "private/tmp",
    "/private/tmp/out": "",
}
SOCKET: Final = Sourced(PathPattern.literal("/tmp/agent.sock"), Origin(Layer.USER))
NAMED: Final = {
    'q"uote': 'q"uote',
    "back\\slash": r"back\\slash",
    "line\nend": "line\nend",
    "st*ar": r"st\*ar",
    "br[a]cket": r"br\[a\]cket",
    "que?ry": r"que\?ry",
    "dol$lar": "dol$lar",
    "ca^ret": "ca^ret",
    "pi|pe": "pi|pe",
    "(par)": "(par)",
    "{cur}": r"\{cur\}",
    "pl+us": "pl+us",
    "do.t": "do.t",
    "sp ace": "sp ace",
    "semi;colon": "semi;colon",
    "#hash": "#hash",
    "caf\u00e9": "caf\u00e9",
    "\u65e5\u672c": "\u65e5\u672c",
    "\U0001f600": "\U0001f600",
    "\x1bescape": "\x1bescape",
    "\udcff": "\udcff",
}


@pytest.fixture(scope="module")
def walls(case: Callable[..., Case]) -> Evaluator:
    made = case(
        ENTRIES,
        write=[".", "/tmp/out", "~/logs/*.log"],
        deny=["keep", "link", "later", "gen/**/*.lock", *(f"deny/{text}" for text in NAMED.values())],
        hide=[
            "~/secret",
            "~/.ssh",
            "**/.env",
            "/etc/private",
            "~/re[s-u]?",
            *(f"~/hide/{t}/*x" for t in NAMED.values()),
        ],
        show=["~/secret/public", "~/.ssh/*.pub"],
        sockets=Sockets((SOCKET,), False, False, None, None),
        ports=(4000,),
        temporary="/private/var/folders/ab/T/tmp-1",
    )
    return Evaluator(made.profile.tagged("CMD64_MSBh_END_s"))


def _files(operation: str, allowed: bool, *paths: str) -> list[tuple[Attempt, bool]]:  # noqa: FBT001 - a column
    return [(Attempt(operation, path if path.startswith("/") else f"{W}/{path}"), allowed) for path in paths]


def _names(operation: str, allowed: bool, *names: str) -> list[tuple[Attempt, bool]]:  # noqa: FBT001 - a column
    return [(Attempt(operation, name=name), allowed) for name in names]


CASES: Final = [
    # Reading
    *_files("file-read-data", True, "a", "/etc/hosts", "/usr/lib/dyld", f"{H}/secret/public", f"{H}/secret/public/key"),
    *_files("file-read-data", True, f"{H}/.ssh/id_rsa.pub", f"{H}/secrets", f"{H}/.sshx", "a.env", f"{H}/rexy", "/"),
    *_files("file-read-data", False, f"{H}/secret", f"{H}/secret/x", f"{H}/secret/publicx", f"{H}/.ssh/id_rsa"),
    *_files("file-read-data", False, f"{H}/.ssh/a/b.pub", ".env", "a/b/.env", ".env/x", "/etc/private/a"),
    *_files("file-read-data", False, "/private/etc/private", f"{H}/rest", f"{H}/reu\u00e9", f"{H}/ret\U0001f600/a"),
    *_files("file-read-data", False, "/System/Volumes/Data/Users/ann/.ssh/id_rsa"),
    *_files("file-read-metadata", True, f"{H}/secret", "/etc/hosts"),
    *_files("file-read-metadata", False, f"{H}/secret/x", f"{H}/.ssh/id_rsa"),
    *_files("file-read-xattr", False, f"{H}/secret/x"),
    *_files("file-map-executable", True, "/usr/lib/x.dylib"),
    # Writing
    *_files("file-write-create", True, "a", "a/b", "/tmp/out/a", "/private/tmp/out/a", f"{H}/logs/a.log"),
    *_files("file-write-create", True, "/var/folders/ab/T/tmp-1/x", "/private/var/folders/ab/T/tmp-1/.bashrc"),
    *_files("file-write-create", False, f"{H}/a", "/etc/hosts", "/private/tmp/x", f"{H}/logs/a", f"{H}/logs/b/a.log"),
    *_files("file-write-data", False, "keep", "keep/this", "link", "target", "later", "LATER", "later/x", ".env"),
    *_files("file-write-data", False, "gen/x.lock", "gen/a/b/x.lock", "gen/a/x.lock/y"),
    *_files("file-write-data", True, "gen/x.lockx", "keeper", "lat", "targets", ".git/index", ".git/objects/ab/c"),
    # Protected names
    *_files("file-write-data", False, ".bashrc", ".BASHRC", "a/.zshrc", "a/b/c/d/e/.Profile", ".mcp.json", ".vscode/a"),
    *_files("file-write-data", False, ".git/hooks/pre-commit", ".Git/Hooks/x", "deep/repo/.git/hooks/x", ".git/CONFIG"),
    *_files("file-write-data", False, ".ba\u017fhrc", ".pro\ufb01le", ".git/hoo\u212as", ".idea/workspace.xml"),
    *_files("file-write-data", True, ".bashrc.bak", "bashrc", "x.bashrc", ".vscodex", "node_modules/p/.vscode/a"),
    # Removing and renaming
    *_files("file-write-unlink", False, W, ".git", "deep", "deep/repo", "deep/repo/.git", "keep", "link", ".claude"),
    *_files("file-write-unlink", True, "a", ".git/index.lock", "deep/repo/file", "/private/tmp/out/a"),
    # Services, facts about the machine, processes
    *_names(
        "mach-lookup", True, "com.apple.system.opendirectoryd.libinfo", "com.apple.logd", "com.apple.bsd.dirhelper"
    ),
    *_names("mach-lookup", False, "com.apple.coreservices.launchservicesd", "com.apple.lsd.mapdb", "com.apple.logdx"),
    *_names("mach-lookup", False, "com.apple.SecurityServer", "com.apple.trustd.agent", "com.apple.pasteboard.1"),
    *_names("mach-register", False, "com.example.server"),
    *_names("sysctl-read", True, "hw.ncpu", "kern.osrelease", "hw.optional.arm.FEAT_X", "kern.proc.pid.1"),
    *_names("sysctl-read", False, "kern.procargs2.1", "net.inet.tcp.stats", "hw.ncpux"),
    *_names("sysctl-write", False, "kern.hostname"),
    *_names("iokit-open", False, "IOHIDSystem"),
    (Attempt("process-exec", "/bin/sh"), True),
    (Attempt("process-fork"), True),
    (Attempt("signal", target="same-sandbox"), True),
    (Attempt("signal", target="others"), False),
    (Attempt("process-info-pidinfo", target="others"), False),
    (Attempt("ipc-posix-sem-create", name="x"), False),
    (Attempt("ipc-posix-sem", name="x"), True),
    (Attempt("ipc-posix-shm-write-create", name="x"), True),
    (Attempt("appleevent-send"), False),
    (Attempt("lsopen"), False),
    (Attempt("job-creation"), False),
    (Attempt("nvram-get"), False),
    (Attempt("system-privilege"), False),
    # Devices and terminals
    (Attempt("file-write-data", "/dev/null", "CHARACTER-DEVICE"), True),
    (Attempt("file-write-data", "/dev/null", "REGULAR-FILE"), False),
    (Attempt("file-write-data", "/dev/disk0", "BLOCK-DEVICE"), False),
    (Attempt("file-write-data", "/dev/ttys001", "CHARACTER-DEVICE"), True),
    (Attempt("file-ioctl", "/dev/ptmx", "CHARACTER-DEVICE"), True),
    (Attempt("file-write-data", "/dev/ttysX", "CHARACTER-DEVICE"), False),
    (Attempt("file-write-data", "/dev/fd/3"), True),
    (Attempt("file-write-data", "/dev/fd/3/x"), False),
    (Attempt("pseudo-tty"), True),
    # Network
    (Attempt("network-outbound", remote="127.0.0.1:4000"), True),
    (Attempt("network-outbound", remote="127.0.0.1:4001"), False),
    (Attempt("network-outbound", remote="192.0.2.1:443"), False),
    (Attempt("network-outbound", "/private/tmp/agent.sock"), True),
    (Attempt("network-outbound", "/private/var/run/docker.sock"), False),
    (Attempt("network-outbound", f"{W}/docker.sock"), False),
    (Attempt("network-bind", local="127.0.0.1:8000"), False),
    (Attempt("network-bind", "/private/var/folders/ab/T/tmp-1/s"), True),
]


def test_there_are_enough_cases() -> None:
    assert len(CASES) > 100


@pytest.mark.parametrize(
    ("attempt", "allowed"),
    [
        pytest.param(*one, id=f"{at}-{one[0].operation}-{(one[0].path or one[0].name or one[0].remote).encode()!a}")
        for at, one in enumerate(CASES)
    ],
)
def test_verdicts(walls: Evaluator, attempt: Attempt, allowed: bool) -> None:  # noqa: FBT001 - a column of the table
    verdict = walls.judge(attempt)
    assert verdict.allowed == allowed, verdict
    assert walls.allows(attempt) == allowed
    assert verdict.message == ("" if allowed else "CMD64_MSBh_END_s")


@pytest.mark.parametrize("name", [pytest.param(name, id=ascii(name)) for name in NAMED])
def test_every_name_is_a_name(walls: Evaluator, name: str) -> None:
    for path in (f"{W}/deny/{name}", f"{W}/deny/{name}/below"):
        assert not walls.allows_file("file-write-create", path)
    for path in (f"{W}/deny2/{name}", f"{W}/other", f"{W}/{name}"):
        assert walls.allows_file("file-write-create", path)
    assert not walls.allows_file("file-read-data", f"{H}/hide/{name}/x")
    assert not walls.allows_file("file-read-data", f"{H}/hide/{name}/ax/b")
    assert walls.allows_file("file-read-data", f"{H}/hide/{name}/xa")
    assert walls.allows_file("file-read-data", f"{H}/hide/{name}")


@pytest.mark.parametrize(
    ("profile", "verdict"),
    [
        pytest.param("(deny default)", Verdict(False, "(deny default)"), id="default"),
        pytest.param("(allow default)", Verdict(True, "(allow default)"), id="open"),
        pytest.param(
            "(allow file-read-data)(deny default)", Verdict(True, "(allow file-read-data)"), id="default-comes-first"
        ),
        pytest.param(
            '(deny default)(allow file-read*)(deny file-read* (subpath "/a") (with message "m"))',
            Verdict(False, '(deny file-read* (subpath "/a") (with message "m"))', "m", '(subpath "/a")'),
            id="last-match",
        ),
        pytest.param(
            '(deny default)(deny file-read* (subpath "/a"))(allow file-read*)',
            Verdict(True, "(allow file-read*)"),
            id="last-match-the-other-way",
        ),
        pytest.param(
            "(deny default)(allow file-read-metadata file-write*)",
            Verdict(False, "(deny default)"),
            id="other-operations",
        ),
        pytest.param(
            '(version 1)(debug deny)(deny default)(allow file-write* file-read* (literal "/x") (literal "/a/b"))',
            Verdict(True, '(allow file-write* file-read* (literal "/x") (literal "/a/b"))', filter='(literal "/a/b")'),
            id="alternatives",
        ),
        pytest.param(
            "(deny default)(deny file* (with no-log))", Verdict(False, "(deny file* (with no-log))"), id="modifier"
        ),
    ],
)
def test_which_rule_decides(profile: str, verdict: Verdict) -> None:
    assert Evaluator(profile).judge(Attempt("file-read-data", "/a/b")) == verdict


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        pytest.param("", "the profile does not say what happens by default", id="no-default"),
        pytest.param("allow", '"allow" is no rule', id="a-word"),
        pytest.param("(permit x)", '"(permit x)" is no rule', id="another-action"),
        pytest.param("(allow)", '"(allow)" is no rule', id="no-operation"),
        pytest.param('(allow (literal "/"))', r'"(allow (literal \"/\"))" is no rule', id="only-a-filter"),
        pytest.param("(allow x ())", '"(allow x ())" is no rule', id="an-empty-filter"),
        pytest.param("(allow x (with y))", '"(with y)" is no modifier that is known here', id="modifier"),
    ],
)
def test_what_is_no_profile(profile: str, message: str) -> None:
    with pytest.raises(InvalidTextError) as caught:
        Evaluator(profile)
    assert caught.value.message == message


def test_renaming_takes_away_and_makes() -> None:
    walls = Evaluator('(deny default)(allow file-write* (subpath "/w"))(deny file-write-unlink (literal "/w/a"))')
    assert walls.allows_rename("/w/b", "/w/c")
    assert not walls.allows_rename("/w/a", "/w/c")
    assert not walls.allows_rename("/w/b", "/c")


@given(st.lists(st.sampled_from(["(", ")", "allow", "deny", "default", " ", '"/a"', "subpath", "file-read*", "with"])))
def test_nothing_else_is_raised(pieces: list[str]) -> None:
    with suppress(InvalidTextError):
        Evaluator(" ".join(pieces))
