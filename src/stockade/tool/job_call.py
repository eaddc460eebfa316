"""What a model says about its background jobs: list them, read what is new, end one. As strict as a shell call."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.enumeration import Enum
from stockade.errors import InvalidTextError, StockadeError
from stockade.escape import escape
from stockade.tool.call import read_object
from stockade.value import Value
from stockade.violations.annotation import neutralise
from stockade.violations.mark import PLAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stockade.tool.jobs import Jobs
    from stockade.violations.mark import Mark


class JobAction(Enum):
    """What is to be done."""

    LIST = "list"
    READ = "read"
    END = "end"


class JobCall(Value):
    """One call about background jobs; ``job`` names one, but to list them."""

    action: JobAction
    job: str = ""

    def check(self) -> None:
        """Refuse a call that names no job and needs one."""
        if self.action is not JobAction.LIST and not self.job:
            message = f"job is missing: which one to {self.action.value}?"
            raise InvalidTextError(message, 'name it, such as {"action": "read", "job": "job-1"}')

    @classmethod
    def parse(cls, given: Mapping[str, object] | str | bytes) -> JobCall:
        """Read the input that a model gave: an object, or the JSON of one. Raises InvalidTextError."""
        content = read_object(given, "jobs", '{"action": "list"}')
        known = [action.value for action in JobAction]
        unknown = [f'"{escape(str(name), 60)}" is not known' for name in content if name not in _FIELDS]
        if unknown or content.get("action") not in known or not isinstance(content.get("job", ""), str):
            wrong = unknown or [f"action must be one of {', '.join(known)}, and job the name of one"]
            message = f"the input of the jobs tool is wrong: {'; '.join(wrong)}"
            raise InvalidTextError(message, "it takes action and job")
        return cls(JobAction(content["action"]), content.get("job", ""))


def job_definition(name: str = "shell_jobs") -> dict[str, Any]:
    """Return the tool as model APIs take it: name, description and input_schema."""
    properties = {field: dict(schema) for field, schema in _FIELDS.items()}
    schema = {"type": "object", "properties": properties, "required": ["action"], "additionalProperties": False}
    return {"name": name, "description": _DESCRIPTION, "input_schema": schema}


async def run_job_call(jobs: Jobs, call: JobCall, mark: Mark = PLAIN) -> str:
    """Do what a call asks for, and return the answer for the model; ``mark`` tells our words from a command's."""
    try:
        if call.action is JobAction.READ:
            return jobs.read(call.job).for_model
        if call.action is JobAction.END:
            return mark.line(neutralise(str(await jobs.end(call.job)), mark))
        lines = [str(state) for state in jobs.list()] or ["no job was started"]
    except StockadeError as error:
        lines = [f"{error.message} ({error.hint})"]
    safe = [neutralise(line, mark) for line in lines]
    return "\n".join(map(mark.line, safe) if mark.id else safe)


_DESCRIPTION: Final = (
    "Background jobs that the shell tool has started: list them, read what one has printed since it was last read, or "
    "end one with all that it started. Jobs end with the session."
)
_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "action": {
        "type": "string",
        "enum": [action.value for action in JobAction],
        "description": "list: all jobs and how they are; read: what is new; end: end it now.",
    },
    "job": {"type": "string", "description": "The name of a job, as the shell tool gave it; not needed to list."},
}
