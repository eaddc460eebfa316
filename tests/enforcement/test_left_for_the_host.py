"""What commands left that programs of the host ran, as an attack found it: each row was a hole once.

Every row is made twice, as in ``test_inspection``: on the host, where the payload then runs (the control), and behind
walls. ``PREPARED`` is what the user had before.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.enforcement.test_inspection import FSMONITOR, World

if TYPE_CHECKING:
    from pathlib import Path

DEEP = "a/b/c/d/e/f"
HOOK = 'printf "#!/bin/sh\\n$PAYLOAD\\nexit 0\\n" >{0}; chmod +x {0}; '
FAR = f"git init -q --bare {DEEP}/far; " + HOOK.format(f"{DEEP}/far/hooks/pre-receive")
EVIL = f"repo {DEEP}; " + FSMONITOR.format(DEEP) + "; "
REMOTE = "repo sub; git -C sub remote add origin {0}; "
PUSH = "cd sub && git push origin HEAD"
PROMPT = 'bash --norc -ic \'. /usr/lib/git-core/git-sh-prompt; __git_ps1 "x" "y"; echo "${PS1@P}"\''
SUBMODULE = (
    "git init -q --bare $HOME/lib.git; git clone -q $HOME/lib.git $HOME/lib 2>/dev/null; "
    "git -C $HOME/lib commit -q --allow-empty -m l; git -C $HOME/lib push -q origin HEAD; "
    "git config --global protocol.file.allow always; "
    "git submodule --quiet add --name third/lib $HOME/lib.git third/lib; git commit -q -m sub; "
    "git submodule --quiet deinit -f third/lib; rm -rf .git/modules"
)
STORE = (
    "mkdir -p {1}; git clone -q --bare $HOME/lib.git {0}; mkdir -p {0}/hooks; "
    + HOOK.format("{0}/hooks/post-checkout")
    + "git --git-dir={0} config --unset core.bare; "
)
MAPPED_CONFIG = r"""
repo sub; python3 - <<'END'
import mmap, os, time
path = "sub/.git/config"
good = open(path, "rb").read()
evil = good + b'\tfsmonitor = "' + os.environ["PAYLOAD"].encode() + b'"\n'
open(path, "wb").write(good + b"#" * (len(evil) - len(good) - 1) + b"\n")
file = open(path, "r+b")
memory = mmap.mmap(file.fileno(), 0)
memory[0] = memory[0]  # the page is dirty from now on: no further store touches the ctime
time.sleep(3)
memory[:] = evil
END
"""
MAPPED_INDEX = (
    "git update-index --add --cacheinfo 100644,$(git hash-object -w /dev/null),zz; cp .git/index plain; "
    f"cp .git/index evil; {EVIL} GIT_INDEX_FILE=$PWD/evil git add {DEEP} 2>/dev/null; "
    r"""
python3 - <<'END'
import hashlib, mmap, time
evil, plain = open("evil", "rb").read(), open("plain", "rb").read()
more = len(evil) - len(plain) - 8
body = plain[:-20] + b"XXXX" + more.to_bytes(4, "big") + bytes(more)
open(".git/index", "wb").write(body + hashlib.sha1(body).digest())
file = open(".git/index", "r+b")
memory = mmap.mmap(file.fileno(), 0)
memory[0] = memory[0]
time.sleep(3)
memory[:] = evil
END
"""
)
FLOOD = (
    EVIL
    + r"""
cat >flood.py <<'END'
import subprocess, sys
head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
for name in (sys.argv[1], *(f"zz{number:06}" for number in range(10050))):
    print(f"160000 {head}\t{name}")
