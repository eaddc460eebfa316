"""Every write that the walls refuse is told once, with the operation, the real path and what would allow it.

Each row runs in a directory of its own in the project, beside one outside. ``{out}`` is the latter; ``here`` is the
working directory. What is told is compared whole: a row that tells too much or too little fails.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from stockade.violations.violation import Operation

if TYPE_CHECKING:
    from pathlib import Path

    from stockade.sandbox.blocking import BlockingSandbox

W, C, D, R, M = Operation.WRITE, Operation.CREATE, Operation.DELETE, Operation.RENAME, Operation.METADATA

PYTHON = "python3 -c 'import os, socket, threading, shutil; {}'"
STATIC = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", words[2], words[3]);
    if (!strcmp(words[1], "open")) return open(path, O_WRONLY) < 0;
    if (!strcmp(words[1], "mkdir")) return mkdir(path, 0755) < 0;
    if (!strcmp(words[1], "fork")) return fork() ? sleep(1) : unlink(path) < 0;
    return 9;
}
"""

#: Name, line, operation, the path below the place outside, and whether the remedy is tried.
REFUSED: list[tuple[str, str, Operation, str]] = [
    ("shell >", "echo x > {out}/victim", W, "victim"),
    ("shell > new", "echo x > {out}/new", C, "new"),
    ("shell >>", "echo x >> {out}/victim", W, "victim"),
    ("shell <>", ": <> {out}/victim", W, "victim"),
    ("shell >|", ": >| {out}/new", C, "new"),
    ("shell exec", "exec 5> {out}/new", C, "new"),
    ("shell here document", "cat > {out}/new <<< text", C, "new"),
    ("shell subshell", "(cd {out} && (echo x > new))", C, "new"),
    ("shell background", "(echo x > {out}/new) & wait", C, "new"),
    ("tee", "echo x | tee {out}/new", C, "new"),
    ("touch new", "touch {out}/new", C, "new"),
    ("touch", "touch {out}/victim", W, "victim"),
    ("touch -h", "touch -h {out}/link", M, "link"),
    ("mkdir", "mkdir {out}/new", C, "new"),
    ("mkdir -p", "mkdir -p {out}/new/deeper", C, "new"),
    ("rm", "rm {out}/victim", D, "victim"),
    ("rm -f", "rm -f {out}/victim", D, "victim"),
    ("rm -r", "rm -r {out}/folder", D, "folder/kept"),
    ("rmdir", "rmdir {out}/empty", D, "empty"),
    ("unlink", "unlink {out}/link", D, "link"),
    ("mv within", "mv {out}/victim {out}/new", R, "victim"),
    ("mv out of", "mv {out}/victim moved", R, "victim"),
    ("mv into", "mv mine {out}/new", R, "new"),
    ("mv a directory", "mv {out}/folder {out}/new", R, "folder"),
    ("ln -s", "ln -s /etc/passwd {out}/new", C, "new"),
    ("ln", "ln {out}/victim {out}/new", C, "new"),
    ("cp new", "cp mine {out}/new", C, "new"),
    ("cp over", "cp mine {out}/victim", W, "victim"),
    ("cp -r", "cp -r folder {out}/new", C, "new"),
    ("install", "install mine {out}/new", C, "new"),
    ("chmod", "chmod 600 {out}/victim", M, "victim"),
    ("chown", 'chown "$(id -u)" {out}/victim', M, "victim"),
    ("truncate", "truncate -s 3 {out}/victim", W, "victim"),
    ("dd", "dd if=/dev/zero of={out}/new bs=1 count=1", C, "new"),
    (
        "sed -i",
        "cd {out} && python3 -c 'import os; os.open(\"seddy\", os.O_CREAT | os.O_EXCL | os.O_RDWR)'",
        C,
        "seddy",
    ),
    ("mkfifo", "mkfifo {out}/new", C, "new"),
    ("tar", "tar -cf {out}/new.tar mine", C, "new.tar"),
    ("gzip", "gzip -c mine > {out}/new.gz", C, "new.gz"),
    ("relative", "cd {out} && echo x > ./folder/../victim", W, "victim"),
    ("up and down", "cd {out}/folder && echo x > ../victim", W, "victim"),
    ("slashes", "echo x > {out}//.//victim", W, "victim"),
    ("/proc/self/cwd", "cd {out} && echo x > /proc/self/cwd/new", C, "new"),
    ("/proc/thread-self", "cd {out} && echo x > /proc/thread-self/cwd/new", C, "new"),
    ("/proc/self/root", "echo x > /proc/self/root{out}/new", C, "new"),
    ("/proc/self/fd directory", "exec 5< {out}; echo x > /proc/self/fd/5/new", C, "new"),
    ("/dev/fd directory", "exec 5< {out}; echo x > /dev/fd/5/victim", W, "victim"),
    ("/proc/self/fd file", "exec 5< {out}/victim; echo x > /proc/self/fd/5", W, "victim"),
    ("by a link to a directory", "echo x > door/new", C, "new"),
    ("by a link to a file", "ln -s {out}/victim l; echo x > l", W, "victim"),
    ("by a link to nothing", "ln -s {out}/new l; echo x > l", C, "new"),
    ("by two links", "ln -s door two; echo x > two/victim", W, "victim"),
    ("python open", PYTHON.format('open("{out}/new", "w")'), C, "new"),
    ("python dirfd", PYTHON.format('os.open("new", os.O_CREAT, 0o644, dir_fd=os.open("{out}", 0))'), C, "new"),
    ("python O_TMPFILE", PYTHON.format('os.open("{out}", os.O_TMPFILE | os.O_RDWR)'), W, ""),
    ("python mkdir dirfd", PYTHON.format('os.mkdir("new", dir_fd=os.open("{out}", 0))'), C, "new"),
    ("python unlink dirfd", PYTHON.format('os.unlink("victim", dir_fd=os.open("{out}", 0))'), D, "victim"),
    (
        "python rename dirfds",
        PYTHON.format('f = os.open("{out}", 0); os.rename("victim", "v", src_dir_fd=f, dst_dir_fd=f)'),
        R,
        "victim",
    ),
    ("python replace into", PYTHON.format('os.replace("mine", "{out}/victim")'), R, "victim"),
    ("python fchmod", PYTHON.format('os.fchmod(os.open("{out}/victim", 0), 0o600)'), M, "victim"),
    ("python fchown", PYTHON.format('os.fchown(os.open("{out}/victim", 0), -1, -1)'), M, "victim"),
    ("python futimens", PYTHON.format('os.utime(os.open("{out}/victim", 0))'), M, "victim"),
    ("python utime", PYTHON.format('os.utime("{out}/victim", (1, 1))'), M, "victim"),
    ("python lchown", PYTHON.format('os.lchown("{out}/link", -1, -1)'), M, "link"),
    ("python setxattr", PYTHON.format('os.setxattr("{out}/victim", "user.x", b"1")'), M, "victim"),
    ("python truncate", PYTHON.format('os.truncate("{out}/victim", 0)'), W, "victim"),
    ("python symlink", PYTHON.format('os.symlink("x", "{out}/new")'), C, "new"),
    ("python mknod", PYTHON.format('os.mknod("{out}/new")'), C, "new"),
    ("python bind", PYTHON.format('socket.socket(socket.AF_UNIX).bind("{out}/new")'), C, "new"),
    (
        "python thread",
        PYTHON.format('t = threading.Thread(target=open, args=("{out}/new", "w")); t.start(); t.join()'),
        C,
        "new",
    ),
    ("python child", PYTHON.format('os.fork() or open("{out}/new", "w"); os.wait()'), C, "new"),
    ("python chdir", PYTHON.format('os.chdir("{out}"); os.mkdir("new")'), C, "new"),
    ("python fchdir", PYTHON.format('os.fchdir(os.open("{out}", 0)); os.rmdir("empty")'), D, "empty"),
    ("odd name", "echo x > '{out}/a *[b]\\c'", C, "a *[b]\\c"),
    ("node", 'node -e \'require("fs").writeFileSync("{out}/new", "x")\'', C, "new"),
    ("node mkdir", 'node -e \'require("fs").mkdirSync("{out}/new")\'', C, "new"),
    ("git", "git init -q {out}/folder/repository", C, "folder/repository"),
    ("static open", "./static open {out} victim", W, "victim"),
    ("static mkdir", "./static mkdir {out} new", C, "new"),
    ("static child", "./static fork {out} victim", D, "victim"),
]

