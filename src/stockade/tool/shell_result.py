"""What came of a call: whether and where it ran, how it ended, what it printed, what was refused to it."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.value import Value
from stockade.violations.mark import PLAIN

if TYPE_CHECKING:
    from stockade.tool.approval import Approval
    from stockade.tool.placement import Placement
    from stockade.violations.mark import Mark
    from stockade.violations.violation import Violation


class ShellResult(Value):
    """The end of one call.

    ``refusal`` says why it did not run at all, and is empty if it did. ``placement`` is missing where nobody asked
    for it. ``output`` is both streams in their order, bounded; ``output_file`` holds all of it where it was cut.
    ``job`` names the background job that was started. ``directory`` is where the next call begins. ``advice`` is
    what to do about a failure that looks like the sandbox. ``mark`` tells our words from the output, for the model.
    """

    command: str
    approval: Approval
    placement: Placement | None = None
    refusal: str = ""
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    output: str = ""
    output_size: int = 0
    output_file: str = ""
    violations: tuple[Violation, ...] = ()
    violations_dropped: int = 0
    notes: tuple[str, ...] = ()
    advice: str = ""
    job: str = ""
    directory: str = ""
    mark: Mark = PLAIN

    @property
    def ok(self) -> bool:
        """Whether it ran and ended with status 0, or was started in the background."""
        return not self.refusal and (self.exit_code == 0 or bool(self.job))

    @property
    def for_model(self) -> str:
        """The result in words for the model: output, violations, and what else it must know."""
        from stockade.tool.output import for_model

        return for_model(self)

    @property
    def for_people(self) -> str:
        """The same for people, without what is meant for models."""
        from stockade.tool.output import for_people

        return for_people(self)
