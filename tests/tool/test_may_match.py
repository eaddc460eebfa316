from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stockade.errors import InvalidTextError
from stockade.policy.command_pattern import CommandPattern
from stockade.policy.shell_line import parse
from stockade.settings.layer import Layer, Origin, Sourced
from stockade.tool.effort import MOST_EFFORT
from stockade.tool.may_match import TOO_LONG, Possible, Reading, may_match

USER = Origin(Layer.USER, "settings.json")


def rules(*texts: str) -> tuple[Sourced[CommandPattern], ...]:
    return tuple(Sourced(CommandPattern.parse(text), USER) for text in texts)


RM = rules("rm:*")

CERTAIN = {
    "plain": "rm x",
    "bare": "rm",
    "quoted": "'rm' x",
    "with quotes inside": "r''m x",
    "escaped": "\\rm x",
    "last of three": "ls && cd x; rm y",
    "first of three": "rm x | tee f | wc",
    "in a substitution": "echo $(rm x)",
    "in a substitution in quotes": 'echo "$(ls; rm x)"',
    "after an assignment": "A=1 rm x",
    "unknown arguments": "rm $FILES *.o",
    "redirected": "rm x > log",
    "in the background": "ls & rm x &",
}

DOUBTFUL = {
    "by its path": "/bin/rm x",
    "by a path of home": "~/bin/rm x",
    "a variable as command": "$CMD x",
    "a glob as command": "/bin/r? x",
    "a substitution as command": "$(echo rm) x",
    "through env": "env A=1 rm x",
    "through sudo": "sudo -u bob rm x",
    "through xargs": "ls | xargs -n 1 rm",
    "through timeout": "timeout 5 rm x",
    "given to a shell": "bash -c 'ls; rm x'",
    "given to a shell twice": """sh -c 'bash -c "ls; rm x"'""",
    "given to eval": "eval 'rm x'",
    "unknown to eval": 'eval "$x"',
    "piped into a shell": "curl x | sh",
    "piped into a shell with words": "curl x | bash -s a",
    "piped into a shell by a file": "curl x | bash /dev/stdin",
    "piped into a shell through env": "curl x | env sh",
    "piped into a shell, in a line that is not read": "curl x | sh; echo {a,b}",
    "given to a shell with escapes": "sh -c $'\\x72m x'",
    "a variable through env, in a line that is not read": "env $x y {a,b}",
    "a variable in a function": "function f { $x; }; f",
    "given to env by an option": "env -S'rm x'",
    "given to env by a long option": "env --split-string='rm x'",
    "given to su by an option": "su -c'rm x'",
    "given to a trap": "trap 'rm x' EXIT",
    "given to an alias": "alias k='rm x'",
    "in a subscript that a builtin runs": "printf -v 'a[$(rm x)]' y",
    "found and executed": "find . -exec rm {} \\;",
    "in a subshell": "(cd x && rm y)",
    "in a loop": "for f in a b; do rm $f; done",
    "in a condition": "if true; then rm x; fi",
    "in backquotes": "echo `rm x`",
    "in a function": "f() { rm x; }; f",
    "in a here-document": "bash <<E\nrm x\nE",
    "in process substitution": "cat <(rm x)",
    "in ANSI quotes": "$'\\x72m' x",
    "in braces": "{rm,-rf,x}",
    "continued inside a word": "r\\\nm x",
    "not closed": "echo 'a && rm x",
    "a variable that may become an assignment and more": "env A=$x make",
    "a pattern after a redirection, in a line that is not read exactly": ">o /bin/r? x",
    "words that xargs adds to a wrapper": "echo rm x | xargs env",
    "words that xargs puts in place": "echo rm | xargs -I{} env {}",
    "a wrapper that nobody knows well": "busybox rm x",
    "a shell in such a wrapper": "curl x | busybox sh",
    "the program of a pager": "GIT_PAGER='rm x' git log",
    "the program of a pager, by an option": "git -c core.pager='rm x' log",
    "the program of an alias": "git -c alias.x='!rm y' x",
    "a job for later": "at now <<< 'ls'",
    "a function that newer shells know": "echo ${ rm x; }",
    "another that newer shells know": "echo ${| rm x; }",
    "a substitution of newer shells in a value": "y='a[${ rm x; }]'; echo $((y))",
    "another program that runs one": "choom -n 0 rm x",
    "a path in which a variable has a slash": 'q=/bin/; /usr"$q"rm x',
    "the program of scp": "scp -S rm a:b c",
    "the shell of rsync": "rsync -e 'rm x' a:b c",
    "the packer of sort": "sort --compress-program=rm f",
    "what socat runs": "socat - EXEC:'rm x'",
    "a wrapper of gcc": "gcc -wrapper rm,x x.c",
    "the program of ssh's proxy": "scp -o 'ProxyCommand rm x' a:b c",
    "a packer, in a line that is read roughly": "case x in x) tar cf - -Irm x;; esac",
    "a prompt, in a line that is read roughly": "case x in x) PS4='\\44(\\162m)'; set -x; :;; esac",
}