ALLOWED: dict[str, str] = {
    "write": "echo x > new",
    "append": "echo x >> mine",
    "truncate": ": > mine",
    "create exclusively": "set -C; echo x > new",
    "mkdir": "mkdir new",
    "mkdir -p": "mkdir -p a/b/c/d",
    "mkdir -p twice": "mkdir -p a/b; mkdir -p a/b",
    "mkdir that exists outside": "mkdir {out}/folder",
    "mkdir -p that exists outside": "mkdir -p {out}/folder",
    "rmdir": "mkdir d; rmdir d",
    "rm": "rm mine",
    "rm -rf": "rm -rf folder",
    "rm -f missing": "rm -f missing",
    "rm missing outside": "rm {out}/missing",
    "rm -f missing outside": "rm -f {out}/missing",
    "python unlink missing outside": PYTHON.format('os.unlink("{out}/missing")'),
    "python rmdir missing outside": PYTHON.format('os.rmdir("{out}/missing")'),
    "python rename missing outside": PYTHON.format('os.rename("{out}/missing", "{out}/m")'),
    "mv": "mv mine yours",
    "mv over": "echo > yours; mv mine yours",
    "mv to a directory": "mkdir d; mv mine d",
    "mv a directory": "mv folder other",
    "ln": "ln mine second",
    "ln -s": "ln -s mine second",
    "ln -s to outside": "ln -s {out}/victim second",
    "ln -sf": "ln -sf a l; ln -sf b l",
    "ln of outside": "ln {out}/victim second",
    "remove a link to outside": "rm door",
    "rename a link to outside": "mv door gate",
    "cp": "cp mine copy",
    "cp from outside": "cp {out}/victim copy",
    "cp -a": "cp -a folder copy",
    "cp -r from outside": "cp -r {out}/folder copy",
    "install": "install -m 600 mine copy",
    "chmod": "chmod 600 mine",
    "chmod and write": "chmod 400 mine; chmod 600 mine; echo x > mine",
    "chmod -R": "chmod -R u+w .",
    "chown": 'chown "$(id -u)" mine',
    "touch": "touch mine",
    "touch new": "touch new",
    "touch -h": "ln -s x l; touch -h l",
    "touch -d": "touch -d '2001-01-01' mine",
    "truncate -s": "truncate -s 100 mine",
    "dd": "dd if=/dev/zero of=new bs=1 count=1",
    "mkfifo": "mkfifo pipe",
    "sed -i": "sed -i s/m/n/ mine",
    "tar": "tar -cf new.tar mine folder; mkdir t; tar -C t -xf new.tar",
    "gzip": "gzip mine",
    "split": "split -b 1 mine",
    "sort -o": "sort -o mine mine",
    "tee": "echo x | tee new",
    "patch by cat": "cat mine mine > new",
    "/dev/null": "echo x > /dev/null",
    "/dev/null append": "echo x >> /dev/null",
    "/dev/null both": "ls > /dev/null 2>&1",
    "/dev/stdout": "echo x > /dev/stdout",
    "/dev/stdout append": "echo x >> /dev/stdout",
    "/dev/stderr": "echo x > /dev/stderr",
    "/dev/fd": "echo x > /dev/fd/1",
    "/dev/fd of a file": "exec 5> new; echo x > /dev/fd/5",
    "/proc/self/fd": "exec 5> new; echo x > /proc/self/fd/5",
    "/dev/zero": ": < /dev/zero",
    "/dev/full": "echo x > /dev/full",
    "/dev/tty": "echo x > /dev/tty",
    "/dev/shm": "echo x > /dev/shm/mine && rm /dev/shm/mine",
    "tee /dev/stderr": "echo x | tee /dev/stderr",
    "TMPDIR": 'echo x > "$TMPDIR/x"',
    "TMPDIR mkdir": 'mkdir -p "$TMPDIR/a/b" && rm -r "$TMPDIR/a"',
    "mktemp": "mktemp; mktemp -d",
    "process substitution": "cat <(echo x) > new",
    "output process substitution": "echo x > >(cat)",
    "here document": "cat <<< text",
    "missing directory outside": "echo x > {out}/missing/new",
    "missing directory": "echo x > missing/new",
    "open missing for writing": PYTHON.format('os.open("{out}/missing", os.O_WRONLY)'),
    "exclusively what exists outside": PYTHON.format('os.open("{out}/victim", os.O_CREAT | os.O_EXCL | os.O_WRONLY)'),
    "symlink that exists outside": PYTHON.format('os.symlink("x", "{out}/victim")'),
    "write a directory": "echo x > folder",
    "write a directory outside": "echo x > {out}/folder",
    "file as a directory outside": "echo x > {out}/victim/new",
    "nofollow a link outside": PYTHON.format('os.open("{out}/link", os.O_WRONLY | os.O_NOFOLLOW)'),
    "read outside": "cat {out}/victim",
    "read with O_CREAT outside": PYTHON.format('os.open("{out}/victim", os.O_RDONLY | os.O_CREAT)'),
    "O_PATH outside": PYTHON.format('os.open("{out}/victim", os.O_PATH | os.O_RDWR)'),
    "list outside": "ls -la {out}",
    "find outside": "find {out} -newer mine",
    "execute outside": "sh {out}/victim",
    "stat outside": "stat {out}/victim",
    "a too long name": "echo x > $(printf '%0300d' 0)",
    "links in a circle": "ln -s b a; ln -s a b; echo x > a",
    "an empty name": "echo x > ''",
    "python tempfile": PYTHON.format("import tempfile; tempfile.TemporaryFile(); tempfile.mkdtemp()"),
    "python O_TMPFILE": PYTHON.format('os.open(".", os.O_TMPFILE | os.O_RDWR)'),
    "python sqlite": 'python3 -c \'import sqlite3; d = sqlite3.connect("d"); d.execute("create table t (a)")\'',
    "python shutil": PYTHON.format('shutil.copytree("folder", "copy"); shutil.rmtree("copy")'),
    "python utime": PYTHON.format('os.utime("mine", (1, 1))'),
    "python fchmod of a pipe": PYTHON.format("os.fchmod(os.pipe()[0], 0o600)"),
    "python setxattr": PYTHON.format('os.setxattr("mine", "user.x", b"1")'),
    "python bind": PYTHON.format('socket.socket(socket.AF_UNIX).bind("s")'),
    "python bind outside that exists": PYTHON.format('socket.socket(socket.AF_UNIX).bind("{out}/victim")'),
    "python dirfd": PYTHON.format('os.open("new", os.O_CREAT, dir_fd=os.open(".", 0))'),
    "python bad descriptor": PYTHON.format("os.fchmod(99, 0o600)"),
    "python threads": PYTHON.format('[threading.Thread(target=open, args=(str(n), "w")).start() for n in range(20)]'),
    "python link of what is missing": PYTHON.format('os.link("missing", "{out}/new")'),
    "python truncate of a folder": PYTHON.format('os.truncate("{out}/folder", 0)'),
    "a file by the name of a folder": PYTHON.format('os.open("{out}/new/", os.O_CREAT | os.O_WRONLY)'),
    "node": 'node -e \'require("fs").writeFileSync("new", "x")\'',
    "git": "mkdir g && cd g && git init -q . && git config user.email a@b; true",
    "static": "./static mkdir . new",
    "cd up": "mkdir -p a; cd a; echo x > ../new",
    "cd removed": "mkdir a; cd a; rmdir ../a; echo x > new",
    "/proc/self/cwd": "echo x > /proc/self/cwd/new",
    "/proc/self/root": 'echo x > "/proc/self/root$PWD/new"',
}

