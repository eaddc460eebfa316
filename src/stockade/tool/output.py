"""Results in words: for the model, with what was refused and how to go on; for people, without the tags.

Rules: the output comes first, as it was printed, with nothing in it that could be taken for our tags; then the block
of violations; then one line for each thing that the output does not say. A failure that carries the marks of the
sandbox is said to, in one line that tells how to proceed in this mode. Where no bypass exists, none is spoken of.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.tool.placement import Place
from stockade.violations.annotation import annotate, neutralise, strip

if TYPE_CHECKING:
    from stockade.tool.ending import Ending
    from stockade.tool.placement import Placement
    from stockade.tool.shell_result import ShellResult

#: What programs say when a wall is in their way, in lower case. Other causes say the same: hence "looks like".
MARKS: Final = (
    "blocked by stockade",
    "read-only file system",
    "operation not permitted",
    "permission denied",
    "network is unreachable",
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "erofs",
    "eacces",
    "eperm",
)


def for_model(result: ShellResult) -> str:
    """Return a result as a model gets it."""
    if result.refusal:
        return _lines("", [f"The command did not run: {result.refusal}", *_notes(result)])
    text = annotate(result.output, result.violations, dropped=result.violations_dropped)
    return _lines(text, [*_endings(result), *_notes(result), *([f"[{result.advice}]"] if result.advice else [])])


def for_people(result: ShellResult) -> str:
    """Return a result as people get it: what was refused is told to them apart, and advice is not for them."""
    return strip(for_model(result.but(advice="")))


def advise(output: str, ending: Ending, placement: Placement, *, may_bypass: bool, is_child: bool = False) -> str:
    """Return one line about a failure that looks like the sandbox, or nothing; ``may_bypass``: one may be asked for."""
    if placement.place is not Place.INSIDE or ending.exit_code == 0:
        return ""
    mark = _mark(output, ending)
    if not mark:
        return ""
    looks = f"This failure looks like the sandbox ({mark})."
    if may_bypass:
        return (
            f"{looks} If the task needs it, tell the person which setting would allow it, or call again with "
            "dangerouslyDisableSandbox: they decide, for that call only."
        )
    if is_child:
        return f"{looks} A sub-agent cannot change that: go on without it, or report it to the agent that called you."
    return f"{looks} Nothing runs outside it here: go on without it, or tell the person which setting would allow it."


def _mark(output: str, ending: Ending) -> str:
    if ending.violations:
        return ending.violations[-1].brief()
    # The cause is mostly near the end; and nothing that a command prints may cost much here.
    low = output[-4000:].lower()
    return next((f'"{mark}"' for mark in MARKS if mark in low), "")


def _endings(result: ShellResult) -> list[str]:
    if result.job:
        return [f"[started in the background as {result.job}]"]
    if result.timed_out:
        return [f"[ended after {result.seconds:.0f} seconds, with all that it started: the timeout was reached]"]
    if result.signal is not None:
        return [f"[ended by signal {result.signal}]"]
    if result.exit_code:
        return [f"[exit status {result.exit_code}]"]
    return [] if result.output or result.violations else ["[no output]"]


def _notes(result: ShellResult) -> list[str]:
    return [f"[{note}]" for note in result.notes]


def _lines(text: str, more: list[str]) -> str:
    if not more:
        return text
    gap = "\n" if text and not text.endswith("\n") else ""
    return f"{text}{gap}" + "\n".join(map(neutralise, more))
