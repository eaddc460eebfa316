"""Real shells start a harmless program named ``forbidden``; a rule that denies it must have seen that it may.

Each line of the table is first run by a shell that is installed, which must start the program: it is no attack
otherwise. The search makes lines of its own, from pieces of shell language, and runs those that no rule would stop.
"""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from stockade.policy.command_pattern import CommandPattern
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.may_match import Possible, may_match

if TYPE_CHECKING:
    from tests.tool.conftest import Stage

RULE = (Sourced(CommandPattern.parse("forbidden:*"), Origin(Layer.USER, "settings.json")),)
BOTH = ("bash", "zsh")
BASH = ("bash",)
ZSH = ("zsh",)

ATTACKS = {
    "ANSI quotes after a redirection": ("</dev/null $'forbidden' -f x", BOTH),
    "ANSI escapes": ("$'\\x66orbidden' x", BOTH),
    "a pattern after time -p": ("time -p ./f[o]rbidden x", BASH),
    "a pattern after env, before a subshell": ("env ./f[o]rbidden x && (echo y)", BOTH),
    "braces after a redirection": (">o f{orbidden,} y", BOTH),
    "a pattern after a here-string": ("<<<x ./forbidde? y", BOTH),
    "a pattern after += ": ("a+=1 ./forbidde? x", BOTH),
    "a pattern after an element": ("a[0]=1 ./forbidde? x", BASH),
    "a pattern in a coprocess": ("coproc ./forbidde? y; wait", BASH),
    "a pattern in a named coprocess": ("coproc X { ./forbidde? y; }; wait", BASH),
    "braces after sudo --": ("sudo -u root -- f{orbidden,} x;(:)", BOTH),
    "repeated": ("repeat 1 ./forbidde? x", ZSH),
    "without correction": ("nocorrect ./forbidde? x", ZSH),
    "after a dash": ("true; - ./forbidde? x", ZSH),
    "without patterns": ("noglob forbidden x", ZSH),
    "by the path that zsh finds": ("=forbidden x", ZSH),
    "by a group of a pattern": ("./(f|g)orbidden x", ZSH),
    "given to xargs for env": ("echo forbidden x | xargs env", BOTH),
    "given to xargs as the command": ("echo forbidden | xargs -I{} env {}", BOTH),
    "given to xargs by another mark": ("echo forbidden | xargs -I % env % x", BOTH),
    "given to a shell in sudo": ("echo forbidden x | sudo -n sh", BOTH),
    "given to a shell in env": ("echo forbidden x | env A=1 sh", BOTH),
    "a here-string for a shell": ("bash <<< 'forbidden x'", BOTH),
    "a here-document for a shell": ("sh <<E\nforbidden x\nE", BOTH),
    "read as a file": (". <(echo forbidden x)", BASH),
    "read from a descriptor": ("echo forbidden | bash /dev/fd/0", BOTH),
    "read from a file that a variable names": ('f=/dev/stdin; echo forbidden | bash "$f"', BOTH),
    "a script that is named": ("bash ./forbidden", BOTH),
    "found, and run itself": ("find . -name forbidden -exec {} \\;", BOTH),
    "run by find through variables": ('find . -maxdepth 0 "$k" "$x" \\;', BOTH),
    "split by env": ("env -S'forbidden x'", BOTH),
    "split by env, after words": ("env -S env forbidden x", BOTH),
    "behind an assignment that is split": ("env A=$v x", BASH),
    "behind a quoted assignment": ('env "A=$v" forbidden x', BOTH),
    "behind an assignment that a variable makes": ('b="=c"; env "q$b" forbidden x', BOTH),
    "with another name": ("exec -a ls forbidden x", BOTH),
    "through command": ("command -p env forbidden x; command forbidden", BOTH),
    "through builtin": ("builtin eval 'forbidden x'", BOTH),
    "in parts for eval": ("eval for''bid\"den\" x", BOTH),
    "continued": ("for\\\nbidden x", BOTH),
    "a keyword that is continued": ("i\\\nf forbidden; then :; fi", BOTH),
    "a substitution that is continued": ('echo "$\\\n(forbidden)"', BASH),
    "a value of zsh that runs": ("READNULLCMD=forbidden; </dev/null", ZSH),
    "words that are assignments by an option": ("set -k; nice A=1 forbidden x", BASH),
    "words for a shell that are assignments": ("set -k; bash A=1 -c 'forbidden x'", BASH),
    "backquotes in a name": ("for`:`bidden x", BOTH),
    "backquotes in quotes": ('echo "a `forbidden` \'b"', BOTH),
    "a substitution in an expansion": ('echo "${q:-$(forbidden)}"', BOTH),
    "a substitution in arithmetic": ("echo $(( $(forbidden) + 1 ))", BOTH),
    "a substitution in an element": ("a[$(forbidden)1]=2", BASH),
    "a substitution in a here-document": ("cat <<E\nit's $(forbidden)\nE", BOTH),
    "after a here-document": ("cat <<'E'\nit's \"\nE\nforbidden", BOTH),
    "behind a here-document": ("cat <<E && forbidden\nx\nE", BOTH),
    "a process substitution": ("cat <(forbidden)", BOTH),
    "written to a process": ("echo x > >(forbidden); sleep 0.2", BOTH),
    "a function that runs its words": ('f() { "$@"; }; f forbidden x', BOTH),
    "a function that runs one for env": ("f() { env $1; }; f forbidden", BOTH),
    "a function of another form": ("function f { forbidden; }; f", BOTH),
    "a function without a name": ("() { $1 } forbidden", ZSH),
    "positions": ('set -- forbidden; "$1"', BOTH),
    "a case": ("case a in (a) ./forbidde?;; esac", BOTH),
    "a test that only some shells know": ("[[ a || forbidden ]]", ("dash",)),
    "arithmetic that only some shells know": ("((forbidden))", ("dash",)),
    "words after a redirection of both": ("ls &>o forbidden", ("dash",)),
    "a block of another form": ("while ((i++ < 1)) { forbidden }", ZSH),
    "a condition of another form": ("if (true) forbidden", ZSH),
    "a block that always runs": ("{ ls } always { forbidden }", ZSH),
    "a loop of another form": ("for i (a b) forbidden", ZSH),
    "a redirection to a name": (">! forbidden", BASH),
    "an alias": ("shopt -s expand_aliases\nalias k=forbidden\nk x", BASH),
    "an alias in a table": ("shopt -s expand_aliases\nBASH_ALIASES[k]=forbidden\nk x", BASH),
    "an alias of zsh": ("alias -g k='; forbidden'; eval 'echo k'", ZSH),
    "a function in a table": ("functions[k]='forbidden x'; k", ZSH),
    "a hashed path": ("hash -p ./forbidden ls; ls x", BASH),
    "a trap": ("trap 'A=1 <<<x ./forbidde?' EXIT", BOTH),
    "a trap in parts": ('trap "$x" EXIT', BOTH),
    "a subscript of a value": ("y='a[$(forbidden)]'; echo $((y))", BASH),
    "a prompt": ("PS4='$(forbidden)'; set -x; ls", BASH),
    "a file for another shell": ("BASH_ENV='$(forbidden)' bash -c ls", BOTH),
    "a pattern that runs": ("echo *(e:'forbidden':)", ZSH),
    "a value that runs": ("y='$'; z='(forbidden)'; y=$y$z; echo ${y@P}", BASH),
    "a value that runs, in zsh": ("y='$'; z='(forbidden)'; y=$y$z; echo ${(e)y}", ZSH),
    "text after text for a shell": ("bash -c '\"$@\"' _ forbidden x", BOTH),
    "an option before the text": ("bash -o pipefail -c 'forbidden x'", BOTH),
    "two options in one": ("bash -ec 'forbidden x'", BOTH),
    "options after the text's": ("bash -c -e 'forbidden x'", BOTH),
    "by home": ("~/forbidden x", BOTH),
    "by a variable's directory": ('"$HOME"/forbidden x', BOTH),
    "a variable that is split": ("$w x", BASH),
    "a loader": ("/lib64/ld-linux-x86-64.so.2 /usr/bin/env forbidden", BOTH),
    "a named descriptor": ("{n}>o ./forbidde? x", BASH),
    "after an array": ("a=(x y) ; ./forbidde?", BOTH),
    "a comment that ends": ("ls # it's\n./forbidde?", BOTH),
    "quotes that look open": ("echo 'it'\\''s'; $x", BOTH),
    "a range in brackets": ("./f[n-p]rbidden x", BOTH),
    "brackets that exclude": ("./[!a]orbidden x", BOTH),
    "a class in brackets": ("./[[:alpha:]]orbidden x", BOTH),
    "a range after env": ("env ./f[n-p]rbidden x", BOTH),
    "a range after nice": ("nice ./[!a]orbidden x", BOTH),
    "a range after an assignment": ("q=1 ./f[n-p]rbidden x", BOTH),
    "a range after another": ("~/../[p-q]rogram[s]/f[n-p]rbidden", BOTH),
    "a slash in a variable": ('q=/; ."$q"forbidden', BOTH),
    "input by two slashes": (". /dev//stdin <<< 'forbidden x'", BOTH),
    "input by a dot": ("source /dev/./stdin <<< 'forbidden x'", BOTH),
    "a descriptor by two slashes": ("bash /dev//fd/0 <<< 'forbidden x'", BOTH),
    "input by another root": (". /proc/self/root/dev/stdin <<< 'forbidden x'", BOTH),
    "input from its directory": ("cd /dev; . ./stdin <<< 'forbidden x'", BOTH),
    "a descriptor from its directory": ("cd /dev/fd; . ./0 <<< 'forbidden x'", BASH),
    "input in a line that is read roughly": ("printf 'for%s' bidden | case a in a) . /dev//stdin;; esac", BASH),
    "a file for another shell, by a path": ("BASH_ENV=/dev/stdin bash -c : <<< 'forbidden x'", BOTH),
    "a file for another shell, by a descriptor": ("BASH_ENV=/dev/fd/0 bash -c : <<< 'forbidden x'", BOTH),
    "a file for another shell, by a process": ("BASH_ENV=<(echo forbidden x) bash -c :", BASH),
    "a file for another shell, exported": ("export BASH_ENV=/dev/stdin; bash -c : <<< 'forbidden x'", BOTH),
    "a file for another shell, by env": ("env BASH_ENV=/dev/stdin bash -c : <<< 'forbidden x'", BOTH),
    "a file for another shell, by read": ("set -a; read BASH_ENV <<< /dev/stdin; bash -c : <<< forbidden", BOTH),
    "a file for a shell that asks": ("ENV=/dev/stdin dash -ic : <<< 'forbidden x'", BOTH),
    "a file for a shell that asks, by a variable": ("q=/dev/stdin; ENV=$q dash -ic : <<< forbidden", BOTH),
    "a file to begin with": ("bash --init-file /dev//fd/3 -ic : 3<<< 'forbidden x'", BOTH),
    "a function for another shell": ("env 'BASH_FUNC_ls%%=() { forbidden x; }' bash -c ls", BOTH),
    "a subscript in a loop": ("for i in 'a[$(forbidden)]'; do echo $((i)); done", BASH),
    "a subscript in an array": ("a=('b[$(forbidden)]'); [[ $a -eq 0 ]]", BASH),
    "a subscript in a here-string": ("read i <<< 'a[$(forbidden)]'; ((i++))", BASH),
    "a subscript in a here-document": ("read -r i <<'E'\na[$(forbidden)]\nE\n[[ $i -eq 1 ]]", BASH),
    "a subscript in a subscript": ("read -r i <<'E'\na[b[0]+`forbidden`]\nE\n[[ $i -eq 1 ]]", BASH),
    "a subscript in a test": ("q=1; [[ $q -eq 'b[$(forbidden)]' ]]", BASH),
    "a subscript in the name of a file": (": > 'a[$(forbidden)]'; for i in a*; do : $((i)); done", BASH),
    "a subscript that is assigned in braces": (": ${q:='a[$(forbidden)]'}; : $((q))", BASH),
    "a subscript in quotes": ("a['b[$(forbidden)]']=1", BASH),
    "a subscript in parts": ("q='b[$'; z=\"$q(forbidden)]\"; : $((z))", BASH),
    "a subscript in octal": ("y=$(printf 'a[\\44(forbidden)]'); echo $((y))", BASH),
    "a subscript with backquotes in octal": ("y=$(printf 'a[\\140forbidden\\140]'); echo $((y))", BASH),
    "a subscript in ANSI quotes": ("y=$'a[\\x24(forbidden)]'; echo $((y))", BASH),
    "a prompt in a loop": ("for PS4 in '$(forbidden)'; do set -x; :; done", BASH),
    "a prompt that is longer": ("PS4+='$(forbidden)'; set -x; :", BASH),
    "a prompt in octal": ("PS4=$(printf '\\44(forbidden)'); set -x; :", BASH),
    "a prompt that is decoded": ("PS4='\\044(forbidden)'; set -x; :", BASH),
    "a prompt that is read": ("read PS4 <<< '$(forbidden)'; set -x; :", BASH),
    "a value that runs, continued": ("y='$'; y=$y'(forbidden)'; : ${y@\\\nP}", BASH),
    "a table by an expansion": (": ${BASH_CMDS[foo]:=./forbidden}; foo x", BASH),
    "a table by printf": ("printf -v 'BASH_CMDS[foo]' ./forbidden; foo x", BASH),
    "a table by read": ("read 'BASH_CMDS[foo]' <<< ./forbidden; foo x", BASH),
    "a table by declare": ("declare 'BASH_CMDS[foo]=./forbidden'; foo x", BASH),
    "a table by another name": ("declare -n r=BASH_CMDS; r[foo]=./forbidden; foo x", BASH),
    "functions by an expansion": (": ${functions[f]::=forbidden x}; f", ZSH),
    "functions by read": ("read 'functions[f]' <<< 'forbidden x'; f", ZSH),
    "functions by print": ("print -v 'functions[f]' 'forbidden x'; f", ZSH),
    "functions by set": ("set -A functions f 'forbidden x'; f", ZSH),
    "functions by typeset": ("typeset 'functions[f]=forbidden x'; f", ZSH),
    "functions by export": ("export 'functions[f]=forbidden x'; f", ZSH),
    "split by env, in a case": ("case a in a) env -S'forbidden x';; esac", BOTH),
    "a position that is assigned": ("1=x forbidden y", ZSH),
    "the name of the shell that is assigned": ("0=x forbidden y", ZSH),
    "a descriptor of two digits": ("nice -n 10>o forbidden y", ZSH),
    "a command for no command, by read": ("read NULLCMD <<< forbidden; > o", ZSH),
    "a command for no command, in a loop": ("for READNULLCMD in forbidden; do </dev/null; done", ZSH),
    "comments that are none": ("histchars='!^%'; eval ': # ; forbidden x'", ZSH),
    "a style that runs": ("zmodload zsh/zutil; zstyle -e :x y 'forbidden x'; zstyle -s :x y v", ZSH),
    "a prompt that is printed": ("setopt promptsubst; print -P '$(forbidden)'", ZSH),
    "a terminal of its own": ("zmodload zsh/zpty; zpty p forbidden x; zpty -r p; sleep 0.2", ZSH),
    "for a job": ("jobs -x forbidden x", BASH),
    "for an agent": ("ssh-agent forbidden x", BOTH),
    "for a filter": ("split --filter='forbidden x' /etc/passwd", BOTH),
    "for a filter, cut short": ("split --filt 'forbidden x' /etc/passwd", BOTH),
    "for a packer": ("tar cf - -I 'forbidden x' /etc/passwd", BOTH),
    "for a packer, without a dash": ("tar cIf 'forbidden x' - /etc/passwd", BOTH),
    "at a checkpoint": ("tar cf o --checkpoint=1 --checkpoint-action=exec='forbidden x' /etc/passwd", BOTH),
    "an alias of git": ("git -c alias.q='!forbidden x' q", BOTH),
    "an alias of git, by a variable": ("GIT_CONFIG_PARAMETERS=\"'alias.q=!forbidden x'\" git q", BOTH),
    "an alias of git, by three": (
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.q GIT_CONFIG_VALUE_0='!forbidden x' git q",
        BOTH,
    ),
    "an alias of git, by the environment": ("V='!forbidden x' git --config-env=alias.q=V q", BOTH),
    "the other end of git": ("git ls-remote --upload-pack='forbidden x' /", BOTH),
    "a transport of git": ("git -c protocol.ext.allow=always ls-remote 'ext::forbidden x'", BOTH),
    "a hook of git": ("git init -q; git -c core.fsmonitor=forbidden status", BOTH),
    "a hook of git that is kept": ("git init -q; git config core.fsmonitor forbidden; git status", BOTH),
    "a machine by its name": ("x86_64 forbidden x", BOTH),
}