ORDINARY = {  # what ordinary permissions refuse, told only to whoever they bind
    "write /etc": "echo x > /etc/passwd",
    "create in /etc": "touch /etc/new",
    "remove /etc/passwd": "rm -f /etc/passwd",
    "chmod /etc/passwd": "chmod 600 /etc/passwd",
    "mkdir /": "mkdir /new",
    "rename /etc": "mv /etc /etc2",
    "write /sys": "echo x > /sys/kernel/uevent_helper",
    "write /proc/sys": "echo x > /proc/sys/kernel/hostname",
}


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program without the C library's shared parts."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "static.c").write_text(STATIC)
    subprocess.run(["gcc", "-static", "-o", "static", "static.c"], cwd=folder, check=True, timeout=60)
    return folder / "static"


class Arena:
    """Places for many rows, in one sandbox."""

    def __init__(self, ground: Any, static: Path) -> None:
        self.ground = ground
        self.static = static
        self.sandbox: BlockingSandbox = ground.sandbox(observe="on")
        self.count = 0

    def furnish(self) -> tuple[Path, Path]:
        self.count += 1
        here, out = (folder / f"{self.count:03}" for folder in (self.ground.project, self.ground.outside))
        for folder in (here, out):
            (folder / "folder").mkdir(parents=True)
            (folder / "folder" / "kept").write_text("kept")
        (here / "mine").write_text("mine")
        (here / "door").symlink_to(out)
        (out / "victim").write_text("unchanged")
        (out / "empty").mkdir()
        (out / "link").symlink_to("victim")
        shutil.copy(self.static, here)
        return here, out


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, static: Path, make_ground: Any) -> Arena:
    return Arena(make_ground(tmp_path_factory.mktemp("observed").resolve()), static)