END
"""
    + f"python3 flood.py {DEEP} | git update-index --index-info"
)
#: A sparse index may name a directory whose tree holds a gitlink; git expands it as soon as the directory is there.
SPARSE = r"""
repo sub; cd sub; git config core.sparseCheckout true; git config core.sparseCheckoutCone true
git config index.sparse true; mkdir -p .git/info; printf "/*\\n!/*/\\n" >.git/info/sparse-checkout
tree=$(printf "160000 commit $(git rev-parse HEAD)\\tlink\\n" | git mktree --missing)
for name in c b a; do tree=$(printf "040000 tree $tree\\t$name\\n" | git mktree); done
top=$(printf "040000 tree $tree\\td\\n" | git mktree); git update-ref refs/heads/main $(git commit-tree $top -m z)
mkdir -p .git/dd/a/b/c; repo .git/dd/a/b/c/link
git --git-dir=.git/dd/a/b/c/link/.git config core.fsmonitor "$PAYLOAD"
python3 - $tree <<'END'
import hashlib, sys
entry = bytes(24) + (0o40000).to_bytes(4, "big") + bytes(12) + bytes.fromhex(sys.argv[1])
entry += (0x4002).to_bytes(2, "big") + (0x4000).to_bytes(2, "big") + b"d/"
entry += bytes(8 - len(entry) % 8)
body = b"DIRC" + (3).to_bytes(4, "big") + (1).to_bytes(4, "big") + entry + b"sdir" + bytes(4)
open(".git/index", "wb").write(body + hashlib.sha1(body).digest())
END
mv .git/dd d; cd ..; git add sub
"""
#: Git copies one byte more than an entry's name is long, and goes by what it then reads as a C string.
NO_NUL = (
    f"repo {DEEP}Z; {FSMONITOR.format(DEEP + 'Z')}; "
    r"""
python3 - $(git rev-parse HEAD) <<'END'
import hashlib, sys
name = b"a/b/c/d/e/f"
entry = bytes(24) + (0o160000).to_bytes(4, "big") + bytes(12) + bytes.fromhex(sys.argv[1])
entry += len(name).to_bytes(2, "big") + name
entry += b"Z" + bytes(7 - len(entry) % 8)
body = b"DIRC" + (2).to_bytes(4, "big") + (1).to_bytes(4, "big") + entry
open(".git/index", "wb").write(body + hashlib.sha1(body).digest())
END
"""
)
#: A look that raises sets nothing aside: each of these leads to the one above it.
CHAIN = r"""
repo sub; cp sub/.git/config config; git config --file config core.fsmonitor "$PAYLOAD"
python3 - <<'END'
import os
os.mkdir("zz")
os.chdir("zz")
top = path = os.getcwd()
for _ in range(700):
    os.makedirs("worktrees/a")
    os.chdir("worktrees/a")
    path += "/worktrees/a"
    open("HEAD", "w").write("ref: refs/heads/main\n")
    open("commondir", "w").write("../..\n")