@pytest.mark.parametrize(("line", "shells"), ATTACKS.values(), ids=ATTACKS)
def test_what_a_shell_runs_is_seen(stage: Stage, line: str, shells: tuple[str, ...]) -> None:
    assert isinstance(may_match(RULE, line), Possible)
    for shell in filter(shutil.which, shells):
        assert stage.runs(shell, line), f"{shell} did not start it: this is no attack"


NAMES = (
    *("forbidden", "'forbidden'", "f\\orbidden", "$'forbidden'", "./forbidde?", "./f[o]rbidden", "f{orbidden,}", "$x"),
    *('"$x"', "${y:-forbidden}", "`echo forbidden`", "$(echo forbidden)", "=forbidden", "./(f)orbidden", "~/forbidden"),
    *("for\\\nbidden", "f${z}orbidden", "$w", "echo", "ls", "cat", ":"),
)
PREFIXES = (
    *("A=1", "a+=1", "a[0]=1", "a[1 + 1]=x", ">o", "</dev/null", "2>&1", "<<<x", "{fd}>o", "&>o", ">! o", "a=(x y)"),
    *(
        "time",
        "time -p",
        "!",
        "env",
        "env A=1",
        "env --",
        'env "A=$w"',
        "env A=$w",
        "env -u X",
        "nice -n 1",
        "timeout 5",
    ),
    *("timeout -s KILL 5", "command", "command -v", "builtin", "exec -a q", "xargs", "echo x | xargs -n 1", "eval"),
    *("sudo -u root --", "coproc", "nocorrect", "noglob", "-", "repeat 1", "stdbuf -oL", "find . -maxdepth 0 -exec"),
    *(
        "bash",
        "bash -c",
        "bash -o pipefail -c",
        "sh -c",
        "echo forbidden | xargs",
        "echo forbidden |",
        "env -S",
        "source",
    ),
    *("bash <<<", "trap", 'find . -maxdepth 0 "$k"', "echo forbidden | xargs -I % %", "set -- forbidden; $1"),
)
SHAPES = (
    *(
        "if {}; then {}; fi",
        "for i in a $x; do $i; {}; done",
        "for ((i=0;i<1;i++)); do {}; done",
        "while {}; do break; done",
    ),
    *("{{ {}; }}", "({})", "f() {{ {}; }}; f forbidden", 'f() {{ "$@"; }}; f {}', "function f {{ {} }}; f", "{} && {}"),
    *("case x in (x) {};; esac", "[[ a == a ]] && {}", "[[ a && {} ]] || {}", "(({}))", "{}; {}", "{} | {}", "{} & {}"),
    *("{}\n{}", "{} # it's\n{}", 'echo "$({})"', "echo `{}`", 'echo "a `{}` \'b"', "echo ${{q:-$({})}}", "cat <({})"),
    *("a=$({}) ls", "a=($({}))", "cat <<E\n$({})\nE\n{}", "cat <<'E'\n$({})\nE\n{}", 'cat <<-"E"\n\'\n\tE\n{}'),
    *("cat <<E; {}\nx'\nE\n", "echo $((1+1)); {}", "echo $(( $({}) ))", "echo '#' x#y; {}", "echo 'it'\\''s'; {}"),
    *("{} &! {}", "echo $'a\\'b'; {}", "bash -c '{}'", "bash <<'E'\n{}\nE", "trap '{}' EXIT", "if [[ 1 ]] {{ {} }}"),
    *(
        "for i (a b) {}",
        "{{ {} }} always {{ {} }}",
        "() {{ {} }} {}",
        "y='a[$({})]'; echo $((y))",
        "functions[k]='{}'; k",
    ),
)
NOISE = (*"'\"`$(){};&|<>#\\ \n*?[]=!~^-", "$(", "${", "<<E", "\nE\n")


