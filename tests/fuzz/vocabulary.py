"""What lines of the fuzzer are made of, and the hostile surroundings that they meet.

``mark`` is the program that no pattern names. A text that starts it when a shell takes the text for more than a word
is a payload. No name here is of a program that could do harm, were the real one ever started; ``kill`` and ``suspend``
are left out for that.
"""

from __future__ import annotations

import shutil
import subprocess


def _split(*lines: str) -> tuple[str, ...]:
    return tuple(word for line in lines for word in line.split())


#: Programs that patterns name, and words that often follow.
PROGRAMS = ("ls", "docker", "dockerx", "git", "npm", "make", "tool", "env", "nice")
#: Builtins and words with a meaning of their own, in any version of bash, dash, zsh or ksh.
FIXED = _split(
    ". : [ [[ alias autoload bg bind bindkey break builtin bye caller cd chdir command compadd comparguments",
    "compcall compctl compdescribe compfiles compgen compgroups complete compopt compquote compset",
    "comptags comptry compvalues continue coproc declare dirs disable disown echo echotc echoti emulate",
    "enable eval exec exit export false fc fg float functions getln getopts hash help history integer jobs",
    "let limit local log logout mapfile nameref nocorrect noglob popd print printf private pushd pushln pwd",
    "r read readarray readonly rehash repeat return sched set setopt shift shopt source strftime sysread",
    "syswrite test time times trap true ttyctl type typeset ulimit umask unalias unfunction unhash unlimit",
    "unset unsetopt vared wait whence where which zcompile zcurses zformat zftp zle zmodload zparseopts zprof",
    "zpty zregexparse zselect zsocket zstat zstyle zsystem ztcp",
)
_LEFT_OUT = frozenset(("kill", "suspend", "-"))


def _asked(shell: str, question: str) -> list[str]:
    program = shutil.which(shell)
    if program is None:
        return []
    words = [program, *(["--norc"] if shell == "bash" else ["-f"]), "-c", question]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=20).stdout.split()


#: Every name that an installed shell does itself, and those that some other version does.
BUILTINS = tuple(
    sorted(
        {*FIXED, *_asked("bash", "compgen -b"), *_asked("zsh", "print -l ${(k)builtins} ${(k)reswords}")} - _LEFT_OUT
    )
)
NAMES = (*PROGRAMS, *(name for name in BUILTINS if name not in {".", "/"}))

#: Anything may stand in settings: besides the patterns that people write, one for each builtin.
PATTERNS = (
    *("ls:*", "docker *", "docker*", "git * main", "npm run test", "A=1 npm ci", "make -n", "tool:*", "[ *"),
    *("env A=1 npm", "nice:*", "echo:*", "printf:*", "test:*", "read:*", "cd:*", "d/tool:*"),
    *(f"{name}:*" for name in BUILTINS),
)

#: What the surroundings hold: nobody who writes a line can know that a variable is harmless.
VARIABLES = {
    "A": "PATH[$(mark)]",  # zsh looks at a subscript only if there is such a variable
    "B": "A",
    "C": "-v PATH[$(mark)]",
    "D": "-v",
    "F": "%d",
    "G": "$(mark)",
    "H": "`mark`",
    "N": "x\nmark",
    "P": "PATH",
    "Q": "'; mark; '",
    "S": "; mark",
    "T": "*",
    "U": "mark",
    "W": "=mark",
    "X": "",
    "Y": "${ mark; }",
    "Z": "(mark)",
}

#: Files in the working directory: a pattern becomes their names.
FILES = {
    "-v": "",
    "a[$(mark)]": "",
    "c": "mark\n",
    "d/c": "mark\n",
    "d/d/c": "mark\n",
    ";mark": "",
    "=ls": "",
    "x\nmark": "",
    "PATH": "",
    "é": "",
}
GLOBS = ("-*", "-?", "[-]v", "a*", "*]", "a?*", "P*", "PAT[H]", "*", "?", "x*", "*k", "~", "~+", "[a-c]", "d/*", "**")