@pytest.mark.parametrize(("line", "operation", "path"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_each_refused_write_is_told_once(arena: Arena, line: str, operation: Operation, path: str) -> None:
    here, out = arena.furnish()
    done = arena.sandbox.run(line.replace("{out}", str(out)), cwd=str(here), timeout=60)
    place = str(out / path)
    opened = place if operation in {W, M} or not path else str((out / path).parent)
    told = [(each.operation, each.target, each.rule, each.times) for each in done.violations]
    assert told == [(operation, place.replace("\\", "\\\\"), "", 1)], done.stderr
    assert done.violations[0].why == "outside every writable place"
    assert done.violations[0].remedy.startswith(f'add "{opened}" to sandbox.filesystem.allowWrite')


SAMPLE = (
    "shell >",
    "shell > new",
    "touch",
    "mkdir",
    "rm",
    "rmdir",
    "mv within",
    "chmod",
    "truncate",
    "ln -s",
    "python bind",
    "node",
)


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in REFUSED if row[0] in SAMPLE])
def test_what_the_remedy_says_makes_the_same_line_pass(arena: Arena, row: tuple[str, str, Operation, str]) -> None:
    _, line, _, _ = row
    here, out = arena.furnish()
    line = line.replace("{out}", str(out))
    refused = arena.sandbox.run(line, cwd=str(here), timeout=60)
    assert not refused.ok
    (violation,) = refused.violations
    setting = violation.remedy.partition('"')[2].partition('"')[0]
    allowed = arena.ground.sandbox(filesystem__allowWrite=(str(arena.ground.project), setting))
    done = allowed.run(line, cwd=str(here), timeout=60)
    assert (done.exit_code, done.violations) == (0, ()), done.stderr
    allowed.close()


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in ALLOWED.items()])
def test_what_the_walls_do_not_refuse_is_not_told(arena: Arena, line: str) -> None:
    here, out = arena.furnish()
    done = arena.sandbox.run(line.replace("{out}", str(out)), cwd=str(here), timeout=60)
    assert [violation.text() for violation in done.violations] == []


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in ORDINARY.items()])
def test_what_ordinary_permissions_refuse_is_not_told(arena: Arena, line: str) -> None:
    import os

    here, _ = arena.furnish()
    done = arena.sandbox.run(line, cwd=str(here), timeout=60)
    assert done.exit_code
    assert len(done.violations) == (1 if os.geteuid() == 0 else 0), [each.text() for each in done.violations]


