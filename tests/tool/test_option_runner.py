from __future__ import annotations

import pytest

from stockade.tool.effort import Effort, TooMuchError
from stockade.tool.loose_line import read_loosely
from stockade.tool.loose_word import plain
from stockade.tool.option_runner import run_by_git, run_by_options
from stockade.tool.possibility import Text

A = "(what cannot be seen)"


def found(line: str) -> set[str]:
    """Return what a program may run: words, texts after a ``#``."""
    words = read_loosely(line, Effort())[-1].words
    kind = words[0].shape
    each = run_by_git(words, Effort()) if kind == "git" else run_by_options(kind, words, Effort())
    return {f"# {one.text}" if isinstance(one, Text) else f"{one}{' ...' if one.goes_on else ''}" for one in each}


RUN = {
    "split": ("split --filter='a b' c", {"# a b"}),
    "split, in two words": ("split --filter 'a b' c", {"# a b"}),
    "split, cut short": ("split --fi='a b' c", {"# a b"}),
    "split of something unknown": ('split --filter="$x"', {A}),
    "split without a filter": ("split -l 3 a", set()),
    "tar": ("tar -cf x -I 'a b' c", {"# a b"}),
    "tar in one word": ("tar -cfIa x", {"# a"}),
    "tar without a dash": ("tar cIf a x", {"# a", "# x"}),
    "tar at a checkpoint": ("gtar --checkpoint-action=exec='a b'", {"# exec=a b", "# a b"}),
    "tar that only packs": ('tar czf "$x" --exclude="$y" a', set()),
    "gcc": ("gcc -wrapper a,b c", {"# a,b", "# a b"}),
    "scp": ("scp -o 'ProxyCommand a b' c:d e", {"# ProxyCommand a b", "# a b"}),
    "scp with an equals sign": ("scp -oProxyCommand='a b' c:d e", {"# ProxyCommand=a b", "# a b"}),
    "socat": ("socat - exec:'a b',pty", {"# a b"}),
    "socat that connects": ("socat - TCP:a:1", set()),
    "git": ("git log --exec a", set()),
    "an alias": ("git -c alias.a='b c' a d", {"git b c d ..."}),
    "an alias that is no command of git": ("git -c alias.a='!b c' a", {"# b c"}),
    "an unknown alias": ('git -c alias.a="$x" a', {A}),
    "an alias in capitals": ("git -c Alias.a=b a", {"git b ..."}),
    "an alias that is kept": ("git config --global alias.a 'b c'", {"git b c ..."}),
    "a setting that is kept and run": ("git config core.fsmonitor 'a b'", {"# a b"}),
    "a setting that is kept": ('git config user.name "$x"', set()),
    "an unknown key": ('git -c "$x=y" a', {A}),
    "a setting": ('git -c user.name="$x" -c a.b=c log', set()),
    "a setting that is run": ("git -c core.fsmonitor='a b' status", {"# a b"}),
    "a setting of the environment": ("git --config-env=a.b=C log", {A}),
    "the other end": ("git -C x clone -u 'a b' c", {"# a b"}),
    "the other end, cut short": ("git ls-remote --upload='a b' c", {"# a b"}),
    "a transport": ("git fetch 'ext::a b'", {"# a b"}),
    "each module": ("git submodule foreach --recursive a b", {"# a b"}),
    "each module, as text": ("git submodule foreach 'a; b'", {"# a; b"}),
    "each module, with an unknown word": ('git submodule foreach a "$x"', {'a "$x"'}),
    "each step": ("git bisect run a 'b c'", {"# a 'b c'"}),
    "each commit": ("git rebase -x 'a b' c", {"# a b"}),
    "modules that are read": ("git submodule update", set()),
}


@pytest.mark.parametrize(("line", "expected"), RUN.values(), ids=RUN)
def test_what_a_program_may_run(line: str, expected: set[str]) -> None:
    assert found(line) == expected


@pytest.mark.parametrize("kind", ["git", "tar"])
def test_words_are_paid_for(kind: str) -> None:
    words = (plain(kind),) * 1000
    with pytest.raises(TooMuchError):
        tuple(run_by_git(words, Effort(100)) if kind == "git" else run_by_options(kind, words, Effort(100)))
