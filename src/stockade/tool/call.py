"""One call of the shell tool, read from what a model sent.

Rules: what a model sends is checked whole, and everything wrong is said in one error, in words that tell the model
how to send it right. Nothing is guessed: an unknown name, a number in quotes or a timeout out of range is refused. In
JSON a timeout is in milliseconds, as models are used to; here it is in seconds, as Python is. A bypass holds for one
call.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Any, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds that a call gets if it does not say, and the most that it may ask for.
DEFAULT_TIMEOUT: Final = 120.0
LONGEST_TIMEOUT: Final = 600.0
#: Bytes of a command: the kernel takes no longer word (MAX_ARG_STRLEN, with some room).
LONGEST_COMMAND: Final = 130_000

_MILLISECONDS: Final = 1000
_BYPASS: Final = "dangerouslyDisableSandbox"


class ShellCall(Value):
    """A line for the shell. ``timeout`` is in seconds; ``None`` is the default, or no end for a background job."""

    command: str
    description: str = ""
    timeout: float | None = None
    run_in_background: bool = False
    dangerously_disable_sandbox: bool = False

    def check(self) -> None:
        """Refuse what could not be run."""
        if wrong := _wrong_command(self.command) or _wrong_timeout(self.timeout):
            raise InvalidTextError(wrong, "send the call again without that")

    @classmethod
    def parse(cls, given: Mapping[str, object] | str | bytes) -> ShellCall:
        """Read the input that a model gave: an object, or the JSON of one. Raises InvalidTextError."""
        content = read_object(given, "shell", '{"command": "ls -l"}')
        problems = [*_unknown(content), *_misfits(content)]
        if "command" not in content:
            problems.insert(0, "command is missing")
        if problems:
            message = f"the input of the shell tool is wrong: {'; '.join(problems)}"
            raise InvalidTextError(message, f"it takes {', '.join(_FIELDS)}; only command is required")
        timeout = content.get("timeout")
        return cls(
            command=content["command"],
            description=content.get("description", ""),
            timeout=None if timeout is None else timeout / _MILLISECONDS,
            run_in_background=content.get("run_in_background", False),
            dangerously_disable_sandbox=content.get(_BYPASS, False),
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to run."""
        return not self.command.strip()

    @property
    def seconds(self) -> float | None:
        """How long it may take; a background job without a timeout lasts as long as the session."""
        if self.timeout is None and not self.run_in_background:
            return DEFAULT_TIMEOUT
        return self.timeout


def input_schema(*, bypass: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of the input; without ``bypass`` a model is not told of one."""
    properties = {name: dict(schema) for name, schema in _FIELDS.items() if bypass or name != _BYPASS}
    return {"type": "object", "properties": properties, "required": ["command"], "additionalProperties": False}


def definition(*, bypass: bool = True, name: str = "shell") -> dict[str, Any]:
    """Return the tool as model APIs take it: name, description and input_schema."""
    return {"name": name, "description": _DESCRIPTION, "input_schema": input_schema(bypass=bypass)}


_DESCRIPTION: Final = (
    "Run a line in the shell and return what it printed, with its exit status. The working directory is kept from one "
    "call to the next; variables, functions and options are not. Standard input is empty, so nothing may ask. "
    "All that a call has started ends with it, unless it runs in the background. Long output is cut in the middle, and "
    "the whole of it is kept in a file that is named."
)

_FIELDS: Final[dict[str, dict[str, Any]]] = {
    "command": {
        "type": "string",
        "description": "The line to run. Quote paths that hold blanks. Join steps that need each other with &&.",
    },
    "description": {
        "type": "string",
        "description": "What the line does, in five to ten words, for the person who may be asked about it.",
    },
    "timeout": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": LONGEST_TIMEOUT * _MILLISECONDS,
        "description": (
            "Milliseconds after which the line and all that it started are ended. "
            f"{DEFAULT_TIMEOUT * _MILLISECONDS:.0f} if not given, at most {LONGEST_TIMEOUT * _MILLISECONDS:.0f}."
        ),
    },
    "run_in_background": {
        "type": "boolean",
        "description": (
            "Start it and go on: for servers and long builds. The answer names a job; read its output and end it by "
            "that name. Later calls reach its ports on localhost. Do not also put & behind the line."
        ),
    },
    _BYPASS: {
        "type": "boolean",
        "description": (
            "Ask for this one call to run outside the sandbox; the person decides. Only if they asked for it, or if a "
            "failure showed that the sandbox was the cause. The next call is inside again."
        ),
    },
}

_WORDS: Final = {"string": "text", "number": "a number", "boolean": "true or false"}


def read_object(given: Mapping[str, object] | str | bytes, tool: str, example: str) -> Mapping[str, Any]:
    """Return the input of a tool as an object. Raises InvalidTextError that shows an example."""
    import json

    content: Any = given
    try:
        content = json.loads(given) if isinstance(given, (str, bytes)) else given
    except (ValueError, RecursionError) as error:
        message = f"the input of the {tool} tool is not JSON: {escape(str(error))}"
        raise InvalidTextError(message, f"send an object such as {example}") from None
    if not (hasattr(content, "keys") and hasattr(content, "get")):
        message = f"the input of the {tool} tool must be a JSON object"
        raise InvalidTextError(message, f"send an object such as {example}")
    checked: Mapping[str, Any] = content
    return checked


def _unknown(content: Mapping[str, object]) -> list[str]:
    return [f'"{escape(str(name), 60)}" is not known' for name in content if name not in _FIELDS]


def _misfits(content: Mapping[str, object]) -> list[str]:
    wrong = []
    for name, schema in _FIELDS.items():
        if name in content and not _fits(content[name], schema["type"]):
            wrong.append(f"{name} must be {_WORDS[schema['type']]}")
    if not wrong and (problem := _wrong_command(content.get("command", ""))):
        wrong.append(problem)
    if not wrong and (problem := _wrong_timeout(_seconds(content.get("timeout")))):
        wrong.append(problem)
    return wrong


def _fits(value: object, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, bool if kind == "boolean" else str)


def _seconds(milliseconds: Any) -> float | None:
    if milliseconds is None:
        return None
    # A whole number may be too large to become a fraction; so large, it is out of range anyway.
    return float(min(max(milliseconds, -1), 1e12)) / _MILLISECONDS


def _wrong_command(command: Any) -> str:
    if "\0" in command:
        return "command holds a NUL character"
    try:
        size = len(command.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return "command holds half of a character (a lone surrogate)"
    return f"command is longer than {LONGEST_COMMAND} bytes: write it to a file first" if size > LONGEST_COMMAND else ""


def _wrong_timeout(timeout: float | None) -> str:
    if timeout is None or 0 < timeout <= LONGEST_TIMEOUT:
        return ""
    return f"timeout must be more than 0 and at most {LONGEST_TIMEOUT * _MILLISECONDS:.0f} milliseconds"