open(f"{top}/.git", "w").write(f"gitdir: {path}\n")
END
mv config sub/.git/config
"""
EDIT = 'GIT_SEQUENCE_EDITOR="sed -i -e s/^pick/edit/" git rebase -q -i HEAD~1 2>/dev/null; '
HUSKY = "git config core.hooksPath .husky; mkdir .husky"

#: The name of an attack: what the user has, what the command does, what the user does then.
ATTACKS = {
    # The memo: a file is not read again while its ctime stays, and stores to a dirty mapped page leave the ctime.
    "a config, by mapped memory": ("", MAPPED_CONFIG, "cd sub && git status"),
    "an index, by mapped memory": ("", MAPPED_INDEX, "git status"),
    # Bounds that end a look in silence.
    "a gitlink before 10,000 others": ("", FLOOD, "git status"),
    "no name left to set a config aside": (
        "",
        f"repo sub; for i in $(seq 1 99); do : >sub/.git/config.stockade-$i; done; {FSMONITOR.format('sub')}",
        "cd sub && git status",
    ),
    "no name left to set a hook aside": (
        "",
        "repo sub; for i in $(seq 1 99); do : >sub/.git/hooks/pre-commit.stockade-$i; done; "
        + HOOK.format("sub/.git/hooks/pre-commit"),
        "cd sub && git commit --allow-empty -m y",
    ),
    "a gitlink whose name has no end": ("", NO_NUL, "git status"),
    "a look that raises": ("", CHAIN, "cd sub && git status; cd ..; rm -rf zz"),
    "a gitlink in the tree of a sparse directory": ("", SPARSE, "git status"),
    # A ``.git`` file that git reads in another way.
    "a .git file with two spaces": (
        "",
        (
            f'mkdir sub; cd sub; repo " /{DEEP}"; {FSMONITOR.format(chr(34) + " /" + DEEP + chr(34))}; '
            f'printf "gitdir:  /{DEEP}/.git\\n" >.git'
        ),
        "cd sub && git status",
    ),
    "a .git file relative to whoever asks": (
        "",
        (
            f"mkdir sub; repo sub/{DEEP}; {FSMONITOR.format('sub/' + DEEP)}; "
            f'echo "gitdir: /proc/self/cwd/{DEEP}/.git" >sub/.git'
        ),
        "cd sub && git status",
    ),
    **{
        f"a .git file relative to whoever asks, as {spelt}": (
            "ln -s $PWD $HOME/way",
            (
                f"mkdir sub; repo sub/{DEEP}; {FSMONITOR.format('sub/' + DEEP)}; cd sub; "
                f'echo "gitdir: {spelt}/{DEEP}/.git" >.git'
            ),
            "cd sub && git status",
        )
        for spelt in (
            "//proc/self/cwd",
            "/./proc/self/cwd",
            f"{'../' * 30}proc/self/cwd",
            "$HOME/way/sub",
        )
    },
    "a worktree of another repository of the user": (
        (
            "repo $HOME/other; cd $HOME/other; git config filter.f.clean 'sh tools/clean'; "
            "mkdir tools; echo cat >tools/clean; "
            "echo '* filter=f' >.gitattributes; git add -A; git commit -q -m y; git worktree add -q $HOME/tree"
        ),
        (
            'mkdir -p sub/tools; cd sub; echo "gitdir: $HOME/other/.git/worktrees/tree" >.git; '
            'echo "$PAYLOAD" >tools/clean; '
            "echo '* filter=f' >.gitattributes"
        ),
        "cd sub && git status",
    ),
    # A ``.git`` file that leads to the user's own repository: its relative paths mean files of the command then.
    "relative hooks of the user's repository": (
        HUSKY,
        'mkdir -p sub/.husky; echo "gitdir: ../.git" >sub/.git; ' + HOOK.format("sub/.husky/pre-commit"),
        "cd sub && git commit --allow-empty -m y",
    ),
    "a relative program of the user's repository": (
        "mkdir tools; echo '#!/bin/sh' >tools/fsm; chmod +x tools/fsm; git config core.fsmonitor tools/fsm",
        'mkdir -p sub/tools; echo "gitdir: ../.git" >sub/.git; ' + HOOK.format("sub/tools/fsm"),
        "cd sub && git status",
    ),
    "relative hooks in a worktree of the user's repository": (
        HUSKY,
        "git worktree add -q sub; mkdir sub/.husky; " + HOOK.format("sub/.husky/pre-commit"),
        "cd sub && git commit --allow-empty -m y",
    ),
    "relative hooks of the user's own config": (
        "git config --global core.hooksPath .githooks",
        "repo sub; mkdir sub/.githooks; " + HOOK.format("sub/.githooks/pre-commit"),
        "cd sub && git commit --allow-empty -m y",
    ),
    "a relative program of the user's own config": (
        "git config --global core.fsmonitor t/fsm",
        "repo sub; mkdir sub/t; " + HOOK.format("sub/t/fsm"),
        "cd sub && git status",
    ),
    # Remotes by path that the look does not find.
    "a remote, percent-encoded": ("", FAR + REMOTE.format('"file://$PWD/a/%62/c/d/e/f/far"'), PUSH),
    "a remote, file with a host": ("", FAR + REMOTE.format(f'"file://x$PWD/{DEEP}/far"'), PUSH),
    "a remote, down and up": ("", FAR + REMOTE.format(f'"$PWD/a/../{DEEP}/far"'), PUSH),
    "a remote through a link": ("", FAR + f"ln -s {DEEP} way; " + REMOTE.format('"$PWD/way/far"'), PUSH),
    "a remote without its .git": (
        "",
        FAR + f"mv {DEEP}/far {DEEP}/far.git; " + REMOTE.format(f'"$PWD/{DEEP}/far"'),
        PUSH,
    ),
    "a remote without a slash": (
        "",
        "repo sub; cd sub; git init -q --bare node_modules; "
        + HOOK.format("node_modules/hooks/pre-receive")
        + "git remote add origin node_modules",
        PUSH,
    ),
    "a remote relative to a linked worktree": (
        "",
        "repo x/y/sub; git init -q --bare tree2/n/m/o/p/far; "
        + HOOK.format("tree2/n/m/o/p/far/hooks/pre-receive")
        + "git -C x/y/sub worktree add -q ../../../tree; git -C x/y/sub remote add origin ../tree2/n/m/o/p/far",
        "cd tree && git push origin HEAD",
    ),
    "a remote relative to whoever asks": (
        "",
        f"repo sub; git init -q --bare sub/{DEEP}/far; "
        + HOOK.format(f"sub/{DEEP}/far/hooks/pre-receive")
        + f"git -C sub remote add origin /proc/self/cwd/{DEEP}/far",
        PUSH,
    ),
    **{
        f"a remote relative to whoever asks, as {spelt}": (
            "ln -s $PWD $HOME/way",
            f"repo sub; git init -q --bare sub/{DEEP}/far; "
            + HOOK.format(f"sub/{DEEP}/far/hooks/pre-receive")
            + f"git -C sub remote add origin {spelt}/{DEEP}/far",
            PUSH,
        )
        for spelt in ("//proc/self/cwd", "/./proc/self/cwd", "file:////proc/self/cwd", "$HOME/way/sub")
    },
    "a remote from a home": ("", FAR + REMOTE.format(f"'~/../project/{DEEP}/far'"), PUSH),
    "a remote of the old kind, in the root": (
        "",
        FAR + f'mkdir -p .git/remotes; echo "URL: $PWD/{DEEP}/far" >.git/remotes/origin',
        "git push origin HEAD",
    ),
    "a remote of the oldest kind, in the root": (
        "",
        FAR + f'mkdir -p .git/branches; echo "$PWD/{DEEP}/far" >.git/branches/origin',
        "git push origin HEAD",
    ),
    "a remote of the old kind": (
        "",
        FAR + f'repo sub; mkdir -p sub/.git/remotes; echo "URL: $PWD/{DEEP}/far" >sub/.git/remotes/origin',
        PUSH,
    ),
    # Stores of the user's submodules that are not checked out yet.
    "a module beside a HEAD that is none": (
        SUBMODULE,
        STORE.format(".git/modules/third/lib", ".git/modules/third")
        + "cd .git/modules/third; echo no >HEAD; mkdir objects refs",
        "git submodule update --init",
    ),
    "modules that are a link": (
        SUBMODULE,
        STORE.format(f"{DEEP}/third/lib", f"{DEEP}/third") + f"ln -s ../{DEEP} .git/modules",
        "git submodule update --init",
    ),
    "a module that is a link": (
        SUBMODULE,
        STORE.format(f"{DEEP}/lib", DEEP) + f"mkdir .git/modules; ln -s ../../{DEEP} .git/modules/third",
        "git submodule update --init",
    ),
    "a module with a long name": (
        SUBMODULE.replace("third/lib $", "a/b/c/d/e/f/g/h/i/j/lib $"),
        STORE.format(".git/modules/a/b/c/d/e/f/g/h/i/j/lib", ".git/modules/a/b/c/d/e/f/g/h/i/j"),
        "git submodule update --init",
    ),
    # The prompt that comes with git puts these texts into PS1, which bash expands.
    "the prompt, by a rebase": (
        "",
        (
            'mkdir .git/rebase-merge; echo "\\$($PAYLOAD)" >.git/rebase-merge/msgnum; echo 3 >.git/rebase-merge/end; '
            "echo refs/heads/main >.git/rebase-merge/head-name"
        ),
        PROMPT,
    ),
    "the prompt, by an am": (
        "",
        'mkdir .git/rebase-apply; echo 1 >.git/rebase-apply/next; echo "\\$($PAYLOAD)" >.git/rebase-apply/last',
        PROMPT,
    ),
    "the prompt below": (
        "",
        (
            "mkdir -p n/.git/rebase-apply n/.git/objects n/.git/refs; cd n/.git; echo ref: refs/heads/m >HEAD; "
            'echo 1 >rebase-apply/last; echo "\\$($PAYLOAD)" >rebase-apply/next'
        ),
        "cd n; " + PROMPT,
    ),
    # Names that are not searched.
    "a repository in Node_Modules": (
        "",
        "repo Node_Modules/x; " + FSMONITOR.format("Node_Modules/x"),
        "cd Node_Modules/x && git status",
    ),
    "a link to a repository far below": ("", EVIL + f"ln -s {DEEP} short", "cd short && git status"),
    "a link into a repository that is not searched": (
        "",
        "repo node_modules/x; mkdir node_modules/x/in; "
        + FSMONITOR.format("node_modules/x")
        + "; ln -s node_modules/x/in in",
        "cd in && git status",
    ),
    # Directories whose other entries were there: only the directory above is looked at.
    "agents in a .claude that was there": (
        "mkdir -p pkg/.claude; echo {} >pkg/.claude/settings.json",
        'mkdir pkg/.claude/agents; echo "$PAYLOAD" >pkg/.claude/agents/x.md',
        "sh pkg/.claude/agents/x.md",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_programs_of_the_host_run_nothing_that_a_command_left(tmp_path: Path, name: str) -> None:
    prepared, attack, trigger = ATTACKS[name]
    control, world = (World(tmp_path / kind) for kind in ("control", "world"))
    for each in (control, world):
        if prepared:
            each.host(prepared)
    control.host(attack)
    control.host(trigger, check=False)
    assert control.was_attacked(), "an attack that does not work outside proves nothing"

    world.run(attack)
    world.host(trigger, check=False)
    assert not world.was_attacked()


#: As above, for a user who is not root: modes of directories keep the look out, and git in.
AS_A_USER = {
    "a directory that cannot be listed": (
        "",
        (
            'mkdir pack; repo pack/x; cp pack/x/.git/config c; git config --file c core.fsmonitor "$PAYLOAD"; '
            "chmod 111 pack; mv c pack/x/.git/config"
        ),
        "cd pack/x && git status",
    ),
    "a repository in which nothing can be renamed": (
        "",
        (
            'repo sub; cp sub/.git/config c; git config --file c core.fsmonitor "$PAYLOAD"; cat c >sub/.git/config; '
            "chmod 555 sub/.git"
        ),
        "cd sub && git status",
    ),
}


@pytest.mark.parametrize("name", AS_A_USER)
def test_nor_what_the_modes_of_directories_hide(tmp_path: Path, name: str) -> None:
    _, attack, trigger = AS_A_USER[name]
    world = World(tmp_path / "world")
    world.run(attack)
    world.host(trigger, check=False)
    subprocess.run(["chmod", "-R", "u+rwX", str(world.project)], check=True)
    assert not world.was_attacked()


def test_a_small_index_takes_little_memory() -> None:
    code = """
