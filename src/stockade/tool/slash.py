"""``/sandbox``: the verbs of the command line for hosts, as one function from text to text.

Rules: never raises for what somebody typed; a mistake is answered in words, with what to type instead. What is locked
is refused with the name of the file that locks it. Changes go to the local settings of the project; a host with a
live policy sees them at once.
"""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING, Final, TypeAlias
from stockade.errors import InvalidTextError, SettingsError, StockadeError
from stockade.escape import escape
from stockade.tool.setting_change import (
    exclude,
    rule_domain,
    rule_path,
    still_refused,
    switch_off,
    switch_on,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from stockade.policy.effective import Effective
    from stockade.policy.rule_list import ListedRule
    from stockade.settings.sources import Locations
    from stockade.tool.setting_change import SettingChange
    from stockade.violations.store import Violations

    Verb: TypeAlias = Callable[[Sequence[str], Locations, Violations | None], str]

_MODES: Final = ("auto", "strict", "off")


def slash(text: str, locations: Locations, *, violations: Violations | None = None) -> str:
    """Do what was typed behind ``/sandbox`` (the word itself may stand in front), and return the answer."""
    try:
        words = _words(text)
        verb, rest = (words[0], words[1:]) if words else ("status", [])
        if verb not in _VERBS:
            message = f"unknown: {escape(verb, 60)}"
            raise InvalidTextError(message, _usage())
        return _VERBS[verb][1](rest, locations, violations)
    except SettingsError as error:
        return "\n".join(str(problem) for problem in error.problems)
    except StockadeError as error:
        return f"{error.message}\n{error.hint}" if error.hint else error.message


def _words(text: str) -> list[str]:
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        message = "a quote is not closed"
        raise InvalidTextError(message, "close it, or leave quotes out") from None
    return words[1:] if words[:1] == ["/sandbox"] else words


def _usage() -> str:
    return "\n".join(f"/sandbox {verb}{example}" for verb, (example, _) in _VERBS.items())


def _one(words: Sequence[str], what: str) -> str:
    if len(words) != 1:
        message = f"give one {what}"
        raise InvalidTextError(message, "put quotes around what holds blanks")
    return words[0]


def _none(words: Sequence[str]) -> None:
    if words:
        message = f"nothing goes behind this: {escape(' '.join(words), 60)}"
        raise InvalidTextError(message)


def _changed(change: SettingChange, locations: Locations) -> str:
    written = write(change, locations)
    done = change.done if written.changed else "nothing to change"
    refusal = still_refused(change, locations)
    return f"{done} ({escape(written.file)})" + (f"\nstill refused: {refusal}" if refusal else "")


def _status(words: Sequence[str], locations: Locations, violations: Violations | None) -> str:
    _none(words)
    found = _effective(locations)
    mode = found.policy.mode
    lines = [f"sandbox: {'on' if mode.enabled else 'off'}, in {escape(found.policy.cwd)}"]
    lines.append(f"mode: {_mode_words(auto=mode.auto_allow, open_=mode.allow_unsandboxed)}")
    if found.loaded.lock is not None:
        lines.append(f"locked by {found.loaded.lock.origin}: these settings cannot be changed here")
    if violations is not None:
        lines.append(f"refusals in this session: {violations.total}")
    return "\n".join([*lines, *found.warnings])


def _mode_words(*, auto: bool, open_: bool) -> str:
    asked = "commands inside need no approval" if auto else "every command is asked for"
    return f"{asked}; {'a call may ask to run outside' if open_ else 'none may run outside'}"


def _enable(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    _none(words)
    return _changed(switch_on(), locations)


def _disable(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    _none(words)
    return _changed(switch_off(), locations)


def _mode(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    mode = _one(words, "mode")
    if mode not in _MODES:
        message = f"there is no mode {escape(mode, 60)}"
        raise InvalidTextError(message, f"modes: {', '.join(_MODES)}")
    return _changed(switch_on(mode), locations)


def _allow(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    return _changed(rule_path(_one(words, "path"), locations, allow=True), locations)


def _deny(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    return _changed(rule_path(_one(words, "path"), locations, allow=False), locations)


def _allow_domain(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    return _changed(rule_domain(_one(words, "host"), allow=True), locations)


def _deny_domain(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    return _changed(rule_domain(_one(words, "host"), allow=False), locations)


def _exclude(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    # People type the command as it is: /sandbox exclude docker compose *
    if not words:
        message = "give a command"
        raise InvalidTextError(message, "such as /sandbox exclude docker compose *")
    return _changed(exclude(" ".join(words)), locations)


def _list(words: Sequence[str], locations: Locations, _violations: Violations | None) -> str:
    from stockade.policy.rule_list import rule_list

    _none(words)
    lines = []
    for title, rules in rule_list(_effective(locations).policy).items():
        lines += [f"{title}:", *_rows(rules)] if rules else []
    return "\n".join(lines)


def _rows(rules: Iterable[ListedRule]) -> list[str]:
    return [f"  {escape(rule.value.text)}  ({rule.origin})" for rule in rules]


def _violations(words: Sequence[str], _locations: Locations, violations: Violations | None) -> str:
    from stockade.violations.summary import full

    _none(words)
    if violations is None or not violations.total:
        return "nothing was refused in this session"
    return full(tuple(violations), dropped=violations.dropped).rstrip("\n")


def _effective(locations: Locations) -> Effective:
    from stockade.policy.effective import effective

    return effective(locations)


_VERBS: Final[dict[str, tuple[str, Verb]]] = {
    "status": ("", _status),
    "enable": ("", _enable),
    "disable": ("", _disable),
    "mode": (" auto|strict|off", _mode),
    "allow": (" PATH", _allow),
    "deny": (" PATH", _deny),
    "allow-domain": (" HOST", _allow_domain),
    "deny-domain": (" HOST", _deny_domain),
    "exclude": (" COMMAND", _exclude),
    "list": ("", _list),
    "violations": ("", _violations),
}