#: Each starts mark, or makes a name mean another program, in some place where some shell takes it for code.
PAYLOADS = (
    *("PATH[$(mark)]", "path[`mark`]", "_[$(mark)]", "HOME[${ mark; }]", "RANDOM+PATH[$(mark)]"),
    *(
        "a[$(mark)]",
        "a[`mark`]",
        "$(mark)",
        "`mark`",
        "a[${ mark; }]",
        "a[${|mark; }]",
        "a[$[$(mark)]]",
        "1+a[$(mark)]",
    ),
    *("mark", "mark;", ";mark", "|mark", "&mark", "\nmark\n", "<(mark)", "=(mark)", "*(e:mark:)", "*(+mark)"),
    *("${(e)G}", "$G", "${G@P}", "${A}", "A", "B", "$A", "a[A]", "a[B]", "a[$A]", "c[\\x24(mark)]", "c[\\044(mark)]"),
    *("PATH", "path", "PATH=$EVIL", "path[1]", "PATH[1]", "BASH_CMDS[ls]", "commands[ls]", "BASH_ALIASES[ls]"),
    *("aliases[ls]", "galiases[ls]", "functions[ls]", "ls=mark", "ls=docker", "-gls=mark", "CDPATH", "IFS", "ENV"),
    *("BASH_ENV", "PS4", "FPATH", "LD_PRELOAD", "_", "x", "d", "c", "./c", "d/c", "mark #", "cd d", "cd d;:"),
    *("x=a[$(mark)]", "x=y", "%d", "%s", "%b", "%n", "%(mark)T", "%q", "%*d", "\\x24(mark)", "\\$(mark)", "$EVIL"),
    *("${Z}", "$Z", "$'\\x24(mark)'", "EXIT", "DEBUG", "ERR", "0", "1", "-1", "+0", "1+1", "", " ", "-", "--", "="),
    *("==", "!=", "-eq", "-lt", "-a", "-o", "(", ")", "!", "]", "-v", "-t", "-n", "sh", "zsh/parameter", "zsh/stat"),
    *(
        "zsh/system",
        "zsh/zpty",
        "autocd",
        "expand_aliases",
        "extglob",
        "globsubst",
        "cshnullglob",
        "patsub_replacement",
    ),
)

#: Options that some builtin takes a command, a variable or a file with.
OPTIONS = (
    *(
        "-v",
        "-C",
        "-c1",
        "-F",
        "-W",
        "-e",
        "-p",
        "-P",
        "-a",
        "-A",
        "-i",
        "-u",
        "-s",
        "-m",
        "-M",
        "-L",
        "-f",
        "-x",
        "-k",
    ),
    *("-d", "-D", "-g", "-G", "-l", "-n", "-N", "-o", "-O", "-r", "-R", "-t", "-T", "-z", "-Z", "+o", "+x", "-S", "-X"),
    *("-w", "-b", "-q", "-E", "-I", "-U", "-H", "-K", "-V", "-Q", "-y", "-1", "+1", "-0", "--help", "-vx", "-vPATH"),
)

#: Builtins that a reader may call plain, if their words are: the border is worth the most lines.
PLAIN = (
    *(
        "test",
        "test",
        "test",
        "printf",
        "printf",
        "printf",
        "echo",
        "cd",
        "pwd",
        "exit",
        "wait",
        "type",
        "which",
        "whence",
    ),
    *("where", "true", "false", ":", "times"),
)
#: What a format is put together from.
FORMATS = (
    *(
        "%s",
        "%s",
        "%d",
        "%i",
        "%x",
        "%b",
        "%q",
        "%c",
        "%5s",
        "%-s",
        "%.3s",
        "%*s",
        "%.*s",
        "%n",
        "%(%s)T",
        "%'d",
        "% s",
    ),
    *(
        "%ls",
        "%hhd",
        "%1$s",
        "%1$d",
        "%+s",
        "%#s",
        "%0s",
        "%Q",
        "%e",
        "%",
        "%%",
        "%%d",
        "%s%d",
        "\\x24",
        "\\044",
        "\\44",
    ),
    *(
        "\\u0024",
        "\\n",
        "\\c",
        "\\",
        "\\\\",
        '\\"',
        "\\'",
        "x",
        "-",
        "--",
        "-v",
        "$(mark)",
        "a[$(mark)]",
        "%d\\n",
        "%v",
        "%a",
    ),
)
#: What test looks at, and how.
TESTS = (
    *("-e", "-f", "-n", "-z", "-d", "-o", "-a", "!", "(", ")", "=", "==", "!=", "=~", "<", ">", "-nt", "-ef", "-eq"),
    *("-lt", "-v", "-R", "-t", "-N", "-O", "0", "1", "08", "-1", "+1", "1+1", "A", "PATH", "c", "d", "", " ", "x", "]"),
    *("-pcre-match", "-prefix", "-after", "PATH[$(mark)]", "a[$(mark)]", "$(mark)", "0x1", "1e1", "16#f", "*", "(#m)*"),
)