def a_command(choice: random.Random) -> str:
    words = [choice.choice(PREFIXES) for _ in range(choice.choice((0, 0, 1, 1, 2)))]
    return " ".join((*words, choice.choice(NAMES), choice.choice(("", "x", "*", "'a b' >o", '"$w"', "{}", "\\;"))))


def a_line(choice: random.Random, depth: int = 0) -> str:
    if depth > 2 or choice.random() < 0.35:
        return a_command(choice)
    shape = choice.choice(SHAPES)
    return shape.format(*(a_line(choice, depth + 1) for _ in range(shape.count("{}"))))


def with_noise(choice: random.Random, line: str) -> str:
    for _ in range(choice.choice((0, 0, 1, 2))):
        at = choice.randrange(len(line))
        line = line[:at] + choice.choice((*NOISE, "")) + line[at + choice.choice((0, 1)) :]
    return line


@pytest.mark.parametrize("seed", range(3))
def test_no_line_starts_it_unseen(stage: Stage, seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - the same lines each time
    shells = [shell for shell in ("bash", "zsh", "dash") if shutil.which(shell)]
    lines: set[str] = set()
    for _ in range(50_000):
        line = with_noise(choice, a_line(choice))
        if may_match(RULE, line) is None:
            lines.add(line)
        if len(lines) == 60:
            break
    assert len(lines) == 60
    assert [(shell, line) for line in sorted(lines) for shell in shells if stage.runs(shell, line)] == []
