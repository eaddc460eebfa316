"""Everyday programs of the shell, and what is refused on purpose."""

from __future__ import annotations

from workflow import EMPTY, REPOSITORY, USER, Workflow, until

FILES = "mkdir -p src && echo kept >src/file && echo top >top && ln -s top link"

SYSTEM = (
    Workflow(
        "ls, cat *, grep -r, find, du",
        "system",
        (
            "ls -la && cat top && cat $(find . -maxdepth 1 -type f ! -name '.*') && grep -rq kept . && find . >/dev/null && du -s .",
        ),
        before=FILES,
    ),
    Workflow(
        "cat .* * of all files at the top",
        "system",
        ('for f in .* *; do test ! -e "$f" || test -d "$f" || cat "$f"; done',),
        before=FILES,
        says="^top$",
    ),
    Workflow(
        "zip -r, unzip",
        "system",
        (
            'zip -qr "$TMPDIR/all.zip" . && unzip -qo "$TMPDIR/all.zip" -d out && cat out/src/file',
            "zip -qr all.zip . && unzip -qo all.zip -d other && cat other/top",
        ),
        needs=("zip", "unzip"),
        before=FILES,
        says="^kept$",
    ),
    Workflow(
        "tar x over the project, tar c and tar x elsewhere",
        "system",
        (
            'tar xf all.tar && cat src/file && mkdir "$TMPDIR/copy" && tar c . | tar x -C "$TMPDIR/copy" && rm -r "$TMPDIR/copy"',
        ),
        before=f"{FILES} && tar --exclude=./.git --exclude=./all.tar -cf all.tar .",
        says="^kept$",
    ),
    Workflow(
        "tar c of a repository, and tar x over it",
        "system",
        (
            "tar cf tracked.tar $(git ls-files) && tar xf tracked.tar && rm tracked.tar",
            "tar cf all.tar --exclude=./.git --exclude=./all.tar . && rm -r src && tar xf all.tar",
        ),
        before=FILES,
        starts=(REPOSITORY,),
        refused="names that are kept from being made hold a `.gitignore` inside, which nothing can replace; all else is "
        "extracted, and `tar c $(git ls-files)` leaves these out",
        says=r"\.gitignore: Cannot open: File exists",
        after="test -f src/file",
    ),
    Workflow(
        "cp -r, cp -a of the project",
        "system",
        (
            (
                'cp -r . "$TMPDIR/copy" && cp -a . "$TMPDIR/other" && diff -r "$TMPDIR/copy" "$TMPDIR/other" && '
                'cat "$TMPDIR/copy/src/file" && rm -r "$TMPDIR/copy" "$TMPDIR/other"'
            ),
        ),
        before=FILES,
        says="^kept$",
    ),
    Workflow(
        "rsync -a of the project",
        "system",
        ('rsync -a ./ "$TMPDIR/copy/" && cat "$TMPDIR/copy/src/file"',),
        needs=("rsync",),
        before=FILES,
        says="^kept$",
    ),
    Workflow(
        "chmod -R, chown -R",
        "system",
        ('chmod -R u+w . && chown -R "$(id -u):$(id -g)" .',),
        before=FILES,
        starts=(EMPTY,),
    ),
    Workflow(
        "chmod -R of a repository",
        "system",
        ("find . -name .git -prune -o -exec chmod u+w {} +", "chmod -R u+w ."),
        before=FILES,
        starts=(REPOSITORY,),
        refused="git on the host obeys its configuration and hooks, which stay as they are; all else is changed, and "
        "`find . -name .git -prune -o -exec chmod … {} +` leaves them out",
        says=r"\.git/config.*Read-only file system",
    ),
    Workflow("rm -rf *", "system", ("rm -rf * && ls",), before=FILES, after='test -z "$(ls)"'),
    Workflow(
        "mkdir refs, .env, .github",
        "system",
        ("mkdir refs .github && echo A=1 >.env && touch refs/x && ls -A",),
        makes=("refs",),
        after="test -f refs/x",
    ),
    Workflow(
        "touch .vscode/settings.json",
        "system",
        ("mkdir -p .vscode && echo '{}' >.vscode/settings.json",),
        allows=(".vscode",),
        makes=(".vscode",),
        after="test -f .vscode/settings.json",
    ),
    Workflow(
        "touch .vscode/settings.json, without a word from you",
        "system",
        ("mkdir -p .vscode && echo '{}' >.vscode/settings.json",),
        refused="your editor would start what is named there; write it yourself, or say `--allow-protected .vscode`",
        says="(?s)(Permission denied|Read-only file system).*(allow-protected|allowProtected)",
    ),
    Workflow(
        "writing to /tmp, which is gone with the run",
        "system",
        (
            'echo x >/tmp/stockade-it && sh -c "cat /tmp/stockade-it" && test -n "$(mktemp -p /tmp)"',
            "test ! -e /tmp/stockade-it",
        ),
        says="^x$",
        after="test ! -e /tmp/stockade-it",
    ),
    Workflow(
        "vim -es",
        "system",
        ("vim -u NONE -es -c 's/top/changed/' -c wq top && cat top",),
        needs=("vim",),
        before=FILES,
        says="^changed$",
    ),
    Workflow(
        "vim",
        "system",
        ("vim -u NONE top",),
        needs=("vim",),
        before=FILES,
        keys=(("top", "oadded\x1b:wq\r"),),
        after="grep -qx added top",
    ),
    Workflow(
        "nano",
        "system",
        ("nano top",),
        needs=("nano",),
        before=FILES,
        keys=(("top", "added\x0f"), ("Write", "\r"), ("Wrote", "\x18")),
        after="grep -q added top",
    ),
    Workflow(
        "less",
        "system",
        ("seq 1000 >many && less many && echo left",),
        needs=("less",),
        keys=(("23", "G"), ("1000", "q")),
        says="left",
    ),
    Workflow(
        "bash with job control",
        "system",
        ("PS1='ready> ' bash --norc -i",),
        keys=(
            ("ready> ", "sleep 100\r"),
            ("sleep 100", "\x1a"),
            ("Stopped", "kill -KILL %1; sleep 0.5; echo do''ne; exit 0\r"),
        ),
        says="(?s)Stopped.*done",
        hides="no job control",
    ),
    Workflow(
        "stty, tput, /dev/tty",
        "system",
        ("stty size && tput cols && echo hi >/dev/tty",),
        keys=(("never shown", ""),),
        says="(?s)24 80.*^hi",
    ),
    Workflow(
        "ssh-keygen, asking for a passphrase",
        "system",
        ("ssh-keygen -q -t ed25519 -f key && ssh-keygen -y -P open-sesame -f key",),
        needs=("ssh-keygen",),
        keys=(("passphrase", "open-sesame\r"), ("again", "open-sesame\r")),
        says="ssh-ed25519",
        hides="open-sesame\n",
    ),
    Workflow(
        "ssh-keygen without a passphrase, ssh-agent, ssh-add",
        "system",
        ("ssh-keygen -q -t ed25519 -N '' -f key && eval $(ssh-agent) && ssh-add key && ssh-add -l && ssh-agent -k",),
        needs=("ssh-keygen", "ssh-agent"),
        says="ED25519",
    ),
    Workflow(
        "gpg --gen-key, sign, verify",
        "system",
        (
            (
                "export GNUPGHOME=$PWD/gnupg && mkdir -m 700 gnupg && gpg --batch -q --passphrase '' --quick-gen-key ada@example.com && "
                "gpg --batch -q --detach-sign top && gpg --verify top.sig top && gpgconf --kill all && rm -rf gnupg"
            ),
        ),
        needs=("gpg",),
        before=FILES,
        says="Good signature",
    ),
    Workflow(
        "curl and wget of a host on loopback",
        "system",
        ("curl -sSf http://{host}/page && wget -qO- http://{host}/page", "curl -sSf --noproxy '' http://{host}/page"),
        needs=("curl", "wget"),
        reaches="HOST",
        says="hello from the host",
    ),
    Workflow(
        "curl of a host that nobody allowed",
        "system",
        ("curl -sSf http://forbidden.example/page",),
        refused="no host is reached until it is allowed: `--allow-domain HOST`, or `stockade allow-domain HOST`",
        says="(?s)forbidden.example.*allow",
    ),
    Workflow(
        "ping",
        "system",
        ("ping -c 1 -W 2 192.0.2.1",),
        needs=("ping",),
        refused="packets that belong to no connection cannot be judged; reach the host by HTTP, once it is allowed",
        says="ermitted|ermission|100% packet loss|unreachable|SOCK_RAW|socket",
    ),
    Workflow(
        "dig",
        "system",
        ("dig +short +time=2 +tries=1 forbidden.example | grep .",),
        needs=("dig",),
        refused="names of hosts that are not allowed are not looked up, since a name can carry data out",
        says="forbidden.example",
    ),
    Workflow(
        "sudo",
        "system",
        ("sudo -n true",),
        needs=("sudo",),
        users=(USER,),
        refused="no program gains rights inside; run it yourself, outside",
        says="no new privileges|setuid|owned by uid|effective uid",
    ),
    Workflow(
        "crontab",
        "system",
        ("echo '* * * * * true' | crontab -",),
        needs=("crontab",),
        refused="cron would run it outside the walls, later; edit it yourself",
        says="[Rr]ead-only|[Pp]ermission|not allowed|mkstemp|denied",
    ),
    Workflow(
        "systemctl --user",
        "system",
        ("systemctl --user start anything",),
        needs=("systemctl",),
        refused="a service runs outside the walls; start it yourself",
        says="[Ff]ailed to connect|No medium|Operation not permitted|not been booted|Permission denied",
    ),
    Workflow(
        "apt-get install",
        "system",
        ("apt-get install -y hello",),
        refused="the system's directories are not writable; install it yourself, outside",
        says="[Rr]ead-only|[Pp]ermission denied|are you root|Unable",
    ),
    Workflow(
        "xargs -P, parallel shells, flock, timeout",
        "system",
        ("seq 20 | xargs -P 4 -n 1 sh -c 'flock lock sh -c \"echo $0 >>all\"' && timeout 5 sort -n all | tail -1",),
        says="^20$",
    ),
    Workflow(
        "stockade run WORDS", "system", ("$ stockade run ls -l", "$ stockade run echo two words"), says="^two words$"
    ),
    Workflow(
        "stockade run -- cat <(echo x)", "system", ("$ stockade run -- cat <(echo passed on)",), says="^passed on$"
    ),
    Workflow(
        "stockade run inside stockade run",
        "system",
        ("{stockade} run -- true",),
        refused="it is already inside, and the walls hold for whatever starts there; run the command itself",
        says="already inside",
    ),
    Workflow(
        "an editor and `stockade allow-domain` on the host while a command runs",
        "system",
        (
            (
                f"$ stockade run -c 'touch up; {until('test -e go')}' & {until('test -e up')}; "
                "r=0; mkdir -p .vscode && echo '{}' >.vscode/settings.json || r=1; stockade allow-domain example.com || r=1; touch go; wait; exit $r"
            ),
        ),
        makes=(".vscode", ".stockade"),
        after="test -f .vscode/settings.json && ls .stockade",
    ),
)