def test_protected_and_denied_places_are_told_with_their_rule(ground: Any) -> None:
    (ground.project / "closed").write_text("x")
    (ground.project / "hidden").write_text("x")
    (ground.project / "secret").mkdir()
    (ground.project / "repository" / ".git" / "hooks").mkdir(parents=True)
    (ground.project / "repository" / ".git" / "HEAD").write_text("ref: refs/heads/main")
    sandbox = ground.sandbox(
        filesystem__allowWrite=(str(ground.project),),
        filesystem__denyWrite=(str(ground.project / "closed"),),
        filesystem__denyRead=(str(ground.project / "secret"), str(ground.project / "hidden")),
    )
    hidden = ("hidden", str(ground.project / "hidden"), "reading is denied, hence writing too")
    rows = {
        "echo x > hidden": (W, *hidden),
        "echo x >> hidden": (W, *hidden),
        "truncate -s 0 hidden": (W, *hidden),
        "chmod 600 hidden": (M, *hidden),
        "rm -f hidden": (D, *hidden),
        "echo x > closed": (W, "closed", str(ground.project / "closed"), "writing is denied"),
        "rm closed": (D, "closed", str(ground.project / "closed"), "writing is denied"),
        "mv closed other": (R, "closed", str(ground.project / "closed"), "writing is denied"),
        "echo x > secret/new": (
            C,
            "secret/new",
            str(ground.project / "secret"),
            "reading is denied, hence writing too",
        ),
        "rmdir secret": (D, "secret", str(ground.project / "secret"), "reading is denied, hence writing too"),
        "echo x > .mcp.json": (C, ".mcp.json", ".mcp.json", "always protected from writing"),
        "mkdir .vscode": (C, ".vscode", ".vscode", "always protected from writing"),
        "echo x > repository/.git/hooks/new": (
            C,
            "repository/.git/hooks/new",
            ".git/hooks",
            "always protected from writing",
        ),
        "mv repository other": (
            R,
            "repository",
            "",
            "it must stay where it is, because something protected lies in it",
        ),
    }
    told = {}
    for line in rows:
        done = sandbox.run(line, timeout=60)
        told[line] = [(each.operation, each.target, each.rule, each.why) for each in done.violations]
    expected = {line: [(what, str(ground.project / path), rule, why)] for line, (what, path, rule, why) in rows.items()}
    assert told == expected


