from __future__ import annotations

import pytest

from stockade.tool.effort import Effort, TooMuchError
from stockade.tool.loose_line import read_loosely
from stockade.tool.possibility import ANYTHING, Possibility, Text
from stockade.tool.wrapper import possibilities

A = "(what cannot be seen)"


def found(line: str) -> set[str]:
    """Return what a command may run: words, texts after a ``#``."""
    (command,) = read_loosely(line, Effort())
    return {
        f"# {each.text}" if isinstance(each, Text) else f"{each}{' ...' if each.goes_on else ''}"
        for each in possibilities(command.words, Effort())
    }


# What is there, besides the line itself.
RUN = {
    "no wrapper": ('make "$x" rm', set()),
    "env": ("env A=1 make rm", {"make rm"}),
    "env with an unknown value": ('env A="$x" make', {"make"}),
    "env with a value that is split": ("env A=$x make", {A}),
    "env with options": ("env -i -u X make x", {"make x"}),
    "env with a long option": ("env --chdir x make y", {"x make y", "make y"}),
    "env that splits": ("env -S'a b' c", {"# env a b 'c'"}),
    "env that splits what is unknown": ('env -S"$x"', {A}),
    "sudo": ("sudo -u bob -- make x", {"make x"}),
    "a shell of sudo": ("sudo -s", {A}),
    "timeout": ('timeout -k 5 "$t" make "$x"', {'make "$x"'}),
    "timeout of an unknown command": ('timeout 5 "$x"', {'5 "$x"', '"$x"', A}),
    "nice": ("nice -n 5 make", {"make"}),
    "a name that only looks": ("command -v rm", set()),
    "a name that runs": ("command -p make", {"make"}),
    "exec": ("exec -a x make y", {"make y"}),
    "wrappers in wrappers": (
        "env A=1 nice timeout 5 make x",
        {"nice timeout 5 make x", "timeout 5 make x", "5 make x", "make x"},
    ),
    "xargs": ("xargs -0 -n 1 make x", {"make x ..."}),
    "xargs that repeats": ("xargs", set()),
    "xargs of a wrapper": ("xargs env", {"env ...", A}),
    "xargs with a mark": ("xargs -I{} cp {} x", {"cp {} x ..."}),
    "xargs with a mark as the command": ("xargs -I % % x", {"% x ...", A}),
    "a script": ('bash x.sh "$y"', {'x.sh "$y"'}),
    "a text": ("bash -c 'a b' c", {"# ", "# a b"}),
    "an unknown text": ('bash -c "$x"', {"# ", A}),
    "what a shell reads": ("bash", {A}),
    "what a shell reads after options": ("bash -es", {"# ", A}),
    "what a shell reads from a descriptor": ("bash /dev/fd/3", {A}),
    "an unknown script": ('bash "$x"', {A}),
    "a known script at an unknown place": ('bash "$x/y.sh"', {'"$x/y.sh"'}),
    "eval": ("eval a 'b c'", {"# a b c"}),
    "eval of something unknown": ('eval "$x"', {A}),
    "find": ("find . -name x", set()),
    "find that runs": ("find . -exec make {} \\;", {"make {} \\;", "\\;"}),
    "find that may run": ('find . "$x" make', {"make"}),
    "another wrapper": ("busybox make x", {"make x", "x"}),
    "a loader": ("/lib64/ld-linux-x86-64.so.2 /bin/ls", {"/bin/ls", "# /bin/ls"}),
    "an alias": ("alias k=make", {"k=make", "make", "make ...", "# k=make"}),
    "a trap": ("trap 'a b' EXIT", {"'a b' EXIT", "EXIT", "# a b"}),
}


@pytest.mark.parametrize(("line", "expected"), RUN.values(), ids=RUN)
def test_what_a_command_may_run(line: str, expected: set[str]) -> None:
    assert found(line) - {line} == expected


def test_an_unknown_name_may_be_a_wrapper() -> None:
    assert A in found('"$x" make')
    assert A in found("/bin/e* make")
    assert A not in found("/bin/q* make")
    assert A not in found('"$x/make" y')


def test_nested_wrappers_end() -> None:
    (command,) = read_loosely("strace bash -c x " * 4, Effort())
    assert Possibility(command.words, 1) in tuple(possibilities(command.words, Effort()))
    (command,) = read_loosely("find . -exec " * 9 + "a", Effort())
    assert ANYTHING in tuple(possibilities(command.words, Effort()))


@pytest.mark.parametrize(
    "text", ["env ", "xargs ", "strace ", "busybox env ", "env --a env ", "find . -exec ", "sudo -u x "]
)
def test_every_step_is_paid_for(text: str) -> None:
    (command,) = read_loosely(text * 1000, Effort())
    with pytest.raises(TooMuchError):
        tuple(possibilities(command.words, Effort(1000)))
