"""Permission rules: ``Tool``, ``Tool(content)``, or ``Tool:content``, which means the same.

The content of ``Bash`` is a command pattern, of ``Edit`` and ``Read`` a path, of ``WebFetch`` a ``domain:``. Rules for
other tools are kept as they are. In the first form the content is all between the first ``(`` and the last ``)``, with
which the rule ends; it may hold parentheses of its own. The content of ``Bash`` may hold line ends, as commands do.
"""

from __future__ import annotations

from stockade.errors import InvalidTextError
from stockade.value import Value

_DOMAIN = "domain:"
_SHAPE = "a rule looks like Bash(npm run:*), Edit(src/**), WebFetch(domain:example.com) or WebFetch"
_NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LINES = frozenset("\n\r\t")
_NAME = _NAME_START | frozenset("0123456789_-")


class Rule(Value):
    """One permission rule; ``content`` is None if the rule speaks of the whole tool."""

    tool: str
    content: str | None
    text: str

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule; raise InvalidTextError that shows it if it is malformed."""
        size = next((at for at, char in enumerate(text) if char in "(:"), len(text))
        tool, mark, rest = text[:size], text[size : size + 1], text[size + 1 :]
        if tool[:1] not in _NAME_START or not _NAME.issuperset(tool):
            raise _invalid(text, f"has no valid tool name before {mark}" if mark else "is no tool name")
        if any(_is_control(char) and not (char in _LINES and tool == "Bash") for char in rest):
            raise _invalid(text, "holds a control character")
        content = _content(text, mark, rest) if mark else None
        if tool == "WebFetch" and content is not None and not content.removeprefix(_DOMAIN).strip():
            raise _invalid(text, "names no domain")
        if tool == "WebFetch" and content is not None and not content.startswith(_DOMAIN):
            raise _invalid(text, f"has a content that does not begin with {_DOMAIN}")
        return cls(tool, content, text)

    @property
    def domain(self) -> str | None:
        """The domain of ``WebFetch(domain:X)``, as written; None for every other rule."""
        return self.content.removeprefix(_DOMAIN) if self.tool == "WebFetch" and self.content else None

    def __str__(self) -> str:
        """Return the rule as it was written."""
        return self.text


def prefix_of_permission_update(text: str) -> str:
    """Return the command pattern of a ``Bash(...)`` rule: ``npm run:*`` of ``Bash(npm run:*)``."""
    rule = Rule.parse(text)
    if rule.tool != "Bash" or rule.content is None:
        raise _invalid(text, "names no command", "give the command, such as Bash(npm run:*)")
    return rule.content


def _is_control(char: str) -> bool:
    return char < " " or "\x7f" <= char <= "\x9f"


def _content(text: str, mark: str, rest: str) -> str:
    content = rest
    if mark == "(":
        if not rest.endswith(")"):
            raise _invalid(text, "does not end with )")
        content = rest[:-1]
    if not content:
        raise _invalid(text, "has an empty content")
    if content != content.strip():
        raise _invalid(text, "has a content that begins or ends with a blank")
    return content


def _invalid(text: str, what: str, hint: str = _SHAPE) -> InvalidTextError:
    return InvalidTextError(f"the rule {text!a} {what}", hint)