LINKS = """
import errno, os
def chain(text, count):
    for number in range(count):
        end = str(number + 1) if number + 1 < count else "end"
        os.symlink(text + os.getcwd().lstrip("/") + "/" + end, "new")
        os.rename("new", str(number))
os.mkdir("end")
for text, links in (("../" * 1300, 38), ("/" + "dev/../" * 500, 38), ("/", 15)):
    chain(text, links)
    for call in (os.mkdir, lambda path: os.open(path, os.O_CREAT | os.O_WRONLY), os.rmdir,
                 lambda path: os.rename(path, "moved"), lambda path: os.chmod(path, 0o2755)):
        try:
            call("0/made")
            print("done", end=" ")
        except OSError as error:
            print(errno.errorcode[error.errno], end=" ")
    print(flush=True)
"""


def test_a_way_through_thousands_of_names_is_refused_as_the_kernel_refuses_too_many_links(ground: Any) -> None:
    with ground.sandbox() as sandbox:
        done = sandbox.run(["python3", "-c", LINKS])

    assert done.stdout.splitlines() == [b"ELOOP " * 5, b"ELOOP " * 5, b"done EISDIR done ENOENT ENOENT "], done.stderr
    assert done.violations == ()


def test_the_same_again_is_a_number_and_a_flood_is_bounded(ground: Any) -> None:
    sandbox = ground.sandbox()
    out = ground.outside
    many = 20_000
    script = f"import os\nfor n in range({many}):\n  try: os.mkdir('{out}/x')\n  except OSError: pass\n"
    done = sandbox.run(["python3", "-c", script], timeout=120)
    assert [(each.target, each.times) for each in done.violations] == [(f"{out}/x", many)]
    script = f"import os\nfor n in range({many}):\n  try: os.mkdir('{out}/%d' % n)\n  except OSError: pass\n"
    before = sandbox.violations.total
    done = sandbox.run(["python3", "-c", script], timeout=120)
    assert sandbox.violations.total - before == many
    assert len(done.violations) <= 100


def test_by_itself_the_observer_leaves_out_what_descriptors_change(ground: Any) -> None:
    (ground.outside / "victim").write_text("unchanged")
    line = f'import os; d = os.open("{ground.outside}/victim", 0); '
    calls = {
        "os.fchmod(d, 0o600)": 0,
        "os.fchown(d, -1, -1)": 0,
        "os.utime(d)": 0,
        f'os.chmod("{ground.outside}/victim", 0o600)': 1,
        f'os.utime("{ground.outside}/victim")': 1,
    }
    sandbox = ground.sandbox()
    for call, told in calls.items():
        done = sandbox.run(["python3", "-c", line + call], timeout=60)
        assert (done.ok, len(done.violations)) == (False, told)


def test_without_the_observer_nothing_is_told_and_all_is_refused(ground: Any) -> None:
    done = ground.sandbox(observe="off").run(f"echo x > {ground.outside}/new", timeout=60)
    assert (done.ok, done.violations) == (False, ())