#: Words of two or more commands that matter only together.
DUOS = (
    ("printf -v x {p}", "printf -v {p} x"),
    ("printf -v b {p}", "test -v 'a[b]'"),
    ("echo {p}", "read {p}"),
    ("read {p}", "ls"),
    ("printf -v {p} %s $EVIL", "ls"),
    ("alias ls={p}", "ls d"),
    ("hash -p $EVIL/ls ls", "ls"),
    ("set -k", "ls {p}"),
    ("set -x", "ls {p}"),
    ("set {p}", "shift {p}"),
    ("cd d", "tool {p}"),
    ("cd d", "d/tool {p}"),
    ("cd $EVIL", "ls {p}"),
    ("shopt -s expand_aliases", "alias ls=mark"),
    ("setopt globsubst", "ls $T"),
    ("getopts {p} x", "ls"),
    ("echo {p}", "mapfile {p}"),
    ("pushd d", "popd {p}"),
    ("trap {p} EXIT", "ls"),
    ("ls {p}", "mark"),
    ("alias ls='cd d'", "ls {p}"),
    ("echo x", "mapfile -C {p} -c1 x"),
    ("emulate {p} -c {p}", "ls"),
)

#: Pieces of syntax that a reader may take for a piece of a word, or the other way round.
SYNTAX = (
    *(
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        "\\\n",
        " \\\n",
        ";",
        "; ",
        " && ",
        " || ",
        " | ",
        " & ",
        "&",
        "|&",
        "&!",
        "&|",
        ";|",
    ),
    *(";;", ";&", "'", '"', "\\", "''", '""', "$", "$(", ")", "(", "((", "))", "`", "{", "}", "{ ", "; }", "${", "${ "),
    *("${|", "$[", "$((", "$'", '$"', "${(e)G}", "${A:-", "${!A}", "$A[1]", "$A:h", "$_", "$?", "$#", "$0", "$$", "$!"),
    *(
        "#",
        " # ",
        " #\n",
        "!",
        "!!",
        "!$",
        "^",
        "~",
        "=",
        "=ls",
        " =mark",
        "[",
        "]",
        "*",
        "?",
        "**",
        "(e:mark:)",
        "<",
        ">",
    ),
    *(
        " > x",
        " >> x",
        " < c",
        " >| x",
        " <<< x",
        " <<E\n",
        "\nE\n",
        " 2>&1",
        " >&2",
        " >&x",
        " &> x",
        " <> x",
        " 9>&1",
    ),
    *(" >/dev/null", " 2>/dev/null", " </dev/null", "<(mark)", ">(mark)", "=(mark)", "$(mark)", "$(ls)", "$(ls d)"),
    *(
        '"$(ls)"',
        "`mark`",
        "\u00e9",
        "\u3000",
        "\u0100",
        "\u0a00",
        "\u2028",
        "\xa0",
        "\x85",
        "\r",
        "\x0b",
        "\x0c",
        "\x1b",
    ),
    *("\x00", "\udc80", "A=1 ", "PATH=$EVIL ", "A=1 npm ci", "x+=1 ", "x[1]=2 ", "if ", "then ", "! ", "time ", "-- "),
)
