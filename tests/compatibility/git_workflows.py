"""What people do with git."""

from __future__ import annotations

from workflow import EMPTY, REPOSITORY, Workflow

#: A repository that the loopback host serves, with one commit.
REMOTE = """
git init -q --bare ../../repositories/tool.git
git init -q ../seed
cd ../seed
echo seed >file
git add .
git commit -qm seed
git push -q ../../repositories/tool.git main
rm -rf ../seed
"""
URL = "http://{host}/git/tool.git"

GIT = (
    Workflow(
        "git init in the project's directory",
        "git",
        (
            "git init -q && git config user.name Eve && echo one >one && git add . && git commit -qm one && git log -1",
            "echo two >>one && git commit -qam two && git status --short",
        ),
        starts=(EMPTY,),
        says="Author: Eve",
        after='test "$(git log --oneline | wc -l)" = 2 && test "$(git ls-files)" = one',
    ),
    Workflow(
        "git init in a new directory",
        "git",
        (
            "git init -q tool && cd tool && git config user.name Eve && echo one >one && git add . && git commit -qm one",
            "cd tool && echo two >>one && git commit -qam two && git log -1",
        ),
        after='test "$(git -C tool log --oneline | wc -l)" = 2 && git -C tool fsck --strict',
    ),
    Workflow(
        "git clone URL .",
        "git",
        (
            f"git clone -q {URL} . && cat file && git log -1",
            "git pull -q && git checkout -q -b mine && git status --short",
        ),
        reaches="HOST",
        starts=(EMPTY,),
        before=REMOTE,
        says="^seed$",
        configures=("remote.", "branch."),
        after="git diff --quiet && test -f file",
    ),
    Workflow(
        "git clone URL into a directory",
        "git",
        (
            f"git clone -q {URL} tool && cat tool/file",
            "cd tool && echo more >>file && git commit -qam more && git push -q origin main",
        ),
        reaches="HOST",
        before=REMOTE,
        says="^seed$",
        after='git -C tool fsck --strict && test "$(git --git-dir ../../repositories/tool.git log -1 --format=%s main)" = more',
    ),
    Workflow(
        "rm -rf of a clone, in a later run",
        "git",
        ("git clone -q {home}/../repositories/tool.git tool", "rm -rf tool"),
        allows=(".git/config", ".git/hooks"),
        before=REMOTE,
        after="test ! -e tool",
    ),
    Workflow(
        "git clone of a local repository",
        "git",
        (
            "git clone -q {home}/../repositories/tool.git tool && cd tool && cat file && echo x >x && git add x && git commit -qm x",
        ),
        allows=(".git/config",),
        before=REMOTE,
        says="^seed$",
        after="git -C tool fsck --strict",
    ),
    Workflow(
        "git fetch and push",
        "git",
        ("git fetch -q && git merge -q --allow-unrelated-histories -m m origin/main && git push -q origin work",),
        reaches="HOST",
        starts=(REPOSITORY,),
        before=f"({REMOTE}\n)\ngit remote add origin {URL}",
        configures=("remote.",),
        after="git --git-dir ../../repositories/tool.git rev-parse -q --verify work",
    ),
    Workflow(
        "git push -u",
        "git",
        ("git push -q -u origin work && git status -sb",),
        reaches="HOST",
        allows=(".git/config",),
        starts=(REPOSITORY,),
        before=f"({REMOTE}\n)\ngit remote add origin {URL}",
        configures=("remote.", "branch.work."),
        says="work...origin/work",
        after='test "$(git config branch.work.remote)" = origin',
    ),
    Workflow(
        "git remote add",
        "git",
        (f"git remote add origin {URL} && git remote -v",),
        allows=(".git/config",),
        starts=(REPOSITORY,),
        configures=("remote.",),
        after="git config remote.origin.url",
    ),
    Workflow(
        "git remote add, without a word from you",
        "git",
        (f"git remote add origin {URL}",),
        starts=(REPOSITORY,),
        refused="the configuration of a repository can name programs that your own git starts; "
        "add the remote yourself, or say `--allow-protected .git/config`",
        says="allow-protected|allowProtected|allowGitConfig",
    ),
    Workflow(
        "git config user.name in a repository",
        "git",
        ("git config user.name Eve && git commit -q --allow-empty -m empty && git log -1",),
        allows=(".git/config",),
        starts=(REPOSITORY,),
        says="Author: Eve",
    ),
    Workflow(
        "git submodule add",
        "git",
        (f"git submodule --quiet add {URL} tool && git commit -qm tool && cat tool/file", "git submodule status"),
        reaches="HOST",
        allows=(".git/config", ".gitmodules"),
        starts=(REPOSITORY,),
        before=REMOTE,
        makes=(".gitmodules",),
        configures=("submodule.",),
        says="^seed$",
        after="git submodule foreach git fsck --strict",
    ),
    Workflow(
        "git worktree",
        "git",
        (
            "git worktree add -q -b side tree && cd tree && echo x >x && git add x && git commit -qm x",
            "git -C tree status --short && git merge -q side && git worktree list",
            "git worktree add -q other && git worktree remove other && test ! -e other",
        ),
        starts=(REPOSITORY,),
        after="test -f x && git -C tree fsck --strict",
    ),
    Workflow(
        "git worktree remove, in a later run",
        "git",
        ("git worktree add -q -b side tree", "git worktree remove tree"),
        starts=(REPOSITORY,),
        refused="git on the host takes its repository from what the worktree's `.git` says, which stays as it is; the run that "
        "made a worktree can remove it, and outside `rm -rf TREE && git worktree prune` does",
        says=r"(?s)tree': Device or resource busy.*delete .*tree/\.git",
        after="rm -rf tree && git worktree prune && test $(git worktree list | wc -l) = 1",
    ),
    Workflow(
        "git stash",
        "git",
        (
            "echo more >>README.md && echo new >new && git stash -q -u && test ! -e new",
            "git stash pop -q && cat new README.md",
        ),
        starts=(REPOSITORY,),
        after='test "$(git status --porcelain)" = " M README.md\n?? new"',
    ),
    Workflow(
        "git rebase -i",
        "git",
        (
            "for n in 1 2 3; do echo $n >f$n; git add .; git commit -qm $n; done",
            "GIT_SEQUENCE_EDITOR=\"sed -i '2s/pick/squash/'\" GIT_EDITOR=true git rebase -q -i HEAD~3 && git log --oneline",
        ),
        starts=(REPOSITORY,),
        after='test "$(git log --oneline | wc -l)" = 3',
    ),
    Workflow(
        "git commit, which opens the editor",
        "git",
        ("echo x >x && git add x && GIT_EDITOR='vim -u NONE' git commit && git log -1 --format=%s",),
        needs=("vim",),
        starts=(REPOSITORY,),
        keys=(("Changes to be committed", "iwritten by hand\x1b:wq\r"),),
        says="written by hand",
        after="test \"$(git log -1 --format=%s)\" = 'written by hand'",
    ),
    Workflow(
        "git add -A, commit -a, clean -fd",
        "git",
        (
            "mkdir -p src && echo x >src/x && git add -A && git commit -qm all && git show --stat --format=",
            "echo y >y && git clean -fdq && git status --porcelain",
        ),
        starts=(REPOSITORY,),
        after="test \"$(git ls-files | tr '\\n' ' ')\" = 'README.md src/x ' && test -z \"$(git status --porcelain)\"",
    ),
    Workflow(
        "git clean -fdx",
        "git",
        (
            "mkdir build && git clean -fdx -e '/.*/' && test ! -e build",
            "mkdir build && touch build/it && git clean -fdx",
        ),
        starts=(REPOSITORY,),
        before="echo build >.gitignore && git add . && git commit -qm ignore",
        refused="the directories that keep names from being made (`.vscode`, `.idea`, …) cannot be removed; all else is, and "
        "`git clean -fdx -e '/.*/'` succeeds",
        says=r"failed to remove \.vscode",
        after="test ! -e build",
    ),
    Workflow(
        "git branch, merge, tag, cherry-pick, bisect, gc",
        "git",
        (
            "git checkout -q -b side && for n in 1 2 3; do echo $n >f$n; git add .; git commit -qm $n; done && git tag v1",
            (
                "git checkout -q work && git cherry-pick side~2 >/dev/null && git merge -q -m merged side && "
                "git bisect start v1 v1~3 >/dev/null && git bisect run sh -c '! test -f f2' >/dev/null; git bisect reset >/dev/null 2>&1 "
                "&& git gc -q && git describe --tags --always"
            ),
        ),
        starts=(REPOSITORY,),
        after="test -f f3 && git rev-parse -q --verify v1",
    ),
    Workflow(
        "git format-patch, am, apply, archive, bundle",
        "git",
        (
            (
                "echo x >x && git add x && git commit -qm x && git format-patch -q -1 && git reset -q --hard HEAD~1 && git am -q *.patch "
                "&& git archive -o all.tar HEAD && git bundle create -q all.bundle HEAD && git bundle verify -q all.bundle"
            ),
        ),
        starts=(REPOSITORY,),
        after="tar tf all.tar | grep -qx x",
    ),
)