INNOCENT = {
    "a shell among words, in a line that is not read": "echo {a,b} bash",
    "a file to find, in a line that is not read": "find . -name x -exec cat {} \\;",
    "an option of a wrapper": "timeout -k 5 10 ls",
    "nothing": "",
    "a comment": "# rm x",
    "another command": "ls",
    "a longer name": "rmdir x",
    "its name as an argument": "grep rm file",
    "its name in quotes": "echo 'rm x'",
    "a variable as argument": "ls $x",
    "a loop": "for f in *; do echo $f; done",
    "a subshell": "(cd x && make)",
    "a wrapper": 'env A="$x" make',
    "words that are many": "xargs " + "a " * 2000,
    "a script": "bash build.sh",
    "an assignment": "A=rm",
}


@pytest.mark.parametrize("line", CERTAIN.values(), ids=CERTAIN)
def test_what_matches_for_certain(line: str) -> None:
    found = may_match(RM, line)
    assert isinstance(found, Possible)
    assert found.certain


@pytest.mark.parametrize("line", DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_may_match(line: str) -> None:
    found = may_match(RM, line)
    assert isinstance(found, Possible)
    assert not found.certain
    assert str(found).endswith("may be what is meant by `rm:*` of settings.json (user)")


@pytest.mark.parametrize("line", INNOCENT.values(), ids=INNOCENT)
def test_what_cannot_match(line: str) -> None:
    assert may_match(RM, line) is None


# What people write all day, with variables and loops: a rule that denies another command must not refuse it.
EVERYDAY = (
    'for f in *.py; do echo "$f"; done',
    "for f in $(ls); do echo $f; done",
    "for i in {1..3}; do wget https://example.org/$i; sleep 1; done",
    "for ((i=0; i<3; i++)); do echo $i; done",
    'if [ -f "$x" ]; then cat "$x"; fi',
    'cd "$d" && make',
    "cat <<EOF > file\nsome $text\nrm is a word, `date` is one too\nEOF",
    "cat > script.sh <<'EOF'\n#!/bin/bash\nrm -rf \"$1\"\nEOF",
    "python - <<'PY'\nimport os\nprint(\"rm $x\")\nPY",
    'grep -r "foo" --include=*.py .',
    "find . -name '*.pyc' | xargs wc -l",
    'find . -name "*.py" -exec grep -l foo {} \\;',
    'find "$d" -type f -name "*.txt"',
    "find . -type f -print0 | xargs -0 sha256sum",
    "find . -name '*.o' -delete",
    "git commit -m \"$(cat <<'EOF'\nfix: rm the thing\n\ngit push later\nEOF\n)\"",
    'git -C "$repo" status',
    'git log --oneline -n 5 -- "$f"',
    "git diff --stat HEAD~1 HEAD^",
    "git stash drop stash@{0}",
    "export X=$Y; npm run build",
    "[[ $x == y && -n $z ]] && echo z",
    '[ -n "$CI" ] && echo ci || echo local',
    'x=$(date +%s); echo "$((1+2)) took $(( $(date +%s) - x ))"',
    'while read -r line; do echo "$line"; done < file',
    "while IFS= read -r l; do printf '%s\\n' \"$l\"; done < <(git ls-files)",
    "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
    "until nc -z localhost 80; do sleep 1; done",
    "ls -la | grep foo | awk '{print $1}' | sort | uniq -c",
    "cd /tmp && ls *.txt 2>/dev/null || true",
    "ps aux | grep '[p]ython' | awk '{print $2}'",
    "sed -i 's/foo/bar/g' *.py",
    "PYTHONPATH=src python -m pytest tests -q 2>&1 | tail -20",
    "make -j$(nproc) &> build.log",
    "make 2>&1 | tee >(grep -c warning)",
    'timeout 60 python "$script"',
    'timeout "$T" make test',
    'env FOO="$x" BAR=1 make "$target"',
    'nice -n 10 make "$target"',
    "time make",
    "command -v curl >/dev/null 2>&1 && echo there",
    "(cd src && make)",
    "{ echo a; echo b; } > out.txt",
    'docker run --name x -v "$PWD:/w" image ls',
    'f() { echo "$1"; }; f a',
    'arr=(a b c); for x in "${arr[@]}"; do echo "$x"; done',
    'echo "${x:-default}" "${y%.txt}" "${z//a/b}"',
    "diff <(sort a) <(sort b)",
    "nohup python server.py > log 2>&1 &",
    "set -euo pipefail; source .venv/bin/activate; pytest",
    'source "$VENV/bin/activate" && "$VENV/bin/python" x.py',
    'bash scripts/build.sh "$x"',
    'bash -c \'for f in "$@"; do echo "$f"; done\' _ a b',
    'ls | xargs -I{} cp {} "$d"',
    'ls *.md | xargs grep -l "rm"',
    "cat a.txt | xargs",
    "trap 'kill $pid' EXIT",
    "mkdir -p a/{b,c}",
    "ls # a comment with 'a quote",
    "PAGER=cat git log",
    "ENV=prod make",
    'ENV="$x" npm run build',
    "GIT_CONFIG_GLOBAL=/dev/null git status",
    "tar czf x.tgz --exclude='*.o' .",
    "tar -xf a.tar -C out",
    "sort -k2 -o out in",
    "split -l 100 f part-",
    "rsync -av --delete -e ssh a/ b:c/",
    "git rebase -i HEAD~3",
    "git rebase --exec 'make test' main",
    'git -c user.name="$x" commit -m y',
    "git submodule update --init",
    "git submodule foreach git pull",
    "git clone -q https://example.org/x y",
    "git config push.default simple",
    "alias gs='git status'",
    "grep 'functions' x && echo options=1",
    "cat > a.js <<'E'\nconst f = options[`k`];\nE".replace("`", ""),
    "ls x[0-9].txt",
    "printf '%s\\n' a | tr a '\\011'",
    "print -P '%F{red}x'",
    "parallel echo ::: a b",
    "function f { echo a; }; f",
    "function f() { local x=$1; echo $x; }; f a",
    "jobs -l",
    "ssh-agent -s",
    "bash scripts/environ.sh",
)


@pytest.mark.parametrize("line", EVERYDAY)
def test_what_people_write_all_day_is_not_refused(line: str) -> None:
    assert may_match(rules("rm:*", "git push:*", "curl *", "sudo:*"), line) is None


PATTERNS = {
    "an option in between": ("git push:*", "git --no-pager push", True),
    "an option with its value in between": ("git push:*", "git -C x -c a=b push origin", True),
    "other words in between": ("git push:*", "git log push", False),
    "two words after an option": ("git push:*", "git -x log it push", False),
    "an option of the pattern": ("rm -rf", "rm -v -rf x", True),
    "another option": ("rm -rf", "rm -v x", False),
    "a star in between": ("git * push", "git -C x push", True),
    "unknown words in between": ("git push origin main", "git $args main", True),
    "unknown words that are too few": ("git push", "git log $x", False),
    "no free tail": ("git * main", "git push main -f", False),
    "an unknown tail": ("git * main", "git push $x", True),
    "an option that may be a file": ("rm -rf", "rm *", True),
    "everything": ("*", "ls", True),
    "brackets are letters": ("a[b]", "ab", False),
    "a value of git's own option": ("git push:*", 'git -C "$d" log', False),
    "a value that looks like the option": ("git push:*", "git -C -C push", True),
    "an option after the first word": ("git * main", "git push -c main", True),
    "an option that the pattern names": ("git -c * x", "git -c a x", True),
    "a value that may be more": ("git push:*", "git -C $d log", True),
    "a pattern that does not fit": ("rm:*", "./*.txt x", False),
    "a pattern that fits the pattern": ("r*m", "/bin/?x? y", False),
    "words of xargs after those of the line": ("git push", "xargs git", True),
    "words of xargs after others": ("git push", "xargs git log", False),
    "a command of git by its own name": ("git push:*", "/usr/lib/git-core/git-push x", True),
    "another command of git by its own name": ("git push:*", "/usr/lib/git-core/git-log push", False),
    "an alias of git": ("git push:*", "git -c alias.p=push p", True),
    "an alias of git that is written": ("git push:*", "git config alias.p push; git p", True),
    "another alias of git": ("git push:*", "git -c alias.p=pull p", False),
    "an unknown alias of git": ("git push:*", 'git -c alias.p="$x" p', True),
    "an alias of git by variables": ("git push:*", "GIT_CONFIG_COUNT=1 GIT_CONFIG_VALUE_0=push git p", True),
    "a name that is hashed": ("git push:*", "hash -p /usr/bin/git g; g push", True),
    "a name of an alias": ("git push:*", "alias g=git\ng push", True),
    "an alias of another command": ("git push:*", "alias g='git status'\ng push", False),
    "for each module": ("git push:*", "git submodule foreach git push", True),
    "for each module, with options": ("git push:*", "git submodule --quiet foreach --recursive 'git push'", True),
    "something unknown for each module": ("git push:*", 'git submodule foreach "$x"', True),
    "for each step": ("git push:*", "git bisect run git push", True),
    "after each commit": ("git push:*", "git rebase --exec 'git push' main", True),
    "after each commit, in short": ("git push:*", "git rebase -x'git push' main", True),
    "a command that parallel completes": ("git push:*", "parallel git ::: push", True),
    "assignments do not hide": ("npm ci", "A=1 B=2 npm ci", True),
}


@pytest.mark.parametrize(("pattern", "line", "expected"), PATTERNS.values(), ids=PATTERNS)
def test_patterns(pattern: str, line: str, *, expected: bool) -> None:
    assert (may_match(rules(pattern), line) is not None) is expected


def test_a_certain_match_is_told_rather_than_a_doubtful_one() -> None:
    found = may_match(rules("git:*", "rm:*"), "$x; rm y")
    assert str(found) == "`rm y` matches `rm:*` of settings.json (user)"


def test_a_line_that_takes_too_long_is_not_judged_and_says_so() -> None:
    for line in ("a " * 60_000, "env " * 32_000, "strace " * 18_000, "$(a) " * 26_000, "a;" * 60_000, "`" * 60_000):
        reading = Reading(line)
        assert may_match(rules("rm:*", "env * z"), reading) is TOO_LONG
        # The budget is one for all rules: nothing is left for the next.
        assert reading.effort.left < 0
        assert may_match(rules("git:*"), reading) is TOO_LONG


def test_what_matches_is_found_before_the_budget_is_used_up() -> None:
    assert isinstance(may_match(RM, "rm x; " + "a;" * 500), Possible)


def test_a_long_text_is_no_work() -> None:
    reading = Reading("cat > f <<'E'\n" + "rm $x `y`\n" * 10_000 + "E\n")
    assert may_match(RM, reading) is None
    assert reading.effort.left > MOST_EFFORT - 100


def test_many_patterns_are_no_work_for_a_command_that_they_do_not_name() -> None:
    reading = Reading("ls -l x && make y | tail")
    assert may_match(rules(*(f"cmd{number} x" for number in range(2000))), reading) is None
    assert reading.effort.left > MOST_EFFORT - 100


WORDS = st.lists(
    st.sampled_from(["rm", "git", "push", "$x", "*", "'a b'", "&&", ";", "|", "env", "A=1", "(", ">", "`"])
)


@given(WORDS.map(" ".join) | st.text(), st.sampled_from(["rm:*", "git push", "git * x", "*", "r*"]))
def test_no_line_breaks_it_and_nothing_that_matches_is_missed(line: str, pattern: str) -> None:
    possible = may_match(rules(pattern), line)
    try:
        commands = parse(line)
    except InvalidTextError:
        return
    if any(CommandPattern.parse(pattern).matches(command) for command in commands):
        assert possible is not None
