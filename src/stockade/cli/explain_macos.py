"""``stockade explain --platform macos``: the Seatbelt profile that macOS would be given, and what it says."""

from __future__ import annotations

from stockade.annotation import TYPE_CHECKING
from stockade.escape import escape
from stockade.filesystem.terrain import Land
from stockade.platforms.macos.explanation import explain_destination, explain_path, profile_of
from stockade.policy.decision import decide_destination
from stockade.policy.destination import Destination
from stockade.policy.explain import HTTPS, Subject, classify

if TYPE_CHECKING:
    from stockade.cli.explain import Options
    from stockade.cli.terminal import Terminal
    from stockade.platforms.macos.explanation import Answer
    from stockade.policy.model import SandboxPolicy


def run_macos(options: Options, shown: Terminal, policy: SandboxPolicy) -> int:
    """Print the profile, or what it says to one path or destination; 0 whatever the verdict."""
    disk = Land()
    if options.target is None:
        text = profile_of(policy, disk).text
        if options.json:
            shown.json({"platform": "macos", "profile": text})
        else:
            for line in text.splitlines():
                shown.line(line)
        return 0
    subject = Subject(options.subject) if options.subject else classify(options.target, policy, disk)
    if subject is Subject.COMMAND:
        shown.line(f"{escape(options.target)}: where a command runs does not depend on the platform")
        return 0
    if subject is Subject.PATH:
        answers, decision = explain_path(policy, options.target, disk), None
    else:
        destination = Destination.parse(options.target, default_port=HTTPS)
        decision = decide_destination(policy.network, destination, can_ask=False)
        answers = (explain_destination(policy, destination, disk),)
    if options.json:
        facts = {answer.way: _facts(answer) for answer in answers}
        proxies = {} if decision is None else {"proxies": decision.verdict.name.lower()}
        shown.json({"platform": "macos", "subject": subject.value, "target": options.target, **proxies, **facts})
        return 0
    for answer in answers:
        shown.line(shown.paint(str(answer), "green" if answer.verdict.allowed else "red"))
    if decision is not None:
        shown.line(f"the proxies decide: {decision}")
    return 0


def _facts(answer: Answer) -> dict[str, object]:
    verdict = answer.verdict
    return {"allowed": verdict.allowed, "target": answer.target, "filter": verdict.filter, "rule": verdict.rule}
