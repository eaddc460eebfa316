"""Results in words: for the model, with what was refused and how to go on; for people, without the tags.

Rules: the output comes first, as it was printed, with nothing in it that could be taken for our tags; then the block
of violations; then one line for each thing that the output does not say. Tags and lines of ours carry the session's id
(see ``violations.mark``), so that no output can forge them; people see them without it. A failure that looks like the
sandbox is said to, in one line that tells how to proceed in this mode. Where no bypass exists, none is spoken of.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.escape import escape
from stockade.tool.placement import Place
from stockade.violations.annotation import annotate, neutralise
from stockade.violations.mark import PLAIN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stockade.tool.ending import Ending
    from stockade.tool.placement import Placement
    from stockade.tool.shell_result import ShellResult
    from stockade.violations.mark import Mark

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
    mark = result.mark
    if result.refusal:
        return _refused(result, mark)
    text = annotate(result.output, result.violations, dropped=result.violations_dropped, mark=mark)
    more = (*_endings(result), *_cut(result), *result.notes, *((result.advice,) if result.advice else ()))
    return _with_lines(text, _lines(more, mark, mark))


def for_people(result: ShellResult) -> str:
    """Return a result as people get it: what was refused is told to them apart, and advice is not for them.

    They see no id: what they copy from here may become a command.
    """
    if result.refusal:
        return _refused(result, PLAIN)
    text = neutralise(result.output, result.mark)
    return _with_lines(text, _lines((*_endings(result), *result.notes), PLAIN, result.mark))


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


def _endings(result: ShellResult) -> tuple[str, ...]:
    if result.job:
        return (f"started in the background as {result.job}",)
    if result.timed_out:
        return (f"ended after {result.seconds:.0f} seconds, with all that it started: the timeout was reached",)
    if result.signal is not None:
        return (f"ended by signal {result.signal}",)
    if result.exit_code:
        return (f"exit status {result.exit_code}",)
    return () if result.output or result.violations else ("no output",)


def _cut(result: ShellResult) -> tuple[str, ...]:
    """Return what the output says of itself where it was cut, once more: there, anybody could have said it."""
    if not result.mark.id or not result.output_file:
        return ()
    return (f"not all of the {result.output_size} bytes of output are shown; the file is {escape(result.output_file)}",)


def _refused(result: ShellResult, mark: Mark) -> str:
    words = neutralise(f"The command did not run: {result.refusal}", result.mark)
    return "\n".join([mark.line(words) if mark.id else words, *_lines(result.notes, mark, result.mark)])


def _lines(texts: Iterable[str], mark: Mark, hidden: Mark) -> list[str]:
    """Return lines of ours with one mark, in which another is not to be read."""
    return [mark.line(neutralise(text, hidden)) for text in texts]


def _with_lines(text: str, more: list[str]) -> str:
    gap = "\n" if more and text and not text.endswith("\n") else ""
    return f"{text}{gap}" + "\n".join(more)
