"""One refusal, told to people, programs and models: what was refused, by which rule, and what would allow it.

Rules:

- Every text in a violation is one line, bounded, and safe to show (``stockade.escape``), whatever a program inside
  called its files and hosts. The exceptions are ``command`` and ``line``, which are as the caller gave them.
- The remedy is a setting that can be pasted, or says that there is none. So it is whole or not there at all: half of it
  might allow something else.
- Only a refusal becomes a violation; to make one of anything that was allowed is a mistake of the caller.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.enumeration import Enum
from stockade.escape import escape, legible
from stockade.value import Value

if TYPE_CHECKING:
    from stockade.policy.decision import NetworkDecision
    from stockade.policy.files import FileVerdict
    from stockade.policy.unix_sockets import SocketVerdict
    from stockade.settings.layer import Origin

#: No line of ``Violation.text`` is longer.
LONGEST_LINE: Final = 1200

_LONGEST_TARGET: Final = 4096
_LONGEST_SHOWN: Final = 200
_LONGEST_WORDS: Final = 300
# A path of the longest kind, once as a setting and once as an argument.
_LONGEST_REMEDY: Final = 10_000
_SPECIAL: Final = frozenset('\\"<>')
_BRACKETS: Final = {ord("<"): "\\x3c", ord(">"): "\\x3e"}

_NO_REMEDY: Final = "cannot be allowed: no setting opens it"
_LOST_REMEDY: Final = "the setting that would allow it is too long to be shown here"


class Operation(Enum):
    """What was tried, by the name that programs see."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    RENAME = "rename"
    METADATA = "metadata"
    EXECUTE = "execute"
    CONNECT = "connect"
    RESOLVE = "resolve"
    UNIX_CONNECT = "unix-connect"
    LEAVE = "leave"

    @property
    def words(self) -> str:
        """The same for people: what stands before the target."""
        return _WORDS.get(self, self.value)

    @property
    def is_network(self) -> bool:
        """Whether the target is a destination, not a path."""
        return self in (Operation.CONNECT, Operation.RESOLVE)


_WORDS: Final = {
    Operation.METADATA: "change the attributes of",
    Operation.EXECUTE: "run",
    Operation.CONNECT: "connect to",
    Operation.RESOLVE: "look up",
    Operation.UNIX_CONNECT: "connect to the socket",
    Operation.LEAVE: "leave behind",
}


class Occasion(Value):
    """When it happened (seconds since the epoch), to which command (its id and its text), and how often."""

    time: float
    command: str = ""
    line: str = ""
    times: int = 1


