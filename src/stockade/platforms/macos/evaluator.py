"""What a Seatbelt profile says to an operation: the same question that the kernel would be asked, answered here.

Rules, as far as they are known (Apple documents none of this):

- The last rule that speaks of the operation and one of whose filters matches decides; where there is none, ``default``.
- An operation with a star speaks of all that begin so. Filters of one rule are alternatives.
- Files are judged by their place: links are followed, and names spelt as the disk has them, before rules are asked.

So a path that is asked about must be a place. A filter or an operand that is not known here is an error, never a guess.
No Mac was asked: this is a model, and what it was held against is said in SECURITY.md.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final
from stockade.errors import InvalidTextError
from stockade.escape import escape
from stockade.platforms.macos.attempt import Attempt
from stockade.platforms.macos.filters import compile_filter
from stockade.platforms.macos.sexpr import Quoted, read, show
from stockade.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stockade.platforms.macos.sexpr import Form

_ACTIONS: Final = ("allow", "deny")
_IGNORED: Final = ("version", "debug")


class Verdict(Value):
    """The answer, the text of the rule that gave it, and the message that goes to the log with a refusal.

    ``filter`` is the one of the rule's filters that matched, if it has any.
    """

    allowed: bool
    rule: str
    message: str = ""
    filter: str = ""


class _Rule(Value):
    allowed: bool
    operations: tuple[str, ...]
    filters: tuple[Callable[[Attempt], bool], ...]
    form: tuple[Form, ...]
    message: str

    def speaks_of(self, operation: str) -> bool:
        return any(
            operation.startswith(known[:-1]) if known.endswith("*") else operation == known for known in self.operations
        )

    def matches(self, attempt: Attempt) -> bool:
        return not self.filters or any(matches(attempt) for matches in self.filters)

    def verdict(self, attempt: Attempt) -> Verdict:
        forms = [each for each in self.form if isinstance(each, tuple) and each[0] != "with"]
        matched = [form for form, matches in zip(forms, self.filters, strict=True) if matches(attempt)]
        return Verdict(self.allowed, show(self.form), self.message, show(matched[0]) if matched else "")


class Evaluator:
    """A profile, read and ready to be asked."""

    def __init__(self, text: str) -> None:
        """Read a profile, or raise ``InvalidTextError``."""
        rules = [_rule(form) for form in read(text) if not _is_ignored(form)]
        self._default = next((rule for rule in reversed(rules) if "default" in rule.operations), None)
        self._rules = tuple(rule for rule in reversed(rules) if "default" not in rule.operations)
        self._speaking: dict[str, tuple[_Rule, ...]] = {}
        if self._default is None:
            message = "the profile does not say what happens by default"
            raise InvalidTextError(message, "Begin it with (deny default).")

    def judge(self, attempt: Attempt) -> Verdict:
        """Answer one question."""
        return self._deciding(attempt).verdict(attempt)

    def allows(self, attempt: Attempt) -> bool:
        """Answer one question with yes or no."""
        return self._deciding(attempt).allowed

    def allows_file(self, operation: str, place: str, kind: str = "REGULAR-FILE") -> bool:
        """Answer the most frequent question."""
        return self.allows(Attempt(operation, place, kind))

    def allows_rename(self, source: str, target: str, kind: str = "REGULAR-FILE") -> bool:
        """Tell whether something may be given another name at which nothing is: taken away here, and made there."""
        return self.allows_file("file-write-unlink", source, kind) and self.allows_file(
            "file-write-create", target, kind
        )

    def _deciding(self, attempt: Attempt) -> _Rule:
        speaking = self._speaking.get(attempt.operation)
        if speaking is None:
            speaking = tuple(rule for rule in self._rules if rule.speaks_of(attempt.operation))
            self._speaking[attempt.operation] = speaking
        default = self._default
        assert default is not None  # noqa: S101 - made sure of when it was read
        return next((rule for rule in speaking if rule.matches(attempt)), default)


def _is_ignored(form: Form) -> bool:
    return isinstance(form, tuple) and bool(form) and form[0] in _IGNORED


def _rule(form: Form) -> _Rule:
    if not isinstance(form, tuple) or len(form) < 2 or form[0] not in _ACTIONS:  # noqa: PLR2004 - action and operation
        raise _problem(form, "is no rule")
    operations = tuple(each for each in form[1:] if isinstance(each, str))
    others = [each for each in form[1:] if not isinstance(each, str)]
    if not operations or any(not isinstance(each, tuple) or not each for each in others):
        raise _problem(form, "is no rule")
    filters = [each for each in others if isinstance(each, tuple) and each[0] != "with"]
    modifiers = [each for each in others if isinstance(each, tuple) and each[0] == "with"]
    return _Rule(
        form[0] == "allow", operations, tuple(map(compile_filter, filters)), form, "".join(map(_message, modifiers))
    )


def _message(form: tuple[Form, ...]) -> str:
    match form:
        case ("with", "message", Quoted(text=text)):
            return text
        case ("with", "no-log" | "no-report" | "report"):
            return ""
    raise _problem(form, "is no modifier that is known here")


def _problem(form: Form, what: str) -> InvalidTextError:
    return InvalidTextError(f'"{escape(show(form), 300)}" {what}', "Print profiles with stockade, do not write them.")