import resource
from stockade.policy.git_index import GitIndexError, gitlinks
resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))
def entry(strip, name):
    known = bytes(24) + (0o160000).to_bytes(4, "big") + bytes(32)
    return known + b"\\x0f\\xff" + bytes([strip]) + name + b"\\0"
most = 1000
body = entry(0, b"a" * 300_000 + b"000000") + b"".join(entry(6, b"%06d" % number) for number in range(1, most))
data = b"DIRC" + (4).to_bytes(4, "big") + most.to_bytes(4, "big") + body + bytes(20)
assert len(data) < 400_000
try:
    gitlinks(data)
except GitIndexError:
    pass
print("enough")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "enough\n", "256 MB for an index of 0.4 MB"


def test_an_index_that_is_being_written_is_not_taken_away(tmp_path: Path) -> None:
    """Tools other than git (go-git, isomorphic-git) write an index in place."""
    world = World(tmp_path / "world")
    world.run(
        'echo 1 >f; git add f; python3 -c \'import time; data = open(".git/index", "rb").read(); '
        'file = open(".git/index", "wb"); file.write(data[:40]); file.flush(); time.sleep(2); file.write(data[40:])\''
    )
    assert world.asides() == []


@pytest.mark.parametrize("key", ["advice.detachedHead", "stash.showPatch", "commit.gpgSign", "push.gpgSign"])
def test_switches_are_harmless(tmp_path: Path, key: str) -> None:
    world = World(tmp_path / "world")
    world.run(f"repo sub; git -C sub config {key} false")
    assert world.asides() == []
