"""The search for a line that breaks the promise: make lines, ask the reader, run what it lets pass, look at deeds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from grammar import Grammar, is_harmless
from promise import breaches, is_covered, is_read, stays
from shells import WAYS, Line, installed
from stockade.errors import InvalidTextError
from stockade.policy.shell_line import parse
from stockade.tool.directory import shell_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from promise import Judge
    from shells import Outcome, Shell
    from world import Deed, World

BATCH = 200
#: One batch in so many is traced; runs by ``SHELL -c``, too; runs in shells that are another's sh.
TRACED, PLAIN, AS_SH = 4, 2, 3
LOCALES = ("C.UTF-8", "C")
#: Of the lines that are read and not covered, one in so many runs: only where it ends is of interest.
SAMPLED = 5
_PIECES = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|\s+|.", re.DOTALL)


class Finding(NamedTuple):
    """A line that broke the promise in a shell; ``plain`` if ``SHELL -c`` shows it, not only a look at what is left."""

    shell: str
    line: str
    what: tuple[str, ...]
    plain: bool = False

    def __str__(self) -> str:
        """Return it in one line, with what is needed to see it again."""
        how = "" if self.plain else " (seen in what is left behind)"
        return f"{self.shell}: {self.line!a}: {'; '.join(self.what)}{how}"


class Search:
    """Tries lines in all shells of a world."""

    def __init__(self, world: World, judge: Judge = is_covered) -> None:
        self.world, self.judge = world, judge
        self.shells, self.as_sh = installed(world), installed(world, WAYS)
        #: What was found already: one line of a kind is enough.
        self.kinds: set[tuple[str, ...]] = set()
        self.made = self.covered = self.others = self.ran = self.batches = 0

    def lines(self, seed: int, known: Sequence[str], more: Callable[[int], bool]) -> Iterable[list[Line]]:
        """Yield batches of new lines that are worth a run, while there is to be more after so many."""
        grammar, seen = Grammar(seed, known), set[str]()
        batches: dict[bool, list[Line]] = {True: [], False: []}
        while more(self.made):
            self.made += 1
            text = grammar.line()
            if text not in seen and (line := self.admit(text)) is not None:
                seen.add(text)
                self.covered += line.covered
                self.others += not line.covered
                if not line.covered and self.others % SAMPLED:
                    continue
                batch = batches[line.covered]
                batch.append(line)
                if len(batch) == BATCH:
                    yield batch
                    batches[line.covered] = []
        yield from filter(None, batches.values())

    def admit(self, text: str) -> Line | None:
        """Return a line as one to run, if a promise is made about it and it cannot do harm here."""
        if not is_harmless(text):
            return None
        line = Line(text, self.judge(text), stays(text))
        return line if line.covered or (line.stays and is_read(text)) else None

    def replay(self, known: Sequence[str]) -> list[Finding]:
        """Run lines that are known, as far as a promise is made about them."""
        lines = [line for text in known if (line := self.admit(text)) is not None]
        return [
            finding
            for covered in (True, False)
            if (batch := [line for line in lines if line.covered is covered])
            for finding in self.run(batch)
        ]

    def run(self, batch: Sequence[Line]) -> list[Finding]:
        """Run lines in every shell; return what broke the promise, one line of each new kind, seen again alone."""
        found: list[Finding] = []
        self.batches += 1
        self.world.environment["LC_ALL"] = LOCALES[self.batches % len(LOCALES)]
        # As the sh of some system a shell has other rules; mostly they are stricter.
        for shell in (*self.shells, *(self.as_sh if self.batches % AS_SH == 0 else ())):
            self.ran += len(batch)
            suspects = self.suspects(shell, batch)
            if self.batches % PLAIN == 0 and batch[0].covered:
                # By eval a line is read at once, by -c bit by bit: the first commands may change how the rest is read.
                suspects += [batch[number] for number in self.blamed(batch, shell.run_each(batch))]
            for line in dict.fromkeys(suspects):
                if kind(shell.title, line.text) not in self.kinds:
                    found += self.confirm(shell, line)
                    self.kinds |= {kind(finding.shell, finding.line) for finding in found}
        return found

    def suspects(self, shell: Shell, batch: Sequence[Line]) -> list[Line]:
        """Return the lines of a batch that seem to have broken the promise."""
        # To be traced takes three times as long.
        outcome = shell.run_all(batch, traced=len(batch) < BATCH or self.batches % TRACED == 1)
        suspects = [batch[number] for number in sorted(self.blamed(batch, outcome))]
        is_attributed = {deed.line for deed in outcome.deeds} <= {str(number) for number in range(len(batch))}
        if not batch[0].covered or (not outcome.strange and is_attributed):
            return suspects
        # Something that belongs to no line: the halves tell which it was.
        if len(batch) == 1:
            return list(batch)
        half = len(batch) // 2
        found = self.suspects(shell, batch[:half]) + self.suspects(shell, batch[half:])
        return found or suspects

    def blamed(self, batch: Sequence[Line], outcome: Outcome) -> set[int]:
        """Return the numbers of the lines of a batch that programs ran for which should not have."""
        of_line: dict[str, list[Deed]] = {}
        for deed in outcome.deeds:
            of_line.setdefault(deed.line, []).append(deed)
        return {number for number, line in enumerate(batch) if breaches(line, of_line.get(str(number), []), self.world)}

    def confirm(self, shell: Shell, line: Line) -> list[Finding]:
        """Run a line alone, also as the product runs it; return what there is to say against it."""
        plain = self.against(line, shell.run(line.text))
        plain += self.against(line, shell.run_words(shell_words(shell.program, line.text, "/dev/null")))
        alone = self.against(line, shell.run_all([line]))
        what = tuple(dict.fromkeys(plain or alone))
        return [Finding(shell.title, line.text, what, plain=bool(plain))] if what else []

    def again(self, shell: Shell, line: Line, *, plain: bool) -> list[str]:
        return self.against(line, shell.run(line.text) if plain else shell.run_all([line]))

    def against(self, line: Line, outcome: Outcome) -> list[str]:
        return breaches(line, list(outcome.deeds), self.world) + (list(outcome.strange) if line.covered else [])

    def minimise(self, finding: Finding) -> Finding:
        """Return a shorter line that breaks the promise in the same shell."""
        shell = next(shell for shell in (*self.shells, *self.as_sh) if shell.title == finding.shell)
        best, covered = finding, self.judge(finding.line)
        for size in _sizes(len(_PIECES.findall(best.line))):
            at = 0
            while at < len(pieces := _PIECES.findall(best.line)):
                line = self.admit("".join(pieces[:at] + pieces[at + size :]))
                same = line is not None and line.covered == covered and line.text != best.line
                if line is not None and same and (what := self.again(shell, line, plain=finding.plain)):
                    best = finding._replace(line=line.text, what=tuple(what))
                else:
                    at += 1
        return best


def _sizes(count: int) -> tuple[int, ...]:
    """Return how many pieces to leave out at once: first many, then few."""
    large = [count >> shift for shift in range(1, count.bit_length()) if count >> shift > 3]
    return (*large, 3, 2, 1, 2, 1)


def kind(shell: str, line: str) -> tuple[str, ...]:
    """Return what findings have in common that come from one cause, more or less: shell, and names of commands."""
    try:
        names = {command.words[0].text for command in parse(line) if command.words}
    except InvalidTextError:
        names = {line}
    return shell, *sorted(names)