class Violation(Value):
    """One refusal. ``rule`` and ``source`` are empty where none decided, but that nothing allows it."""

    time: float
    command: str
    line: str
    operation: Operation
    target: str
    rule: str
    source: str
    why: str
    remedy: str
    times: int = 1

    @classmethod
    def refused(cls, operation: Operation, target: str, occasion: Occasion, *, why: str, remedy: str = "") -> Violation:
        """Make one of a target as it was asked for, and of words; no remedy means that nothing would allow it."""
        return cls(
            time=occasion.time,
            command=occasion.command,
            line=occasion.line,
            operation=operation,
            target=_escaped(target, _LONGEST_TARGET),
            rule="",
            source="",
            why=_safe(why, _LONGEST_WORDS),
            remedy=_whole(remedy),
            times=occasion.times,
        )

    @classmethod
    def of_network(
        cls, decision: NetworkDecision, occasion: Occasion, operation: Operation = Operation.CONNECT
    ) -> Violation:
        """Make one of a decision that denies."""
        if decision.verdict.name != "DENY":
            message = f"no violation: {decision}"
            raise ValueError(message)
        why = f"{decision.reason.value}: {decision.detail}" if decision.detail else decision.reason.value
        plain = cls.refused(operation, "", occasion, why=why, remedy=decision.remedy)
        target = _safe(
            decision.asked, _LONGEST_TARGET
        )  # escaped when it was decided: once more would be once too often
        if decision.rule is None:
            return plain.but(target=target)
        rule = _safe(decision.rule.value.text, _LONGEST_SHOWN)
        return plain.but(target=target, rule=rule, source=_written(decision.rule.origin))

    @classmethod
    def of_file(cls, verdict: FileVerdict, occasion: Occasion, operation: Operation | None = None) -> Violation:
        """Make one of a verdict that refuses; ``operation`` says more exactly what was tried."""
        if verdict.allowed:
            message = f"no violation: {verdict}"
            raise ValueError(message)
        tried = Operation(verdict.access.value) if operation is None else operation
        leads = "" if verdict.place == verdict.path else f' (it is "{escape(verdict.place)}")'
        why = f"{verdict.reason.value}{leads}"
        plain = cls.refused(tried, verdict.path, occasion, why=why, remedy=verdict.remedy)
        if verdict.rule is not None:
            rule = escape(verdict.rule.value.text)
            return plain.but(rule=rule, source=_written(verdict.rule.origin))
        if verdict.protected_name is not None:
            return plain.but(rule=_safe(verdict.protected_name, _LONGEST_SHOWN), source="the protected names")
        return plain

    @classmethod
    def of_socket(cls, verdict: SocketVerdict, occasion: Occasion) -> Violation:
        """Make one of a verdict that refuses a unix socket."""
        if verdict.allowed:
            message = f"no violation: {verdict}"
            raise ValueError(message)
        why = verdict.reason.value
        plain = cls.refused(Operation.UNIX_CONNECT, verdict.path, occasion, why=why, remedy=verdict.remedy)
        if verdict.rule is None:
            return plain
        return plain.but(rule=escape(verdict.rule.value.text), source=_written(verdict.rule.origin))

    @property
    def headline(self) -> str:
        """What was tried, whole: ``write "/etc/hosts"``."""
        return self._headline(self.target)

    @property
    def reason(self) -> str:
        """Why it was refused, with the rule and where that stands."""
        rule = f' by "{self.rule}"' if self.rule else ""
        return f"{self.why}{rule} of {self.source}" if rule and self.source else f"{self.why}{rule}"

    def brief(self) -> str:
        """Return what was tried and how often, in a bounded number of characters."""
        often = f" ({self.times} times)" if self.times > 1 else ""
        return self._headline(_clipped(self.target, _LONGEST_SHOWN)) + often

    def text(self) -> str:
        """Return everything but the command as one line of at most ``LONGEST_LINE`` characters."""
        line = f"{self.brief()}: {self.reason}"
        whole = f"{line}; {self.remedy}"
        if len(whole) <= LONGEST_LINE:
            return whole
        rest = f"; {_LOST_REMEDY}"
        return _clipped(line, LONGEST_LINE - len(rest)) + rest

    def mapping(self) -> dict[str, object]:
        """Return it in the types of JSON."""
        return self.__dict__ | {"operation": self.operation.value}

    def _headline(self, target: str) -> str:
        shown = target if self.operation.is_network else f'"{target}"'
        return f"{self.operation.words} {shown}"


def _written(origin: Origin) -> str:
    """Return where a rule was written: file and layer, and the place in the file."""
    inside = f" at {escape(origin.path)}" if origin.path else ""
    return f"{origin}{inside}"


def _whole(remedy: str) -> str:
    if not remedy:
        return _NO_REMEDY
    safe = _safe(remedy, _LONGEST_REMEDY + 1)
    return safe if len(safe) <= _LONGEST_REMEDY else _LOST_REMEDY


def _escaped(text: str, limit: int) -> str:
    """Escape; most texts need nothing, which is seen at once: a flood of refusals must not cost more than it must."""
    return text if _is_plain(text) and len(text) <= limit and not _SPECIAL.intersection(text) else escape(text, limit)


def _safe(text: str, limit: int) -> str:
    """Return a text of safe pieces, bounded, with what should not have been in it escaped all the same."""
    if _is_plain(text) and "<" not in text and ">" not in text:
        return _clipped(text, limit)
    return _clipped(legible(_clipped(text, limit)).translate(_BRACKETS), limit)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _clipped(text: str, limit: int) -> str:
    """Return an escaped text without its middle if it is too long, as ``escape`` does."""
    if len(text) <= limit:
        return text
    room = limit - len("...")
    return f"{text[: room - room // 2]}...{text[-(room // 2) :]}"
